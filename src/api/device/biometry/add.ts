// biometry/add: switches biometry on with a new key. Spec: v4 §9.13.
import { signedOpenedEndpoint } from '../../../channel/flow/signed-then-opened.ts'
import { replaceFactorKey, SharedSecretRequest, SharedSecretResponse } from '../factors/replace-key.ts'
import type { DeviceParts } from '../parts.ts'

export const biometryAdd = signedOpenedEndpoint({
  path: 'biometry/add',
  summary: 'Switches biometry on with a new key',
  errors: ['BIOMETRY_FAILED'],
  authenticate: { resourceId: '/pa/biometry/add', factors: ['POSSESSION_KNOWLEDGE'] },
  encrypt: { sharedInfo1: '/pa/biometry/add' },
  refusal: 'BIOMETRY_FAILED',
  request: SharedSecretRequest,
  response: SharedSecretResponse,
  handle: ({ request, activation, use }, parts: DeviceParts) =>
    replaceFactorKey(parts, activation, request, parts.protocols.v4.addBiometryKey, {
      refusal: 'BIOMETRY_FAILED',
      isBiometryEnabled: true,
      use,
    }),
})
