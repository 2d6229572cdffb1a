// activation/remove: the phone ends its activation. Spec: v3 §10.7.
import { Type } from '@sinclair/typebox'
import { signedEndpoint } from '../../../channel/flow/signed.ts'
import { removeActivation } from '../../../domain/activation/activation.ts'
import { ObjectResponse, ok } from '../../../http/types.ts'
import type { DeviceParts } from '../parts.ts'

export const activationRemove = signedEndpoint({
  path: 'activation/remove',
  summary: 'Ends the activation',
  errors: [],
  authenticate: {
    resourceId: '/pa/activation/remove',
    factors: ({ settings }: DeviceParts) =>
      settings.activationRemoveAllow1fa
        ? ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
        : ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
  },
  headerMissing: 'AUTHENTICATION_HEADER_MISSING',
  response: ObjectResponse(Type.Object({ activationId: Type.String() })),
  async handle({ activation }, parts) {
    await removeActivation(parts, activation)
    return ok({ activationId: activation.activationId })
  },
})
