// biometry/remove: switches biometry off and deletes its keys. Spec: v4 §9.13.
import { signedEndpoint } from '../../../channel/flow/signed.ts'
import { Ok } from '../../../http/types.ts'
import { changeFactorKeys } from '../factors/replace-key.ts'
import type { DeviceParts } from '../parts.ts'

export const biometryRemove = signedEndpoint({
  path: 'biometry/remove',
  summary: 'Switches biometry off and forgets its keys',
  errors: ['BIOMETRY_FAILED'],
  authenticate: { resourceId: '/pa/biometry/remove', factors: ['POSSESSION'] },
  response: Ok,
  async handle({ activation }, parts: DeviceParts) {
    const terms = { refusal: 'BIOMETRY_FAILED', isBiometryEnabled: false } as const
    await changeFactorKeys(parts, activation, parts.protocols.v4.removeBiometryKeys, terms)
    return { status: 'OK' as const }
  },
})
