// activation/confirm: the phone confirms what it activated, and says whether it has biometry. Spec: v4 §9.6.
import { Type } from '@sinclair/typebox'
import { Absent, Ok } from '../../../http/types.ts'
import { confirmActivation } from '../../../storage/activation-keys.ts'
import { deviceEndpoint } from '../parts.ts'

export const activationConfirm = deviceEndpoint({
  path: 'activation/confirm',
  summary: 'Confirms an activation and switches biometry on or off',
  description: 'Before or after the commit, once. The state stays. No body is `{}`: without biometry.',
  errors: ['ACTIVATION_FAILED'],
  order: ['factors', 'validate', 'authenticate'],
  authenticate: {
    resourceId: '/pa/activation/confirm',
    factors: ['POSSESSION_KNOWLEDGE'],
    covers: 'body',
    isPendingAccepted: true,
  },
  request: Type.Object({ requestObject: Absent(Type.Object({ enableBiometry: Absent(Type.Boolean()) })) }),
  response: Ok,
  async settle({ tx, refusal, activation, request }) {
    if (refusal !== undefined || activation === undefined) return undefined
    const isConfirmed = await confirmActivation(tx, activation.activationId, request.requestObject?.enableBiometry === true)
    return isConfirmed ? undefined : 'ACTIVATION_FAILED'
  },
  async handle() {
    return { status: 'OK' as const }
  },
})
