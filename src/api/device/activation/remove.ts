// activation/remove: the phone ends its own activation. Spec: v3 §10.7.
import { Type } from '@sinclair/typebox'
import { removeActivation } from '../../../domain/activation.ts'
import { ObjectResponse, ok } from '../../../http/types.ts'
import { deviceEndpoint } from '../parts.ts'

export const activationRemove = deviceEndpoint({
  path: 'activation/remove',
  summary: 'Ends the activation',
  errors: [],
  order: ['factors', 'authenticate'],
  authenticate: {
    resourceId: '/pa/activation/remove',
    factors: async ({ settings }) =>
      settings.activationRemoveAllow1fa
        ? ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
        : ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
    covers: 'body',
  },
  refusals: { headerMissing: 'AUTHENTICATION_HEADER_MISSING' },
  response: ObjectResponse(Type.Object({ activationId: Type.String() })),
  async handle({ activation, parts }) {
    await removeActivation(parts, activation.activationId)
    return ok({ activationId: activation.activationId })
  },
})
