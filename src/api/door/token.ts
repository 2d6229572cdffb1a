// POST /verification/token: verifies the token of a request that a phone sent to the bank (cloud §12.3).
import { type Static, Type } from '@sinclair/typebox'
import { tokenValue } from '../../channel/replay.ts'
import { type Received, receive } from '../../channel/stages/receive.ts'
import { type JudgedToken, judgeToken } from '../../channel/stages/token.ts'
import { named } from '../../http/types.ts'
import { toBase64 } from '../../lib/base64.ts'
import type { TokenHeader } from '../../protocol/protocol.ts'
import { type DoorToken, findDoorToken, useTokenAtDoor } from '../../storage/request/door-token.ts'
import { door, type DoorCall } from './endpoint.ts'
import {
  areFlagsRight,
  Client,
  composeOwn,
  FACTORS_WITHOUT,
  HeaderOfPhone,
  headersOf,
  NO_BODY,
  OWN_MEMBERS,
  PROOF_TERMS,
  readAddress,
  verdictMembers,
} from './members.ts'
import { createRepeats, listOf, refuseKeyOfPhone, type Repeats } from './repeat.ts'

const REASONS = ['HEADER_MALFORMED', 'UNKNOWN', 'DIGEST_WRONG', 'STATE', 'TIME', 'USED', 'FACTORS_NOT_ALLOWED', 'FLAGS'] as const

const TokenToVerify = named(
  'TokenToVerify',
  Type.Object({
    token: HeaderOfPhone(
      'value of X-PowerAuth-Token or X-Svc-Token, with its scheme word',
      'PowerAuth token_id="...", token_digest="...", nonce="...", ...',
    ),
    ...PROOF_TERMS,
    isRepeatable: Type.Optional(
      Type.Boolean({
        description: 'the same header may come again within its window, and nothing is written: for reads that poll',
      }),
    ),
    client: Client,
  }),
)

const TokenVerification = named(
  'TokenVerification',
  Type.Object({
    ...verdictMembers(REASONS),
    tokenId: Type.Optional(Type.String({ format: 'uuid' })),
    ...OWN_MEMBERS,
  }),
)

type Request = Static<typeof TokenToVerify>
type Answer = Static<typeof TokenVerification>

export const verificationToken = door({
  name: 'token',
  operationId: 'verifyToken',
  summary: 'Verifies the token of a request that a phone sent to the bank',
  description:
    'A token proves who sends and covers nothing of the request, neither body nor query: for reads of low risk only. A header is good once over all ' +
    'doors and processes, unless `isRepeatable`. Wrong tokens are never counted. docs/DOORS.md says how to use it safely.',
  body: TokenToVerify,
  response: TokenVerification,
  judge: judgeTokenOf,
})

export async function judgeTokenOf(call: DoorCall<Request>): Promise<Answer> {
  const { request, parts, asker } = call
  const { isRepeatable = false, client } = request
  const { protocols } = parts
  const headers = headersOf('token', request.token, client)
  const sent = { method: 'POST', headers, contentType: undefined, body: NO_BODY, query: undefined, ip: readAddress(client) }
  const received = receive([protocols.v3, protocols.v4], sent, { isJson: false, contradiction: undefined })
  const header = received.protocol.parseTokenHeader(request.token, received.headers.schemes)
  if (header === undefined) return { isValid: false, reason: 'HEADER_MALFORMED' }
  if (asker !== undefined) refuseKeyOfPhone(asker.idempotencyKey, { nonce: header.nonce, text: toBase64(header.digest) })
  // No verdict is stored for a header that the phone may repeat, because it would be right again.
  const repeats = asker && !isRepeatable ? createRepeats(parts, asker, listMembers(request)) : undefined
  const found = await findOwn(call, received, header, repeats)
  const terms = { resourceId: RESOURCE, factors: request.factors ?? FACTORS_WITHOUT, isRepeatable }
  const judged = judgeToken(parts, received.protocol, header, terms, found)
  const answer = composeAnswer(request, header, judged, found)
  if (!judged.isRight) return answer
  if (await useUp(parts, judged, answer, repeats)) return answer
  // Another request with this key, or with this header, came first.
  const again = await findOwn(call, received, header, repeats)
  return composeAnswer(request, header, { isRight: false, reason: 'USED' }, again)
}

/** All values on which the answer depends. */
const listMembers = (request: Request): readonly (string | null)[] => [
  'token',
  request.token,
  listOf(request.factors),
  listOf(request.refusedFlags),
  listOf(request.requiredFlags),
]

/** Reads a token with its activation. A token of another application counts as unknown. Throws the errors of Repeats.refuseKnown. */
async function findOwn(
  { parts, applicationId }: DoorCall<Request>,
  { protocol }: Received,
  header: TokenHeader,
  repeats: Repeats | undefined,
): Promise<DoorToken> {
  const { settings, platform } = parts
  const windowSeconds = protocol.hasShortTokenWindow(header.version)
    ? settings.requestWindowSeconds
    : settings.legacyTokenWindowSeconds
  const found = await findDoorToken(parts.db, {
    tokenId: header.tokenId,
    at: new Date(platform.now()),
    tokenValue: tokenValue(header, windowSeconds).valueHash,
    verdictKey: repeats?.keyHash ?? null,
  })
  await repeats?.refuseKnown(found.known)
  return found.token?.applicationId === applicationId ? found : { ...found, token: undefined, activation: undefined }
}

/** Uses up the header, and stores the answer under its key. False when the header was used, or the key has an answer. */
async function useUp(
  { db, useUniqueValues }: DoorCall<Request>['parts'],
  { bearer, uniqueValues }: JudgedToken & { readonly isRight: true },
  answer: Answer,
  repeats: Repeats | undefined,
): Promise<boolean> {
  const [value] = uniqueValues
  if (value === undefined || repeats === undefined) return await useUniqueValues(uniqueValues)
  return await useTokenAtDoor(db, bearer.activationId, value, repeats.keep(bearer, answer))
}

function composeAnswer(
  request: Request,
  header: TokenHeader,
  judged: JudgedToken,
  { token, activation, roles }: DoorToken,
): Answer {
  if (token === undefined || activation === undefined) return { isValid: false, reason: 'UNKNOWN' }
  const flagsReason = areFlagsRight(activation, request) ? undefined : 'FLAGS'
  const reason = judged.isRight ? flagsReason : judged.reason
  const { tokenId, factors } = token
  const details = { tokenId, ...composeOwn(activation, { roles }), factors, protocolVersion: header.version }
  return reason === undefined ? { isValid: true, ...details } : { isValid: false, reason, ...details }
}

/** The log shows this path, because a token has no resource id. */
const RESOURCE = '/verification/token'
