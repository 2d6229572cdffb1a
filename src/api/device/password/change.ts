// password/change: a new key of knowledge, good beside the old one until one of them is used. Spec: v4 §9.12.
import { refusalsOf, replaceFactorKey, SharedSecretRequest, SharedSecretResponse } from '../factors/replace-key.ts'
import { deviceEndpoint } from '../parts.ts'

export const passwordChange = deviceEndpoint({
  path: 'password/change',
  summary: 'Agrees on a new key of knowledge',
  description: 'The old key stays good until the new one has been used. No password travels.',
  errors: ['PASSWORD_CHANGE_FAILED'],
  order: ['factors', 'envelope', 'authenticate', 'open', 'validate'],
  authenticate: { resourceId: '/pa/password/change', factors: ['POSSESSION_KNOWLEDGE'], covers: 'body' },
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/password/change' },
  refusals: refusalsOf('PASSWORD_CHANGE_FAILED'),
  request: SharedSecretRequest,
  response: SharedSecretResponse,
  handle: ({ request, activation, parts }) =>
    replaceFactorKey(parts, activation, request, parts.protocols.v4.replaceKnowledgeKey, { refusal: 'PASSWORD_CHANGE_FAILED' }),
})
