// token/remove: forget a token of this activation. The same answer whether or not there was one. Spec: v3 §11.4.
import { Type } from '@sinclair/typebox'
import { createAuditEvent } from '../../../domain/audit.ts'
import { NotBlank, ObjectRequest, ObjectResponse, ok } from '../../../http/types.ts'
import { deleteToken } from '../../../storage/tokens.ts'
import { deviceEndpoint } from '../parts.ts'

export const tokenRemove = deviceEndpoint({
  path: 'token/remove',
  summary: 'Forgets a token',
  description: 'The same answer whether or not there was one.',
  errors: [],
  order: ['factors', 'authenticate', 'validate'],
  authenticate: {
    resourceId: '/pa/token/remove',
    factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
    covers: 'body',
  },
  request: ObjectRequest(Type.Object({ tokenId: NotBlank(255) })),
  response: ObjectResponse(Type.Object({ tokenId: Type.String() })),
  async handle({ request, activation, parts }) {
    const { tokenId } = request.requestObject
    const audit = createAuditEvent(activation, 'token_removed', { tokenId }, parts.platform.now())
    await deleteToken(parts.db, activation.activationId, tokenId, audit)
    return ok({ tokenId })
  },
})
