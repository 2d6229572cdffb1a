// biometry/remove: switches biometry off and forgets its keys. Spec: v4 §9.13.
import { Ok } from '../../../http/types.ts'
import { changeFactorKeys } from '../factors/replace-key.ts'
import { deviceEndpoint } from '../parts.ts'

export const biometryRemove = deviceEndpoint({
  path: 'biometry/remove',
  summary: 'Switches biometry off and forgets its keys',
  errors: ['BIOMETRY_FAILED'],
  order: ['factors', 'authenticate'],
  authenticate: { resourceId: '/pa/biometry/remove', factors: ['POSSESSION'], covers: 'body' },
  response: Ok,
  async handle({ activation, parts }) {
    const terms = { refusal: 'BIOMETRY_FAILED', isBiometryEnabled: false } as const
    await changeFactorKeys(parts, activation, parts.protocols.v4.removeBiometryKeys, terms)
    return { status: 'OK' as const }
  },
})
