// Checking an authentication code (v3 §10.5): one read, the computation without any lock, one conditional write together with its
// audit row. What is compared is the row version; a lost race is read and decided again.
import { decideAuthentication } from '../domain/authentication.ts'
import type { Attempt } from '../domain/failure-budget.ts'
import { isExpired } from '../domain/registration.ts'
import { equalPublic, fromUtf8 } from '../lib/bytes.ts'
import { lostTooManyRaces } from '../lib/errors.ts'
import { networkOf, sourceOf } from '../lib/source.ts'
import type { AuthorizationHeader, CounterMove, Protocol } from '../protocol/protocol.ts'
import { isOlderVersion } from '../protocol/wire/version-order.ts'
import { findUpgradedParties } from '../storage/activation-upgrades.ts'
import type { ActivationRow, RequestParties } from '../storage/activations.ts'
import { findMove } from './find-move.ts'
import type { ChannelParts } from './parts.ts'
import { type Effect, type Judged, type Refusal, type Settled, settleAttempt } from './settle-attempt.ts'
import { activationKeysOf, applicationSecretOf, ctrDataOf } from './secrets.ts'

export interface CodeAttempt {
  readonly header: AuthorizationHeader
  /** Upper case. */
  readonly method: string
  readonly resourceId: string
  /** What the code may cover: raw body, decrypted body, or the readings of the query. However many, they are one attempt. */
  readonly bodies: readonly Uint8Array[]
  /** The covered bytes are an encrypted or decrypted payload: the audit log gets their length only. */
  readonly isConfidential: boolean
  /** For the audit log in place of a body that holds a secret. */
  readonly auditBody: Uint8Array | undefined
  /** An activation that waits for commit and confirmation is good too (v4 §9.6). */
  readonly isPendingAccepted: boolean
  /** The activation is seen as a pending upgrade makes it; a wrong code changes nothing then (v4 §10.3). */
  readonly isUpgradeSeen: boolean
  /** Address of the caller. */
  readonly ip: string
}

export type CodeVerdict<T> =
  | { readonly valid: true; readonly activation: ActivationRow; readonly effect: T | undefined }
  | { readonly valid: false; readonly reason: Refusal | 'too_many_failures'; readonly effect: T | undefined }

/**
 * Checks a code and makes the outcome durable before it returns. An invalid code is a verdict, not an exception: its count must stay.
 * `effect` becomes part of the same transaction, for a right code and for a wrong one. After too many wrong codes of one activation from
 * one source nothing is read, computed or stored for a while: the answer is that of a wrong code, whatever the code is.
 */
export async function authenticateByCode<T = never>(
  parts: ChannelParts,
  protocol: Protocol,
  attempt: CodeAttempt,
  effect?: Effect<T>,
): Promise<CodeVerdict<T>> {
  const { activationId } = attempt.header
  const place = parts.codeFailures.take(`${sourceOf(attempt.ip)} ${activationId}`, parts.platform.now())
  if (place === undefined) return refuse(parts, attempt, 'too_many_failures', undefined)
  return giveBackUnlessWrong(place, checkCode(parts, protocol, attempt, effect))
}

/** The place of a wrong code stays taken; what failed for a reason of ours tells nothing about the code. */
async function giveBackUnlessWrong<T>(place: Attempt, check: Promise<CodeVerdict<T>>): Promise<CodeVerdict<T>> {
  let isWrong = false
  try {
    const verdict = await check
    isWrong = !verdict.valid
    return verdict
  } finally {
    if (!isWrong) place.giveBack()
  }
}

async function checkCode<T>(
  parts: ChannelParts,
  protocol: Protocol,
  attempt: CodeAttempt,
  effect: Effect<T> | undefined,
): Promise<CodeVerdict<T>> {
  const { applicationKey, activationId } = attempt.header
  // Before any read: what is remembered now is no newer than what is read then, unless the database went back.
  const known = attempt.isUpgradeSeen ? undefined : parts.recentParties.recall(applicationKey, activationId).activation
  const remembered = attempt.isUpgradeSeen ? undefined : await acceptRemembered(parts, protocol, attempt, effect)
  if (remembered?.activation) return { valid: true, activation: remembered.activation, effect: remembered.effect }
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const parties = neverBehind(parts, await findParties(parts, attempt), known)
    const judged = await judge(parts, protocol, attempt, parties, parts.settings.counterLookAhead)
    const settled = await storeVerdict(parts, attempt, parties, judged, effect)
    if (!settled) continue
    if (judged.move && settled.activation) {
      if (!attempt.isUpgradeSeen) parts.recentParties.keep({ ...parties, activation: settled.activation })
      return { valid: true, activation: settled.activation, effect: settled.effect }
    }
    return refuse(parts, attempt, judged.refusal ?? 'signature_does_not_match', settled.effect)
  }
  throw lostTooManyRaces('activation')
}

