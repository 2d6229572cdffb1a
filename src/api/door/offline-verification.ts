// POST /offline/verification: checks the digits that a user typed in for a challenge of the bank (cloud §16.2).
import { type Static, Type } from '@sinclair/typebox'
import { type OfflineVerdict, verifyOfflineAtDoor } from '../../channel/authenticate-offline.ts'
import { answerHash, describeCovered } from '../../domain/activation/door-key.ts'
import { takeOtpAttempt } from '../../domain/operation/operation.ts'
import { listProximityOtpsOf } from '../../domain/operation/proximity.ts'
import { named, withExample } from '../../http/types.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { requestRefused } from '../../lib/errors.ts'
import { parseOfflineOtp } from '../../protocol/wire/offline.ts'
import { findRegistrations } from '../../storage/activation/find.ts'
import { findChallenge, takeAttempt } from '../../storage/request/offline-challenges.ts'
import { MadeId, UserId } from '../cloud/fields.ts'
import { door, type DoorCall } from './endpoint.ts'
import {
  areFlagsRight,
  AuditText,
  composeOwn,
  NO_BODY,
  OWN_MEMBERS,
  PROOF_TERMS,
  refuseLongText,
  verdictMembers,
} from './members.ts'
import { type ChallengeTerms, openTerms } from './offline-terms.ts'
import { createRepeats, KEY_HEADER, listOf, type Repeats } from './repeat.ts'

const REASONS = ['FORM', 'CHALLENGE', 'UNKNOWN', 'CODE_WRONG', 'STATE', 'FLAGS'] as const

const OfflineCodeToVerify = named(
  'OfflineCodeToVerify',
  Type.Object({
    challengeId: withExample(MadeId, '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d'),
    activationId: Type.Optional(MadeId),
    userId: Type.Optional(UserId),
    otp: Type.String({
      description: 'what the user typed: 16 digits, in groups of eight or four with hyphens or in none',
      examples: ['12345678-12345678'],
    }),
    refusedFlags: PROOF_TERMS.refusedFlags,
    requiredFlags: PROOF_TERMS.requiredFlags,
    auditText: Type.Optional(AuditText),
  }),
)

const OfflineVerification = named(
  'OfflineVerification',
  Type.Object({
    ...verdictMembers(REASONS),
    ...OWN_MEMBERS,
    factors: Type.Optional(Type.String({ description: 'those that made a right code' })),
  }),
)

type Request = Static<typeof OfflineCodeToVerify>
type Answer = Static<typeof OfflineVerification>

export const offlineVerification = door({
  place: 'offline',
  name: 'verification',
  label: 'offline',
  operationId: 'verifyOfflineCode',
  summary: 'Verifies a code that a user typed in, for a QR code that the bank has shown',
  description:
    'Who answers is named where the challenge names no activation, and only there. A wrong code takes one of the three attempts of the challenge; ' +
    'of the activation it takes one only when it is a guess of another factor by who has its phone. `FORM` and `CHALLENGE` count nothing. Ten codes ' +
    'a minute of an activation are looked at (`PAWL_OTP_ATTEMPTS_PER_MINUTE`), then 429.',
  body: OfflineCodeToVerify,
  response: OfflineVerification,
  judge,
})

async function judge(call: DoorCall<Request>): Promise<Answer> {
  const { request, parts, asker } = call
  refuseLongText(request.auditText)
  const otp = parseOfflineOtp(request.otp)
  // A malformed password is not a guess, so nothing is counted.
  if (otp === undefined) return { isValid: false, reason: 'FORM' }
  if (asker?.idempotencyKey.replaceAll('-', '').includes(otp.replace('-', '')))
    throw requestRefused(KEY_HEADER, 'must be made by the back end, not taken from the user')
  const repeats = asker && createRepeats(parts, asker, listMembers(request))
  const { terms, roles } = await readChallenge(call, repeats)
  if (terms === undefined) return { isValid: false, reason: 'CHALLENGE' }
  const { activationId, key } = await findWho(call, terms)
  takeOtpAttempt(parts, call.applicationId, key)
  if (!(await takeAttempt(parts.db, request.challengeId, repeats?.questionHash ?? null))) {
    // The same request may have got its answer since its key was looked up.
    if (repeats !== undefined) await readChallenge(call, repeats)
    return { isValid: false, reason: 'CHALLENGE' }
  }
  return await check(call, otp, { terms, roles, activationId, repeats })
}

