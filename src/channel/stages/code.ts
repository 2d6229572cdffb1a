// Checks an authentication code (v3 §10.5): one read, the computation without a lock, and one conditional write with the audit row. The write
// compares the row version. After a lost race the code is read and judged again. Wrong codes of one activation from one source are limited.
import { places } from '../../domain/secrets/secrets.ts'
import { PawlError } from '../../lib/errors.ts'
import { networkOf, sourceOf } from '../../lib/address.ts'
import { untilSettled } from '../../lib/until-settled.ts'
import { inStage } from '../../lib/trace.ts'
import type { EncryptionHeader } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { AuthenticationOutcome } from '../../storage/request/authentication.ts'
import type { ReadParties, RequestParties } from '../../storage/request/lookup.ts'
import { findUpgradedParties } from '../../storage/request/upgrade.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import { inTransaction, type Tx } from '../../storage/database/database.ts'
import type { ChannelParts } from '../parts.ts'
import { type AtDoor, type CodeAttempt, type CodePolicy, describeBody, type JudgedAtDoor } from './attempt.ts'
import {
  type CodeDecision,
  type CodeVerdict,
  composeDecision,
  type Judged,
  noteBlock,
  type StoredDecision,
  storeDecision,
  storeDecisionAlone,
} from './decision.ts'
import { judgeCode } from './judge.ts'
import type { Received } from './receive.ts'

/** The application version and the activation that sent a right code. */
interface Authenticated {
  readonly version: VersionRow
  /** The activation after the code was stored. */
  readonly activation: ActivationRow
}

/** One round of an attempt. `read` has rows that were read earlier for the same request, if any. */
interface Turn {
  readonly read: RequestParties | undefined
  readonly round: number
}

/** A decision with the values from which it was made. */
interface DecidedCode extends CodeDecision {
  readonly attempt: CodeAttempt
  readonly parties: RequestParties
}

/**
 * Checks a code, and stores the outcome before it returns. Throws AUTHENTICATION_CODE_INVALID for a wrong code, after its count is stored, and
 * `use.refusal` for a right one whose value was used meanwhile. `read` has version and activation if they were read for the same request; the
 * first round then needs no read.
 */
export async function authenticate(
  parts: ChannelParts,
  received: Received,
  attempt: CodeAttempt,
  read?: RequestParties,
): Promise<Authenticated> {
  const checkCode = async () => {
    const { verdict, parties, stored } = await settleCode(parts, received, attempt, read)
    if (!verdict.isRight) throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: verdict.reason })
    refuseUsed(attempt, verdict, stored)
    // A right code always has a version.
    if (parties.version === undefined) throw new TypeError('a right code under no version')
    return { version: parties.version, activation: verdict.activation }
  }
  return await inStage('check code', checkCode)
}

/**
 * Checks a code at a door, where a wrong code is a verdict, too. Throws AUTHENTICATION_CODE_INVALID only for a code beyond the limit of wrong codes,
 * and `use.refusal` for a right one whose value was used meanwhile. `read` is as for authenticate.
 */
export async function verifyAtDoor(
  parts: ChannelParts,
  received: Received,
  attempt: CodeAttempt & { readonly atDoor: AtDoor },
  read?: RequestParties,
): Promise<JudgedAtDoor> {
  const settle = () => settleCode(parts, received, attempt, read)
  const { verdict, parties, stored } = await inStage('check code', settle)
  refuseUsed(attempt, verdict, stored)
  return { verdict, version: parties.version }
}

/** Throws `use.refusal` for a right code whose value was used by another request. */
function refuseUsed({ use }: CodeAttempt, { isRight }: CodeVerdict, stored: 'STORED' | 'USED_MEANWHILE'): void {
  if (use && isRight && stored === 'USED_MEANWHILE')
    throw new PawlError(use.refusal, { detail: 'used meanwhile by another request' })
}

/** Judges a code, stores the decision, and logs it. */
async function settleCode(parts: ChannelParts, received: Received, attempt: CodeAttempt, read: RequestParties | undefined) {
  return await withinFailureBudget(parts, received, attempt, async () => {
    const decided = await untilSettled('activation', async (round) => {
      const decision = await decideCode(parts, received, attempt, { read, round })
      const stored = decision && (await storeDecisionAlone(parts, decision))
      return stored && { ...decision, stored }
    })
    noteDecision(parts, decided)
    return decided
  })
}

/**
 * Checks a code in one transaction with the decision of the endpoint. `within` is called for a wrong code, too, because the count that it
 * stores must stay. Returns after the commit, also for a wrong code. Throws AUTHENTICATION_CODE_INVALID only for a code beyond the limit of
 * wrong codes.
 */
