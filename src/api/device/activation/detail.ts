// activation/detail: id and name of the activation, for a token made with two factors. Spec: v3 §13, v4 §9.7.
import { Type } from '@sinclair/typebox'
import { ObjectResponse, ok } from '../../../http/types.ts'
import { deviceEndpoint } from '../parts.ts'

export const ActivationDetail = Type.Object({ activationId: Type.String(), activationName: Type.Optional(Type.String()) })

export const activationDetailV3 = deviceEndpoint({
  path: 'activation/detail',
  summary: 'Id and name of the activation',
  errors: [],
  order: ['envelope', 'open', 'token'],
  token: { factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/generic/activation' },
  response: ObjectResponse(ActivationDetail),
  async handle({ activation: { activationId, name } }) {
    return ok({ activationId, ...(name !== null && { activationName: name }) })
  },
})

/** Envelopes of BLOCKED and REMOVED activations open too: the token is what is refused (v4 §9.7). */
export const activationDetailV4 = deviceEndpoint({
  ...activationDetailV3,
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/generic/activation', leavesStateToCode: true },
})
