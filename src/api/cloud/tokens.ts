// /v2/registrations/{id}/tokens: lists and removes the tokens with which a phone reads without its PIN. Spec: cloud §12.6.
import { Type } from '@sinclair/typebox'
import { composeEventData } from '../../domain/audit/audit.ts'
import { PawlError, requestRefused } from '../../lib/errors.ts'
import { deleteTokenOfRegistration, listTokens } from '../../storage/token/tokens.ts'
import { applicationOf } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { Identifier, MadeId, OfMadeId, State, Time } from './fields.ts'

const tokensList = cloudEndpoint({
  route: 'GET /v2/registrations/:id/tokens',
  operationId: 'listTokens',
  summary: 'The tokens of a registration',
  description:
    'The oldest first, 1,000 at the most. `factors` are those that the phone made the token with. Tokens of a registration that is not ACTIVE ' +
    'are good for nothing. A secret is never shown.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  params: OfMadeId,
  response: Type.Object(
    {
      activationId: Type.String(),
      userId: Type.String(),
      state: State,
      tokens: Type.Array(Type.Object({ tokenId: Type.String(), factors: Type.String(), createdAt: Time })),
    },
    { title: 'Tokens' },
  ),
  async handle(call) {
    const { db, platform } = call.parts
    const registration = { applicationId: await applicationOf(call), activationId: call.params.id }
    const found = await listTokens(db, registration, new Date(platform.now()))
    if (found === undefined) throw new PawlError('REGISTRATION_NOT_FOUND')
    return { ...found, tokens: found.tokens.map((token) => ({ ...token, createdAt: token.createdAt.getTime() })) }
  },
})

const tokenRemove = cloudEndpoint({
  route: 'DELETE /v2/registrations/:id/tokens/:tokenId',
  operationId: 'removeToken',
  summary: 'Removes a token',
  description:
    'Its header is refused from then on, at every door and every endpoint of pawl. The phone makes another one when it needs it.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  params: Type.Object({ id: MadeId, tokenId: Identifier }),
  async handle(call) {
    const { db, platform } = call.parts
    const { id: activationId, tokenId } = call.params
    const { isRegistration, isDeleted } = await deleteTokenOfRegistration(
      db,
      { applicationId: await applicationOf(call), activationId },
      tokenId,
      {
        eventType: 'token_removed',
        eventData: composeEventData({ tokenId }),
        verifiedBy: call.caller.username,
        occurredAt: new Date(platform.now()),
      },
    )
    if (!isRegistration) throw new PawlError('REGISTRATION_NOT_FOUND')
    if (!isDeleted) throw requestRefused('tokenId', 'the registration has no such token', tokenId)
  },
})

export const tokenEndpoints = [tokensList, tokenRemove]
