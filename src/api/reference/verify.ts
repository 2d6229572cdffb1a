// signature/verify of 1.x, auth/verify of 2.x, and token/validate: verify the code or token of a request that a phone sent to the bank (cloud §15.3).
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { OptionalOrNull } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import type { Factors } from '../../protocol/protocol.ts'
import { type CodeAnswer, judgeSent } from '../door/code.ts'
import { DOOR_ROLES, FACTORS, headersOf } from '../door/members.ts'
import { judgeTokenOf } from '../door/token.ts'
import { type Dialect, type ReferenceCall, referenceEndpoint } from './endpoint.ts'
import { ActivationId, FactorNames, Given } from './members.ts'
import { composeHeader, DATA_LENGTH_MAX, readCovered, told, Verdict } from './phone-request.ts'

export const verifyCode = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/verify`,
    operationId: 'referenceVerifyCode',
    summary: 'Verifies the code of a request that a phone sent to the bank',
    description:
      'A right code is good once, here and at every other door. `data` is what the code covers, without the secret. All that is wrong with the ' +
      `request of the phone is \`${dialect.isValid}: false\`.`,
    roles: DOOR_ROLES,
    request: CodeToVerify(dialect),
    response: Verdict(dialect.isValid, Type.String(), {
      [dialect.factors]: FactorNames,
      remainingAttempts: Type.Optional(Type.Integer()),
    }),
    handle: (call) => verify(dialect, call),
  })

/** Any factors are accepted here, because the library of the bank checks them before or after the call. */
const ANY_FACTORS = [...FACTORS]

const CodeToVerify = ({ code, factors, version, name }: Dialect) =>
  Type.Object({
    activationId: ActivationId,
    applicationKey: Given,
    data: Type.String({
      maxLength: DATA_LENGTH_MAX,
      description: 'METHOD & resource id & nonce & body, all but the first in Base64',
    }),
    [code]: Given,
    [factors]: FactorNames,
    [version]: Given,
    ...(name === 'v3' && { forcedSignatureVersion: Type.Optional(Type.Null({ description: 'not offered' })) }),
    ...(name === 'v4' && {
      allowedStates: OptionalOrNull(Type.Array(Type.Literal('ACTIVE'), { description: 'no other state is offered' })),
    }),
  }) as TObject

async function verify(dialect: Dialect, call: ReferenceCall): Promise<Static<TObject>> {
  const given = call.request as Readonly<Record<string, string>>
  const factors = given[dialect.factors] as Factors
  const answer = await judge(dialect, call, given, factors)
  call.parts.events.doorAnswered({ door: 'code', verdict: answer.reason?.toLowerCase() ?? 'valid' })
  return {
    [dialect.isValid]: answer.isValid,
    activationId: given['activationId'] ?? '',
    ...told(answer, call.applicationId),
    [dialect.factors]: factors,
    ...(answer.remainingAttempts !== undefined && { remainingAttempts: answer.remainingAttempts }),
  }
}

async function judge(
  dialect: Dialect,
  call: ReferenceCall,
  given: Readonly<Record<string, string>>,
  factors: Factors,
): Promise<CodeAnswer> {
  const { parts, source } = call
  const { signedBodyBytesMax } = parts.settings
  const covered = readCovered(given['data'] ?? '')
  if (covered !== undefined && covered.body.length > signedBodyBytesMax)
    throw requestRefused('data', `must cover a body of at most ${signedBodyBytesMax} bytes`)
  const code = given[dialect.code]
  const authorization = composeHeader({
    pa_version: given[dialect.version],
    pa_activation_id: given['activationId'],
    pa_application_key: given['applicationKey'],
    pa_nonce: covered?.nonce,
    // Each generation reads only the names of its own.
    pa_signature_type: factors,
    pa_signature: code,
    pa_auth_code_type: factors,
    pa_auth_code: code,
  })
  if (covered === undefined || authorization === undefined) return { isValid: false, reason: 'HEADER_MALFORMED' }
  const client = { address: source }
  const { method, resourceId, body } = covered
  const request = { authorization, method, resourceId, factors: ANY_FACTORS, refusedFlags: [], client }
  const sent = {
    method,
    headers: headersOf('authorization', authorization, client),
    contentType: undefined,
    body,
    query: undefined,
    ip: source,
  }
  return await judgeSent({ ...call, request, asker: undefined }, sent, [body])
}

export const validateToken = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'token/validate',
    operationId: 'referenceValidateToken',
    summary: 'Verifies the token of a request that a phone sent to the bank',
    description: 'A header is good once, here and at every other door. All that is wrong with it is `tokenValid: false`.',
    roles: DOOR_ROLES,
    request: Type.Object({
      tokenId: Given,
      tokenDigest: Given,
      nonce: Given,
      protocolVersion: Given,
      timestamp: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
    }),
    response: Verdict('tokenValid', Type.Optional(Type.String()), { [dialect.factors]: Type.Optional(FactorNames) }),
    async handle(call) {
      const { applicationId, source, parts } = call
      const { tokenId, tokenDigest, nonce, protocolVersion, timestamp } = call.request
      const token = composeHeader({
        token_id: tokenId,
        token_digest: tokenDigest,
        nonce,
        timestamp: String(timestamp),
        version: protocolVersion,
      })
      if (token === undefined) return { tokenValid: false, applicationRoles: [], activationFlags: [] }
      const asked = { token, factors: ANY_FACTORS, refusedFlags: [], client: { address: source } }
      const answer = await judgeTokenOf({ ...call, request: asked, asker: undefined })
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
