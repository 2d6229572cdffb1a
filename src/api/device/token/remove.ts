// token/remove: removes a token of the activation. The answer is the same when there was none. Spec: v3 §11.4.
import { Type } from '@sinclair/typebox'
import { signedEndpoint } from '../../../channel/flow/signed.ts'
import { createAuditEvent } from '../../../domain/audit/audit.ts'
import { NotBlank, ObjectRequest, ObjectResponse, ok } from '../../../http/types.ts'
import { deleteToken } from '../../../storage/token/tokens.ts'
import type { DeviceParts } from '../parts.ts'

export const tokenRemove = signedEndpoint({
  path: 'token/remove',
  summary: 'Forgets a token',
  description: 'The same answer whether or not there was one.',
  errors: [],
  authenticate: { resourceId: '/pa/token/remove', factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
  request: ObjectRequest(Type.Object({ tokenId: NotBlank(255) })),
  response: ObjectResponse(Type.Object({ tokenId: Type.String() })),
  async handle({ request, activation }, { db, platform }: DeviceParts) {
    const { tokenId } = request.requestObject
    const audit = createAuditEvent(activation, 'token_removed', { tokenId }, platform.now())
    await deleteToken(db, activation.activationId, tokenId, audit)
    return ok({ tokenId })
  },
})