function refuse<T>(
  { events }: ChannelParts,
  { header: { activationId }, resourceId }: CodeAttempt,
  reason: Refusal | 'too_many_failures',
  effect: T | undefined,
): CodeVerdict<T> {
  events.authenticationFailed({ activationId, resourceId, reason })
  return { valid: false, reason, effect }
}

function findParties(
  { authenticationStore, db, platform }: ChannelParts,
  { header: { applicationKey, activationId }, isUpgradeSeen }: CodeAttempt,
): Promise<RequestParties> {
  const at = new Date(platform.now())
  return isUpgradeSeen
    ? findUpgradedParties(db, applicationKey, activationId, at)
    : authenticationStore.find(applicationKey, activationId, at)
}

/**
 * What was read, with the counter that this process stored last where the database has an earlier one: a row that was put back by hand,
 * by a backup or by a failover does not make used codes good again, and the next right code repairs it.
 */
function neverBehind(parts: ChannelParts, read: RequestParties, known: ActivationRow | undefined): RequestParties {
  const { activation } = read
  if (!activation?.ctrData || !known?.ctrData || known.protocolVersion !== activation.protocolVersion) return read
  const isBehind =
    known.counter > activation.counter ||
    (known.counter === activation.counter && !equalPublic(known.ctrData, activation.ctrData))
  if (!isBehind) return read
  const { activationId, counter: stored } = activation
  parts.events.counterWentBack({ activationId, stored, known: known.counter })
  return { ...read, activation: { ...activation, counter: known.counter, ctrData: known.ctrData } }
}

/**
 * Accepts the code of a phone that is remembered at exactly this counter, if nothing has changed since; undefined for everything else,
 * which is then read and decided anew. Nobody remembered costs the same: a decoy is checked.
 */
async function acceptRemembered<T>(
  parts: ChannelParts,
  protocol: Protocol,
  attempt: CodeAttempt,
  effect: Effect<T> | undefined,
): Promise<Settled<T> | undefined> {
  const { applicationKey, activationId } = attempt.header
  const parties = parts.recentParties.recall(applicationKey, activationId)
  const judged = await judge(parts, protocol, attempt, parties, 1)
  if (judged.move === undefined) return undefined
  const settled = await storeVerdict(parts, attempt, parties, judged, effect)
  if (settled) parts.recentParties.keep({ ...parties, activation: settled.activation })
  else parts.recentParties.forget(applicationKey, activationId)
  return settled
}

async function judge(
  parts: ChannelParts,
  protocol: Protocol,
  attempt: CodeAttempt,
  { version, activation }: RequestParties,
  lookAhead: number,
): Promise<Judged> {
  const { header } = attempt
  const { recordKeys } = parts
  const decoy = parts.decoys[protocol.path]
  const isVersionRight = version?.isSupported === true && version.applicationId === activation?.applicationId
  const keys = activationKeysOf(recordKeys, protocol, activation)
  const { method, resourceId } = attempt
  const applicationSecret = applicationSecretOf(recordKeys, decoy, version)
  const ctrData = (keys && ctrDataOf(recordKeys, activation)) ?? decoy.openCtrData()
  const readings = attempt.bodies.map((body) =>
    protocol.signedData({ method, resourceId, nonce: header.nonce, body, applicationSecret }),
  )
  const move = await findMove(protocol, keys ?? decoy.activationKeys, ctrData, { code: header, readings }, lookAhead)
  if (activation === undefined) return { refusal: 'activation_unknown', move: undefined, decision: undefined }
  const { state, failedAttempts, blocksInRow } = activation
  const isPendingAccepted =
    attempt.isPendingAccepted && activation.isConfirmationPending && !isExpired(activation, parts.platform.now())
  const isBiometryMissing = activation.isBiometryEnabled === false && header.factors.includes('BIOMETRY')
  const lowest = [version?.minimumVersion, activation.highestVersion]
  const isTooLow = lowest.some((other) => typeof other === 'string' && isOlderVersion(header.version, other))
  const refusal = refusalOf({ activation, keys, isVersionRight, isTooLow, isPendingAccepted, isBiometryMissing, move })
  const isCounted = header.factors !== 'POSSESSION'
  const decision = decideAuthentication(activation, { valid: refusal === undefined, isCounted, isPendingAccepted })
  if (decision.valid) return { refusal, move, decision }
  // Nobody guesses a code that can never be right: of another generation, under the key of another application or of none, or of a
  // factor that is off, or of a version that the phone has left behind (v3 §10.5, v4 §7.4). Counted, whoever learns an activation's id
  // could block its user. And what an upgrade will be is not written into what the activation is.
  const changesNothing =
    attempt.isUpgradeSeen || keys === undefined || !isVersionRight || isTooLow || refusal === 'biometry_disabled'
  return {
    refusal: refusal ?? 'activation_invalid_state',
    move: undefined,
    decision: changesNothing ? { valid: false, state, failedAttempts, blocksInRow } : decision,
  }
}

