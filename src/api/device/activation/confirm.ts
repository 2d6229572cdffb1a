// activation/confirm: the phone confirms that it has its keys, and tells whether it has biometry. Spec: v4 §9.6.
import { Type } from '@sinclair/typebox'
import { parsedSignedEndpoint } from '../../../channel/flow/parsed-then-signed.ts'
import { OptionalOrNull } from '../../../http/types.ts'
import { confirmActivation } from '../../../storage/activation/keys.ts'

export const activationConfirm = parsedSignedEndpoint({
  path: 'activation/confirm',
  summary: 'Confirms an activation and switches biometry on or off',
  description: 'Before or after the commit, once. The state stays. No body is `{}`: without biometry.',
  errors: ['ACTIVATION_FAILED'],
  authenticate: { resourceId: '/pa/activation/confirm', factors: ['POSSESSION_KNOWLEDGE'], goodFor: 'CONFIRMING' },
  request: Type.Object({ requestObject: OptionalOrNull(Type.Object({ enableBiometry: OptionalOrNull(Type.Boolean()) })) }),
  async handle({ tx, activation, request }) {
    const isBiometryEnabled = request.requestObject?.enableBiometry === true
    const isConfirmed = await confirmActivation(tx, activation.activationId, isBiometryEnabled)
    return isConfirmed ? undefined : 'ACTIVATION_FAILED'
  },
})
