// password/change: agrees on a new key of knowledge. The old key stays valid until a code is made with either of the two. Spec: v4 §9.12.
import { signedOpenedEndpoint } from '../../../channel/flow/signed-then-opened.ts'
import { replaceFactorKey, SharedSecretRequest, SharedSecretResponse } from '../factors/replace-key.ts'
import type { DeviceParts } from '../parts.ts'

export const passwordChange = signedOpenedEndpoint({
  path: 'password/change',
  summary: 'Agrees on a new key of knowledge',
  description: 'The old key stays good until the new one has been used. No password travels.',
  errors: ['PASSWORD_CHANGE_FAILED'],
  authenticate: { resourceId: '/pa/password/change', factors: ['POSSESSION_KNOWLEDGE'] },
  encrypt: { sharedInfo1: '/pa/password/change' },
  refusal: 'PASSWORD_CHANGE_FAILED',
  request: SharedSecretRequest,
  response: SharedSecretResponse,
  handle: ({ request, activation, use }, parts: DeviceParts) =>
    replaceFactorKey(parts, activation, request, parts.protocols.v4.replaceKnowledgeKey, {
      refusal: 'PASSWORD_CHANGE_FAILED',
      use,
    }),
})
