// biometry/add: switches biometry on with a new key. Spec: v4 §9.13.
import { refusalsOf, replaceFactorKey, SharedSecretRequest, SharedSecretResponse } from '../factors/replace-key.ts'
import { deviceEndpoint } from '../parts.ts'

export const biometryAdd = deviceEndpoint({
  path: 'biometry/add',
  summary: 'Switches biometry on with a new key',
  errors: ['BIOMETRY_FAILED'],
  order: ['factors', 'envelope', 'authenticate', 'open', 'validate'],
  authenticate: { resourceId: '/pa/biometry/add', factors: ['POSSESSION_KNOWLEDGE'], covers: 'body' },
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/biometry/add' },
  refusals: refusalsOf('BIOMETRY_FAILED'),
  request: SharedSecretRequest,
  response: SharedSecretResponse,
  handle: ({ request, activation, parts }) =>
    replaceFactorKey(parts, activation, request, parts.protocols.v4.addBiometryKey, {
      refusal: 'BIOMETRY_FAILED',
      isBiometryEnabled: true,
    }),
})