function refusalOf(found: {
  activation: ActivationRow
  keys: object | undefined
  isVersionRight: boolean
  isTooLow: boolean
  isPendingAccepted: boolean
  isBiometryMissing: boolean
  move: CounterMove | undefined
}): Refusal | undefined {
  const { activation, keys, isVersionRight, isTooLow, isPendingAccepted, isBiometryMissing, move } = found
  if (!isVersionRight) return 'activation_invalid_application'
  if (activation.state !== 'ACTIVE' && !(activation.state === 'PENDING_COMMIT' && isPendingAccepted))
    return 'activation_invalid_state'
  if (keys === undefined) return 'activation_invalid_state_ctr_mismatch'
  if (isTooLow) return 'protocol_version_too_low'
  if (isBiometryMissing) return 'biometry_disabled'
  return move === undefined ? 'signature_does_not_match' : undefined
}

/** Undefined when another request changed the activation, or the version was switched off, meanwhile. */
const storeVerdict = <T>(
  parts: ChannelParts,
  attempt: CodeAttempt,
  { version, activation }: RequestParties,
  judged: Judged,
  effect: Effect<T> | undefined,
): Promise<Settled<T> | undefined> =>
  settleAttempt(
    parts,
    activation,
    judged,
    {
      applicationId: activation?.applicationId ?? version?.applicationId ?? null,
      userId: activation?.userId ?? null,
      activationId: attempt.header.activationId,
      eventType: judged.refusal ?? 'signature_ok',
      eventData: `${attempt.method}\n${attempt.resourceId}\n${describeBody(attempt, judged.move !== undefined)}`,
      occurredAt: new Date(parts.platform.now()),
    },
    { accepted: judged.move ? attempt.header : null, network: networkOf(attempt.ip), effect },
  )

/** The body for the audit log: that of an accepted code as text up to 4 KiB, anything else by its length. */
function describeBody({ bodies, auditBody, isConfidential }: CodeAttempt, isAccepted: boolean): string {
  const body = auditBody ?? bodies[0] ?? NO_BODY
  if (isConfidential && auditBody === undefined) return `[encrypted, ${body.length} bytes]`
  // Anybody may have written what comes with a wrong code: it tells nothing of the user and is not worth its room.
  if (!isAccepted) return `[${body.length} bytes]`
  const cut = body.length > AUDIT_BODY_BYTES_MAX
  try {
    // A cut in the middle of a character would not be UTF-8; the three bytes before cannot start a longer one.
    const text = fromUtf8(cut ? body.subarray(0, lastCharacterBoundary(body, AUDIT_BODY_BYTES_MAX)) : body)
    if (text.includes('\0')) return `[binary, ${body.length} bytes]`
    return cut ? `${text}[cut, ${body.length} bytes]` : text
  } catch {
    return `[binary, ${body.length} bytes]`
  }
}

function lastCharacterBoundary(bytes: Uint8Array, limit: number): number {
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return end
}

// A round is lost only to a write that moved the activation, and those are few: wrong codes end at the maximum of failed attempts,
// right ones come from one phone.
const ROUNDS_MAX = 128
const AUDIT_BODY_BYTES_MAX = 4096
const NO_BODY = new Uint8Array(0)
