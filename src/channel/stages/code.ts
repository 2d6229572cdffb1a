// Checks an authentication code (v3 §10.5): one read, the computation without a lock, and one conditional write with the audit row. The write
// compares the row version. After a lost race the code is read and judged again.
import { places } from '../../domain/secrets/secrets.ts'
import { PawlError } from '../../lib/errors.ts'
import { networkOf } from '../../lib/address.ts'
import { untilSettled } from '../../lib/until-settled.ts'
import { inStage } from '../../lib/trace.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { AuthenticationOutcome } from '../../storage/request/authentication.ts'
import type { ReadParties, RequestParties } from '../../storage/request/parties.ts'
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
import { withinFailureBudget } from './failure-budget.ts'
import { judgeCode } from './judge.ts'
import type { Received } from './receive.ts'

/** Who sent a right code. */
export interface Authenticated {
  readonly version: VersionRow
  /** As the code left it. */
  readonly activation: ActivationRow
}

/** One round of the same attempt. `read`: what was read for the request a moment ago, if anything. */
interface Turn {
  readonly read: RequestParties | undefined
  readonly round: number
}

/** A decision with what it was made of. */
interface DecidedCode extends CodeDecision {
  readonly attempt: CodeAttempt
  readonly parties: RequestParties
}

/**
 * Checks a code and makes the outcome durable before it returns. Refuses a wrong code with AUTHENTICATION_CODE_INVALID after its count is
 * stored, and a right one with `use.refusal` when its value was used meanwhile. `read`: version and activation where they were read for the same request, and its first round needs no read of its own.
 */
export async function authenticate(
  parts: ChannelParts,
  received: Received,
  attempt: CodeAttempt,
  read?: RequestParties,
): Promise<Authenticated> {
  return await inStage('check code', async () => {
    const { verdict, parties, stored } = await settleCode(parts, received, attempt, read)
    if (!verdict.isRight) throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: verdict.reason })
    refuseUsed(attempt, verdict, stored)
    // A code is judged right under a version only.
    if (parties.version === undefined) throw new TypeError('a right code under no version')
    return { version: parties.version, activation: verdict.activation }
  })
}

/**
 * The same for a bank that asks: a wrong code is a verdict as well. Refuses only one beyond the budget (AUTHENTICATION_CODE_INVALID), and a right
 * one with `use.refusal` when its value was used meanwhile. `read`: as for authenticate.
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

/** Judges a code, stores what it does, and tells of it. */
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
 * Checks a code in one transaction with what the endpoint decides: `within` is told of a wrong code too, because what it counts must stay.
 * Returns after the commit, for a wrong code as well; refuses only one beyond the budget (AUTHENTICATION_CODE_INVALID).
 */
export async function authenticateWithin<T>(
  parts: ChannelParts,
  received: Received,
  attempt: CodeAttempt,
  within: (tx: Tx, stored: StoredDecision) => Promise<T>,
): Promise<{ readonly verdict: CodeVerdict; readonly result: T }> {
  const check = async () => {
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
  return await inStage('check code', () => withinFailureBudget(parts, received, attempt, check))
}

/**
 * Reads the parties, judges the code, and composes what is to be stored; nothing is stored yet. Undefined when something had to be stored
 * before, and the caller decides again in the next round.
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

/** What is stored where a bank asks: what it is told of an acceptance is made sure of, and what it is answered is kept. */
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
 * A remembered phone is judged without a read, at exactly its counter. The conditional write compares what it was remembered with, and
 * memory alone decides nothing but an acceptance. A refusal costs as much where no phone is remembered, because a decoy is checked.
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
  }
  const find = attempt.atDoor?.find ?? (() => findParties(parts, attempt.header, attempt.goodFor))
  const parties = ownOf(attempt, (round === 0 ? read : undefined) ?? (await find()))
  const judged = judgeCode(parts, protocol, code, parties, parts.settings.counterLookAhead)
  if (remembered !== undefined && remembered.activation === undefined && !judged.isRight) judgeRemembered(remembered)
  return { parties, judged }
}

/** A bank knows nobody of another application than its own. */
function ownOf({ atDoor }: CodeAttempt, parties: RequestParties): RequestParties {
  if (atDoor === undefined) return parties
  const { version, activation } = parties
  const isOwn = (party: { readonly applicationId: string } | undefined) => party?.applicationId === atDoor.applicationId
  return { version: isOwn(version) ? version : undefined, activation: isOwn(activation) ? activation : undefined }
}

/** Names of a header or of an envelope; no activation where only an application is named. */
interface NamedParties {
  readonly applicationKey: string
  readonly activationId?: string | undefined
}

/** One read of version and activation, either may be missing. `goodFor` UPGRADING: as a pending upgrade makes them (v4 §10.3). */
export async function findParties(
  { db, authenticationStore, platform }: Pick<ChannelParts, 'db' | 'authenticationStore' | 'platform'>,
  { applicationKey, activationId = '' }: NamedParties,
  goodFor: CodePolicy = 'ACTIVE',
): Promise<ReadParties> {
  const names = { applicationKey, activationId, at: new Date(platform.now()) }
  const find = goodFor === 'UPGRADING' ? () => findUpgradedParties(db, names) : () => authenticationStore.find(names)
  return await inStage('find parties', find)
}

/** A phone that is remembered with a record in a form that is not taken any more has to be read. */
function recall({ authenticationStore, recordKeys }: ChannelParts, header: CodeAttempt['header']): RequestParties {
  const remembered = authenticationStore.recall(header)
  const { activation } = remembered
  const isTaken = !activation?.masterSecret || recordKeys.isTaken(places.masterSecret(activation), activation.masterSecret)
  return isTaken ? remembered : { version: undefined, activation: undefined }
}

/** Tells the log of a decision that is stored, and remembers the phone of a right code. */
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

const NO_BODY = new Uint8Array(0)
