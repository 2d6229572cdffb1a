// token/create: issues a static token for frequent low-risk calls. The request is encrypted, then signed. Spec: v3 §11.1.
import { Type } from '@sinclair/typebox'
import { signedOpenedEndpoint } from '../../../channel/flow/signed-then-opened.ts'
import { createAuditEvent } from '../../../domain/audit/audit.ts'
import { places } from '../../../domain/secrets/secrets.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { insertToken } from '../../../storage/token/tokens.ts'
import type { DeviceParts } from '../parts.ts'

export const tokenCreate = signedOpenedEndpoint({
  path: 'token/create',
  summary: 'Issues a token for frequent low-risk calls',
  errors: [],
  authenticate: { resourceId: '/pa/token/create', factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
  encrypt: { sharedInfo1: '/pa/token/create' },
  refusal: 'TOKEN_FAILED',
  request: Type.Object({}),
  response: Type.Object({ tokenId: Type.String(), tokenSecret: Type.String() }),
  async handle({ activation, authorization, protocol, use }, { db, platform, recordKeys }: DeviceParts) {
    const tokenId = platform.uuid()
    const secret = platform.randomBytes(protocol.tokenSecretLength)
    const { factors } = authorization
    const tokenSecret = recordKeys.seal(places.tokenSecret({ ...activation, tokenId, factors }), secret)
    const audit = createAuditEvent(activation, 'token_created', { tokenId, factors }, platform.now())
    const token = { tokenId, activationId: activation.activationId, factors, tokenSecret }
    await insertToken(db, token, audit, use)
    return { tokenId, tokenSecret: toBase64(secret) }
  },
})
