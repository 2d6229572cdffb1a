// token/validate: whether a request that a phone sent to the bank has a right token (cloud §15.3).
import { type TObject, Type } from '@sinclair/typebox'
import { judgeTokenOf } from '../../door/token.ts'
import { DOOR_ROLES } from '../../door/fields.ts'
import type { Dialect } from '../dialect.ts'
import { referenceEndpoint } from '../endpoint.ts'
import { composeHeader, told } from '../header.ts'
import { FactorNames, Given, Names, StateName } from '../members.ts'

export const validateToken = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'token/validate',
    operationId: 'referenceValidateToken',
    summary: 'Verifies the token of a request that a phone sent to the bank',
    description: 'A header is good once, here and at every other door. All that is wrong with it is `tokenValid: false`.',
    errors: [],
    roles: DOOR_ROLES,
    request: Type.Object({
      tokenId: Given,
      tokenDigest: Given,
      nonce: Given,
      protocolVersion: Given,
      timestamp: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
    }),
    response: Type.Object({
      tokenValid: Type.Boolean(),
      activationId: Type.Optional(Type.String()),
      activationStatus: Type.Optional(StateName),
      blockedReason: Type.Optional(Type.String()),
      userId: Type.Optional(Type.String()),
      applicationId: Type.Optional(Type.String()),
      [dialect.factors]: Type.Optional(FactorNames),
      applicationRoles: Names,
      activationFlags: Names,
    }) as TObject,
    async handle({ request, parts, caller, applicationId, source }) {
      const { tokenId, tokenDigest, nonce, protocolVersion, timestamp } = request
      const token = composeHeader({
        token_id: tokenId,
        token_digest: tokenDigest,
        nonce,
        timestamp: String(timestamp),
        version: protocolVersion,
      })
      if (token === undefined) return { tokenValid: false, applicationRoles: [], activationFlags: [] }
      const { username, rights } = caller
      const asked = { token, factors: [...FACTORS], refusedFlags: [], client: { address: source } }
      const answer = await judgeTokenOf({ request: asked, applicationId, username, rights, source, asker: undefined, parts })
      const { isValid, activationId, factors } = answer
      parts.events.doorAnswered({ door: 'token', verdict: answer.reason?.toLowerCase() ?? 'valid' })
      return {
        tokenValid: isValid,
        ...(activationId !== undefined && { activationId }),
        ...told(answer, applicationId),
        ...(factors !== undefined && { [dialect.factors]: factors }),
      }
    },
  })

/** The library of the bank looks at them after it has called. */
const FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] as const
