// POST /verification/code: verifies the code of a request that a phone sent to the bank (cloud §12.2).
import { type Static, Type } from '@sinclair/typebox'
import { type DeviceRequest, receive } from '../../channel/stages/receive.ts'
import type { Refusal } from '../../channel/stages/decision.ts'
import type { JudgedAtDoor } from '../../channel/stages/attempt.ts'
import { verifyAtDoor } from '../../channel/stages/code.ts'
import { describeCovered } from '../../domain/activation/door-key.ts'
import { named, OneOf } from '../../http/types.ts'
import { PawlError } from '../../lib/errors.ts'
import type { AuthorizationHeader } from '../../protocol/protocol.ts'
import type { ReadParties } from '../../storage/request/lookup.ts'
import { door, type DoorCall } from './endpoint.ts'
import {
  areFlagsRight,
  AuditText,
  Client,
  composeOwn,
  FACTORS_WITHOUT,
  HeaderOfPhone,
  Method,
  OWN_MEMBERS,
  PROOF_TERMS,
  readSent,
  refuseLongText,
  ResourceId,
  verdictMembers,
} from './members.ts'
import { createRepeats, listOf, refuseKeyOfPhone, type Repeats } from './repeat.ts'

const REASONS = [
  'HEADER_MALFORMED',
  'FACTORS_NOT_ALLOWED',
  'UNKNOWN',
  'CODE_WRONG',
  'STATE',
  'VERSION_OFF',
  'PROTOCOL_TOO_LOW',
  'BIOMETRY_OFF',
  'TOO_MANY_FAILURES',
  'FLAGS',
] as const

const CodeToVerify = named(
  'CodeToVerify',
  Type.Object({
    authorization: HeaderOfPhone(
      'value of X-PowerAuth-Authorization or X-Svc-Authorization, with its scheme word',
      'PowerAuth pa_activation_id="...", pa_application_key="...", pa_nonce="...", ...',
    ),
    method: Method,
    resourceId: ResourceId,
    body: Type.Optional(
      Type.String({
        description: 'Base64 of the bytes as the bank received them, before any parsing',
        examples: ['eyJhbW91bnQiOjF9'],
      }),
    ),
    query: Type.Optional(
      Type.String({
        // The limit is that of the headers of a request to pawl. The query is read before the code is checked.
        pattern: '^[^]{0,16384}$',
        description: 'must be at most 16384 characters: the raw query string without its question mark, never parsed by the bank',
        examples: ['from=2026-01-01'],
      }),
    ),
    ...PROOF_TERMS,
    client: Client,
    auditText: Type.Optional(AuditText),
  }),
)

export const CodeVerification = named(
  'CodeVerification',
  Type.Object({
    ...verdictMembers(REASONS),
    covered: Type.Optional(
      OneOf(['BODY', 'QUERY'], {
        description: 'what the code covers beside method and resource id; the other one may be of anybody',
      }),
    ),
    ...OWN_MEMBERS,
  }),
)

type Request = Static<typeof CodeToVerify>
export type CodeAnswer = Static<typeof CodeVerification>
/** The flags that the activation must have and not have. */
type FlagTerms = Pick<Request, 'refusedFlags' | 'requiredFlags'>

export const verificationCode = door({
  name: 'code',
  operationId: 'verifyCode',
  summary: 'Verifies the code of a request that a phone sent to the bank',
  description:
    'A right code is good once, over all doors and processes. What is wrong with the request of the phone is `isValid: false` with a `reason`; 400 ' +
    'says what is wrong with the call of the bank. Details stand in answers on activations of the own application only. The code covers the body or ' +
    'the query, not both: `covered` says which. docs/DOORS.md says how to use it safely.',
  body: CodeToVerify,
  response: CodeVerification,
  judge,
})

async function judge(call: DoorCall<Request>): Promise<CodeAnswer> {
  const { request, parts } = call
  const sent = readSent(request, 'authorization', request.authorization, parts.settings.signedBodyBytesMax)
  refuseLongText(request.auditText)
  return await judgeSent(call, sent)
}

/**
 * Judges the code of a phone's request. `composed` has the covered bytes if the caller has composed them itself. Such a caller does not name the
 * address of the phone (AtDoor.isSourceUnknown).
 */
