// activation/code: gives a phone an activation code that binds another application of the bank on this phone. Spec: mobile-token §9.
import { Type } from '@sinclair/typebox'
import { openedSignedEndpoint } from '../../../channel/flow/opened-then-signed.ts'
import { createTransferCode } from '../../../domain/activation/transfer.ts'
import { NotBlank, ObjectRequest, ObjectResponse, ok } from '../../../http/types.ts'
import type { MobileTokenParts } from '../parts.ts'

const Otp = Type.String({
  pattern: '^[\\x20-\\x7E]{16,255}$',
  description: 'must be 16 to 255 printable characters of ASCII',
  examples: ['b4c1f0e29d7a5836'],
})

export const activationCode = openedSignedEndpoint({
  path: 'activation/code',
  summary: 'A code that binds another application of the bank on the same phone',
  description:
    'The other application is bound with this code and the OTP, within five minutes, and is ACTIVE then. Where the bank configured a move, this activation is removed at that moment.',
  errors: ['TOO_MANY_REQUESTS', 'ACTIVATION_CODE_FAILED'],
  authenticate: { resourceId: '/api/activation/code', factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
  // The envelope of an activation that is not ACTIVE opens. Its code is then refused.
  encrypt: { sharedInfo1: '/pa/generic/activation', opensFor: 'ANY' },
  request: ObjectRequest(Type.Object({ applicationId: NotBlank(255), otp: Otp })),
  response: ObjectResponse(
    Type.Object({
      activationId: Type.String(),
      activationCode: Type.String({ examples: ['JEZI4-SCTXC-QF4CR-VJ7PI'] }),
      activationSignature: Type.String({ description: 'Base64, of ECDSA under the master key of the other application' }),
    }),
  ),
  async handle({ request: { requestObject }, activation }, parts: MobileTokenParts) {
    parts.mobileReads.take(activation.activationId, parts.platform.monotonic())
    return ok(await createTransferCode(parts, activation, requestObject))
  },
})