/** Reads a challenge. Its terms are undefined when it takes no answer (any more), or was altered. Throws the errors of Repeats.refuseKnown. */
async function readChallenge(
  { request: { challengeId }, parts, applicationId }: DoorCall<Request>,
  repeats: Repeats | undefined,
): Promise<{ readonly terms: ChallengeTerms | undefined; readonly roles: readonly string[] }> {
  const now = parts.platform.now()
  const { challenge, roles, known } = await findChallenge(parts.db, {
    challengeId,
    applicationId,
    usedHash: answerHash(challengeId),
    verdictKey: repeats?.keyHash ?? null,
    asked: repeats?.questionHash ?? null,
    at: new Date(now),
  })
  await repeats?.refuseKnown(known)
  const terms = challenge && openTerms(parts.recordKeys, challengeId, challenge.terms)
  const isAsSealed =
    terms?.applicationId === applicationId && terms.activationId === challenge?.activationId && terms.expiresAt > now
  return { terms: isAsSealed ? terms : undefined, roles }
}

/**
 * The activation that answered, as the challenge or the request names it. `key` is that of its budget of attempts, also for a user who does not
 * exist. Throws REQUEST_INVALID when neither or both name somebody, and when the user has several ACTIVE activations.
 */
async function findWho(
  { request: { activationId, userId }, parts, applicationId }: DoorCall<Request>,
  terms: ChallengeTerms,
): Promise<{ readonly activationId: string; readonly key: string }> {
  if (terms.activationId !== null) {
    const given = activationId === undefined ? 'userId' : 'activationId'
    if (activationId !== undefined || userId !== undefined)
      throw requestRefused(given, 'must be absent: the challenge names who answers')
    return { activationId: terms.activationId, key: terms.activationId }
  }
  if (activationId !== undefined && userId !== undefined) throw requestRefused('userId', 'must not stand beside activationId')
  if (activationId !== undefined) return { activationId, key: activationId }
  if (userId === undefined) throw requestRefused('activationId', 'must be present, or userId: the challenge names nobody')
  const registrations = await findRegistrations(parts.db, applicationId, userId, new Date(parts.platform.now()))
  const active = registrations.filter(({ state }) => state === 'ACTIVE')
  if (active.length > 1) throw requestRefused('activationId', 'must be present: the user has several active registrations')
  const registration = active[0] ?? registrations[0]
  // A user who does not exist has as many attempts as any other.
  return registration === undefined
    ? { activationId: NOBODY, key: `user ${userId}` }
    : { activationId: registration.activationId, key: registration.activationId }
}

interface Checked {
  readonly terms: ChallengeTerms
  readonly roles: readonly string[]
  readonly activationId: string
  readonly repeats: Repeats | undefined
}

async function check(call: DoorCall<Request>, otp: string, { terms, roles, activationId, repeats }: Checked): Promise<Answer> {
  const { request, parts, applicationId, caller, source } = call
  const { resourceId, nonce, factors, seed, expiresAt } = terms
  const body = parseBase64(terms.body) ?? NO_BODY
  const compose = (judged: OfflineVerdict): Answer => composeAnswer(request, judged, roles)
  const asked = {
    activationId,
    applicationId,
    verifiedBy: caller.username,
    source,
    eventData: `POST\n${resourceId}\n${describeCovered(body, request.auditText)}`,
    use: { valueHash: answerHash(request.challengeId), expiresAt: new Date(expiresAt) },
    keep: (judged: OfflineVerdict) => judged.verdict.activation && repeats?.keep(judged.verdict.activation, compose(judged)),
    ...(repeats !== undefined && { refuseKnown: async () => void (await readChallenge(call, repeats)) }),
  }
  const judged = await verifyOfflineAtDoor(parts, asked, {
    resourceId,
    body,
    nonceBase64: nonce,
    otp,
    componentLength: 8,
    isBiometryAllowed: factors.includes('POSSESSION_BIOMETRY'),
    isKnowledgeAllowed: factors.includes('POSSESSION_KNOWLEDGE'),
    totps: seed === null ? undefined : listProximityOtpsOf(parseBase64(seed) ?? NO_BODY, parts.platform.now()),
  })
  return judged.isUsedMeanwhile ? { isValid: false, reason: 'CHALLENGE' } : compose(judged)
}

function composeAnswer(request: Request, { verdict, factors }: OfflineVerdict, roles: readonly string[]): Answer {
  const { activation } = verdict
  if (activation === undefined) return { isValid: false, reason: 'UNKNOWN' }
  const own = composeOwn(activation, { roles })
  if (!verdict.isRight)
    return { isValid: false, reason: verdict.reason === 'activation_invalid_state' ? 'STATE' : 'CODE_WRONG', ...own }
  const details = { ...own, ...(factors !== undefined && { factors }) }
  return areFlagsRight(activation, request) ? { isValid: true, ...details } : { isValid: false, reason: 'FLAGS', ...details }
}

/** All values on which the answer depends. */
const listMembers = (request: Request): readonly (string | null)[] => [
  'offline',
  request.challengeId,
  request.activationId ?? null,
  request.userId ?? null,
  request.otp,
  listOf(request.refusedFlags),
  listOf(request.requiredFlags),
]

/** No activation has this id. */
const NOBODY = ''