export async function judgeSent(
  call: DoorCall<Request>,
  sent: DeviceRequest,
  composed?: readonly Uint8Array[],
): Promise<CodeAnswer> {
  const { request, parts, asker, applicationId } = call
  const { authorization, factors = FACTORS_WITHOUT, auditText } = request
  const { protocols } = parts
  const received = receive([protocols.v3, protocols.v4], sent, { isJson: false, contradiction: undefined })
  const header = received.protocol.parseAuthorizationHeader(authorization, received.headers.schemes)
  if (header === undefined) return { isValid: false, reason: 'HEADER_MALFORMED' }
  if (asker !== undefined) refuseKeyOfPhone(asker.idempotencyKey, { nonce: header.nonce, text: header.code })
  const bodies = composed ?? received.protocol.coveredBodies(received.request)
  const covered = bodies[0] === sent.body ? 'BODY' : 'QUERY'
  if (!factors.includes(header.factors)) return { isValid: false, reason: 'FACTORS_NOT_ALLOWED', covered }
  const repeats = asker && createRepeats(parts, asker, listMembers(request, sent.method))
  const find = () => findParties(call, header, repeats)
  const compose = (judged: JudgedAtDoor): CodeAnswer => composeAnswer(request, header, covered, judged)
  try {
    const judged = await verifyAtDoor(parts, received, {
      header,
      resourceId: request.resourceId,
      bodies,
      audited: { text: describeCovered(bodies[0] ?? sent.body, auditText) },
      atDoor: {
        applicationId,
        find,
        keep: (given) => given.verdict.activation && repeats?.keep(given.verdict.activation, compose(given)),
        verifiedBy: call.caller.username,
        isSourceUnknown: composed !== undefined,
      },
    })
    return compose(judged)
  } catch (error) {
    // This error is thrown only when the budget of wrong codes is used up.
    if (!(error instanceof PawlError) || error.code !== 'AUTHENTICATION_CODE_INVALID') throw error
    // The same call may have got its answer before the budget was used up.
    if (repeats !== undefined) await find()
    return { isValid: false, reason: 'TOO_MANY_FAILURES', covered }
  }
}

/** All values on which the answer depends. */
const listMembers = (request: Request, method: string): readonly (string | null)[] => [
  'code',
  request.authorization,
  method,
  request.resourceId,
  request.body ?? '',
  request.query ?? '',
  listOf(request.factors),
  listOf(request.refusedFlags),
  listOf(request.requiredFlags),
]

/** Reads version and activation of a header. Throws the errors of Repeats.refuseKnown. */
async function findParties(
  { parts }: DoorCall<Request>,
  { applicationKey, activationId }: AuthorizationHeader,
  repeats: Repeats | undefined,
): Promise<ReadParties> {
  const at = new Date(parts.platform.now())
  const verdictKey = repeats?.keyHash ?? null
  const { parties, known } = await parts.authenticationStore.findAtDoor({ applicationKey, activationId, at, verdictKey })
  await repeats?.refuseKnown(known)
  return parties
}

export function composeAnswer(
  request: FlagTerms,
  { factors, version: protocolVersion }: AuthorizationHeader,
  covered: 'BODY' | 'QUERY',
  { verdict, version }: JudgedAtDoor,
): CodeAnswer {
  const { activation } = verdict
  // A version of another application counts as unknown.
  if (activation === undefined || version === undefined) return { isValid: false, reason: 'UNKNOWN', covered }
  const flagsReason = areFlagsRight(activation, request) ? undefined : 'FLAGS'
  const reason = verdict.isRight ? flagsReason : REASON_OF[verdict.reason]
  const own = composeOwn(activation, { versionName: version.name, roles: version.roles })
  const details = { covered, ...own, factors, protocolVersion }
  return reason === undefined ? { isValid: true, ...details } : { isValid: false, reason, ...details }
}

const REASON_OF: Readonly<Record<Refusal, (typeof REASONS)[number]>> = {
  signature_does_not_match: 'CODE_WRONG',
  activation_invalid_application: 'VERSION_OFF',
  activation_invalid_state: 'STATE',
  activation_invalid_state_ctr_mismatch: 'STATE',
  biometry_disabled: 'BIOMETRY_OFF',
  protocol_version_too_low: 'PROTOCOL_TOO_LOW',
  activation_unknown: 'UNKNOWN',
}