export async function authenticateWithin<T>(
  parts: ChannelParts,
  received: Received,
  attempt: CodeAttempt,
  within: (tx: Tx, stored: StoredDecision) => Promise<T>,
): Promise<{ readonly verdict: CodeVerdict; readonly result: T }> {
  const checkCodeWithin = async () => {
    const { decision, ...settled } = await untilSettled('activation', async (round) => {
      const decision = await decideCode(parts, received, attempt, { read: undefined, round })
      if (decision === undefined) return undefined
      return await inTransaction(parts.db, async (tx) => {
        const stored = await storeDecision(tx, decision, attempt.decides)
        return stored && { decision, verdict: stored.verdict, result: await within(tx, stored) }
      })
    })
    noteDecision(parts, decision)
    return settled
  }
  return await inStage('check code', () => withinFailureBudget(parts, received, attempt, checkCodeWithin))
}

/**
 * Reads version and activation, judges the code, and composes the decision. Nothing is stored yet. Undefined if the end of a block had to be stored
 * first: the caller decides again in the next round.
 */
async function decideCode(
  parts: ChannelParts,
  received: Received,
  attempt: CodeAttempt,
  turn: Turn,
): Promise<DecidedCode | undefined> {
  const { parties, judged } = await readAndJudge(parts, received, attempt, turn)
  const { version, activation } = parties
  const { header, resourceId, bodies, audited, atDoor } = attempt
  const body = describeBody(bodies[0] ?? NO_BODY, audited, judged.isRight)
  const audit = {
    applicationId: activation?.applicationId ?? version?.applicationId ?? null,
    userId: activation?.userId ?? null,
    activationId: header.activationId,
    eventType: judged.isRight ? 'signature_ok' : judged.refusal,
    eventData: `${received.request.method}\n${resourceId}\n${body}`,
    verifiedBy: atDoor?.verifiedBy,
    occurredAt: new Date(parts.platform.now()),
  }
  const decision = await composeDecision(parts, activation, judged, audit, {
    madeUnder: header,
    strangersNetwork: activation === undefined ? networkOf(received.client.ip) : undefined,
    use: attempt.use?.value,
    secondUse: attempt.use?.second,
  })
  if (decision === undefined) return undefined
  const write = decision.write && atDoor ? withVerdict(decision.write, atDoor, decision.verdict, version) : decision.write
  return { ...decision, write, attempt, parties }
}

/** Adds the verdict of a door to a decision: the statement also checks the values that the verdict names, and stores the verdict. */
const withVerdict = (
  write: AuthenticationOutcome,
  { keep }: AtDoor,
  verdict: CodeVerdict,
  version: VersionRow | undefined,
): AuthenticationOutcome => ({
  ...write,
  ...(verdict.isRight &&
    version && { told: { flags: verdict.activation.flags, versionName: version.name, roles: version.roles.join(',') } }),
  kept: keep({ verdict, version }),
})

/**
 * Judges a remembered phone without a read, at exactly its next counter value. The conditional write then compares the remembered row version, so
 * memory decides only acceptances. The write of a wrong guess fails, and the next round reads. If no phone is remembered, a wrong code is checked
 * against a decoy, too, so that it costs as much.
 */
async function readAndJudge(
  parts: ChannelParts,
  { protocol, request: { method } }: Received,
  attempt: CodeAttempt,
  { read, round }: Turn,
): Promise<{ readonly parties: RequestParties; readonly judged: Judged }> {
  const code = { ...attempt, method }
  const isAsked = round === 0 && read === undefined && attempt.goodFor !== 'UPGRADING'
  const remembered = isAsked ? ownOf(attempt, recall(parts, attempt.header)) : undefined
  const judgeRemembered = (parties: RequestParties) => judgeCode(parts, protocol, code, parties, 1)
  if (remembered?.activation !== undefined) {
    const judged = judgeRemembered(remembered)
    if (judged.isRight) return { parties: remembered, judged }
    // A wrong guess tries the write, too, for a version that no row has. Otherwise the time of a refusal would tell a thief of the possession key
    // that the guess was right, once in each process that does not know yet that another one blocked the phone.
    const unmatched = { ...remembered.activation, rowVersion: NO_VERSION }
    if (judged.isGuess) return { parties: { ...remembered, activation: unmatched }, judged }
  }
  const find = attempt.atDoor?.find ?? (() => findParties(parts, attempt.header, attempt.goodFor))
  const parties = ownOf(attempt, (round === 0 ? read : undefined) ?? (await find()))
  const judged = judgeCode(parts, protocol, code, parties, parts.settings.counterLookAhead)
  if (remembered !== undefined && remembered.activation === undefined && !judged.isRight) judgeRemembered(remembered)
  return { parties, judged }
}

