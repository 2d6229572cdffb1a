// biometry/remove: switches biometry off and forgets its keys. Spec: v4 §9.13.
import { changeFactorKeys } from '../../../domain/factor-keys.ts'
import { Ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { deviceEndpoint } from '../parts.ts'

export const biometryRemove = deviceEndpoint({
  path: 'biometry/remove',
  summary: 'Switches biometry off and forgets its keys',
  errors: ['BIOMETRY_FAILED'],
  order: ['factors', 'authenticate'],
  authenticate: { resourceId: '/pa/biometry/remove', factors: ['POSSESSION'], covers: 'body' },
  response: Ok,
  async handle({ activation, parts }) {
    const isChanged = await changeFactorKeys(parts, activation, parts.protocols.v4.removeBiometryKeys, false)
    if (!isChanged) throw new PawlError('BIOMETRY_FAILED', { detail: 'removed, or its keys were changed by a later request' })
    return { status: 'OK' as const }
  },
})
