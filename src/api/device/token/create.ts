// token/create: issue a static token for frequent low-risk calls. Encrypted, then signed. Spec: v3 §11.1.
import { Type } from '@sinclair/typebox'
import { createAuditEvent } from '../../../domain/audit.ts'
import { places } from '../../../domain/secrets.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { insertToken } from '../../../storage/tokens.ts'
import { deviceEndpoint } from '../parts.ts'

export const tokenCreate = deviceEndpoint({
  path: 'token/create',
  summary: 'Issues a token for frequent low-risk calls',
  errors: [],
  order: ['factors', 'envelope', 'authenticate', 'open', 'validate'],
  authenticate: {
    resourceId: '/pa/token/create',
    factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
    covers: 'body',
  },
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/token/create' },
  refusals: {
    envelope: 'AUTHENTICATION_REQUEST_INVALID',
    open: 'TOKEN_FAILED',
    plaintext: 'TOKEN_FAILED',
    request: 'TOKEN_FAILED',
  },
  request: Type.Object({}),
  response: Type.Object({ tokenId: Type.String(), tokenSecret: Type.String() }),
  async handle({ activation, authorization, protocol, parts }) {
    const tokenId = parts.platform.uuid()
    const secret = parts.platform.randomBytes(protocol.tokenSecretLength)
    const tokenSecret = parts.recordKeys.seal(places.tokenSecret(tokenId), secret)
    const { factors } = authorization
    const audit = createAuditEvent(activation, 'token_created', { tokenId, factors }, parts.platform.now())
    await insertToken(parts.db, { tokenId, activationId: activation.activationId, factors, tokenSecret }, audit)
    return { tokenId, tokenSecret: toBase64(secret) }
  },
})