/** Returns version and activation, without those of another application than the bank's. */
function ownOf({ atDoor }: CodeAttempt, parties: RequestParties): RequestParties {
  if (atDoor === undefined) return parties
  const { version, activation } = parties
  const isOwn = (party: { readonly applicationId: string } | undefined) => party?.applicationId === atDoor.applicationId
  return { version: isOwn(version) ? version : undefined, activation: isOwn(activation) ? activation : undefined }
}

/**
 * Reads version and activation in one statement; either may be missing. For UPGRADING, the activation has the values of its pending upgrade (v4
 * §10.3).
 */
export async function findParties(
  { db, authenticationStore, platform }: Pick<ChannelParts, 'db' | 'authenticationStore' | 'platform'>,
  { applicationKey, activationId = '' }: Pick<EncryptionHeader, 'applicationKey' | 'activationId'>,
  goodFor: CodePolicy = 'ACTIVE',
): Promise<ReadParties> {
  const names = { applicationKey, activationId, at: new Date(platform.now()) }
  const find = goodFor === 'UPGRADING' ? () => findUpgradedParties(db, names) : () => authenticationStore.find(names)
  return await inStage('find parties', find)
}

/**
 * The remembered rows of a phone. Both are undefined if the sealed record of the activation has a form that is no longer accepted, because it then
 * has to be read.
 */
function recall({ authenticationStore, recordKeys }: ChannelParts, header: CodeAttempt['header']): RequestParties {
  const remembered = authenticationStore.recall(header)
  const { activation } = remembered
  const isTaken = !activation?.masterSecret || recordKeys.isTaken(places.masterSecret(activation), activation.masterSecret)
  return isTaken ? remembered : { version: undefined, activation: undefined }
}

/** Logs a stored decision, and remembers the phone of a right code. */
function noteDecision(parts: ChannelParts, decided: DecidedCode): void {
  const { attempt, verdict, parties } = decided
  noteBlock(parts, decided)
  const { version, factors } = attempt.header
  const result = verdict.isRight ? 'accepted' : verdict.reason
  parts.events.authenticationChecked({ version, type: factors.toLowerCase(), result })
  if (!verdict.isRight) {
    const { activationId } = attempt.header
    parts.events.authenticationFailed({ activationId, resourceId: attempt.resourceId, reason: verdict.reason })
  } else if (attempt.goodFor !== 'UPGRADING') parts.authenticationStore.remember({ ...parties, activation: verdict.activation })
}

/**
 * Runs `check` unless there were too many wrong codes of this activation from this source within the minute. Beyond the limit nothing is read,
 * computed or stored, and every code is refused like a wrong one (AUTHENTICATION_CODE_INVALID). A wrong code uses up one place of the budget.
 */
async function withinFailureBudget<T extends { readonly verdict: CodeVerdict }>(
  parts: ChannelParts,
  { client }: Received,
  attempt: CodeAttempt,
  check: () => Promise<T>,
): Promise<T> {
  const { header, resourceId, atDoor } = attempt
  const { activationId, version, factors } = header
  const place = parts.codeFailures.takeIfLeft(budgetKeyOf(attempt, client.ip), parts.platform.monotonic())
  if (place === undefined) {
    parts.events.authenticationChecked({ version, type: factors.toLowerCase(), result: 'too_many_failures' })
    parts.events.authenticationFailed({ activationId, resourceId, reason: 'too_many_failures' })
    throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: 'too_many_failures' })
  }
  let isWrong = false
  try {
    const checked = await check()
    const { verdict } = checked
    isWrong = !verdict.isRight && (atDoor?.isSourceUnknown !== true || verdict.isGuess || factors === UNCOUNTED)
    return checked
  } finally {
    // A failure of pawl itself says nothing about the code.
    if (isWrong) place.keep()
    else place.giveBack()
  }
}

/**
 * The key of the budget. At a door it contains the credential's application, so that other applications are not affected. If the source is unknown,
 * codes of possession alone have a budget of their own, so that a stranger who guesses them does not affect codes of two factors.
 */
function budgetKeyOf({ header: { activationId, factors }, atDoor }: CodeAttempt, ip: string): string {
  if (atDoor === undefined) return `${sourceOf(ip)} ${activationId}`
  const { applicationId, isSourceUnknown } = atDoor
  const source = isSourceUnknown === true ? `anywhere ${factors === UNCOUNTED ? factors : ''}` : sourceOf(ip)
  return JSON.stringify(['door', applicationId, source, activationId])
}

const NO_BODY = new Uint8Array(0)
const NO_VERSION = -1
/** A wrong code of possession alone is never a guess that counts (v3 §10.5). */
const UNCOUNTED = 'POSSESSION'
