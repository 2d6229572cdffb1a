// activation/detail: answers id and name of the activation, for a token made with two factors. Spec: v3 §13, v4 §9.7.
import { Type } from '@sinclair/typebox'
import { openedTokenEndpoint } from '../../../channel/flow/opened-then-token.ts'
import type { EnvelopePolicy } from '../../../channel/stages/envelope-keys.ts'
import { ObjectResponse, ok } from '../../../http/types.ts'

export const ActivationDetail = Type.Object({ activationId: Type.String(), activationName: Type.Optional(Type.String()) })

const detailOf = (opensFor: EnvelopePolicy) =>
  openedTokenEndpoint({
    path: 'activation/detail',
    summary: 'Id and name of the activation',
    errors: [],
    token: { factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
    encrypt: { sharedInfo1: '/pa/generic/activation', opensFor },
    response: ObjectResponse(ActivationDetail),
    async handle({ activation: { activationId, name } }) {
      return ok({ activationId, ...(name !== null && { activationName: name }) })
    },
  })

export const activationDetailV3 = detailOf('ACTIVE')
/** Envelopes of BLOCKED and REMOVED activations open. Their token is then refused (v4 §9.7). */
export const activationDetailV4 = detailOf('ANY_STATE')
