// Stores the outcome of one attempt: counter, failed attempts, state and audit row in one conditional statement (v3 §10.5).
import { type AuthenticationDecision, composeBlockEnd, endBlockIfOver } from '../../domain/activation/authentication.ts'
import { places } from '../../domain/secrets/secrets.ts'
import type { AuthorizationHeader, CounterMove } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import {
  type AuthenticationOutcome,
  storeAuthentication,
  storeAuthenticationAndLock,
} from '../../storage/request/authentication.ts'
import { type AuditEvent, countStranger, heldActivation, insertAuditEvent } from '../../storage/audit/audit.ts'
import { type Db, isUniqueViolation, type Tx } from '../../storage/database/database.ts'
import { type LockedOperation, lockOperation } from '../../storage/operation/operations.ts'
import type { ChannelParts } from '../parts.ts'

/** The reason why a code was not accepted, as the audit log names it (cloud §7). */
export type Refusal =
  | 'signature_does_not_match'
  | 'activation_invalid_state'
  | 'activation_invalid_state_ctr_mismatch'
  | 'activation_invalid_application'
  | 'biometry_disabled'
  | 'protocol_version_too_low'
  | 'activation_unknown'

/** The judgement of a code, before anything is stored. */
export type Judged =
  | { readonly isRight: true; readonly move: CounterMove; readonly outcome: AuthenticationDecision }
  | {
      readonly isRight: false
      readonly refusal: Refusal
      /** Whether a holder of the possession key guessed another factor of an activation that may use codes (v3 §10.5). */
      readonly isGuess: boolean
      /** The change of the activation, if there is one. */
      readonly outcome: AuthenticationDecision | undefined
    }

/** The verdict about a code, after it is stored. `activation` has its new values. */
export type CodeVerdict =
  | { readonly isRight: true; readonly activation: ActivationRow }
  | {
      readonly isRight: false
      readonly reason: Refusal
      readonly isGuess: boolean
      readonly activation: ActivationRow | undefined
    }

/** The decision about an attempt: the values to store. */
export interface CodeDecision {
  readonly verdict: CodeVerdict
  /** Undefined when the attempt does not change the activation: only its audit row is stored. */
  readonly write: AuthenticationOutcome | undefined
  readonly audit: AuditEvent
  /**
   * Set for an activation that does not exist. Such an activation has no audit log, because anybody can make up an id. Its codes are counted by this
   * network.
   */
  readonly strangersNetwork: string | undefined
}

interface DecisionTerms extends Pick<CodeDecision, 'strangersNetwork'>, Pick<AuthenticationOutcome, 'use' | 'secondUse'> {
  /** Application version and protocol version; both must still be accepted when an accepted code is stored. Null for an offline password. */
  readonly madeUnder: Pick<AuthorizationHeader, 'applicationKey' | 'version'> | null
}

/**
 * Composes the decision to store for a judged attempt. Undefined if the activation is no longer the one that was read, because its temporary block
 * was over and its end had to be stored first: the caller reads and judges again.
 */
export async function composeDecision(
  parts: ChannelParts,
  activation: ActivationRow | undefined,
  judged: Judged,
  audit: AuditEvent,
  { madeUnder, strangersNetwork, use, secondUse }: DecisionTerms,
): Promise<CodeDecision | undefined> {
  if (!activation?.ctrData || !judged.outcome || !changesAnything(activation, judged.outcome))
    return { verdict: verdictOf(judged, activation), write: undefined, audit, strangersNetwork }
  if (await endBlockIfOver(parts, activation)) return undefined
  const { activationId, rowVersion, ctrData } = activation
  const { outcome } = judged
  const at = audit.occurredAt
  const blockedReason = outcome.blockedReason ?? null
  const blockExpiresAt =
    blockedReason === null ? null : composeBlockEnd(parts.settings.temporaryBlockSeconds, outcome.blocksInRow, at)
  const moved = judged.isRight ? sealMove(parts, activation, judged.move) : { counter: activation.counter, ctrData }
  const accepted = judged.isRight ? madeUnder : null
  const { failedAttempts, blocksInRow, state } = outcome
  const written = {
    ...moved,
    failedAttempts,
    blocksInRow,
    state,
    blockedReason,
    blockExpiresAt,
    highestVersion: accepted?.version ?? activation.highestVersion,
  }
  return {
    verdict: verdictOf(judged, { ...activation, ...written, rowVersion: rowVersion + 1 }),
    write: {
      masterSecret: null,
      ...written,
      activationId,
      rowVersion,
      from: activation.state,
      fromCounter: activation.isUpgradePending ? undefined : activation.counter,
      acceptedFor: accepted?.applicationKey ?? null,
      use: judged.isRight ? use : undefined,
      secondUse: judged.isRight ? secondUse : undefined,
      at,
    },
    audit,
    strangersNetwork,
  }
}

/** A stored decision, with the operation that it decides. */
export interface StoredDecision {
  readonly verdict: CodeVerdict
  /**
   * The operation, locked until the end of the transaction. Undefined if no operation is decided, or if the application of the activation has none
   * with this id.
   */
  readonly operation: LockedOperation | undefined
}

/**
 * Stores a decision, and locks the operation with the id `decides`, if there is one. Undefined when the activation was changed, or the version
 * was switched off, since the read.
 */
export async function storeDecision(tx: Tx, decision: CodeDecision, decides?: string): Promise<StoredDecision | undefined> {
  const { verdict, write, audit } = decision
  if (verdict.isRight && write !== undefined && decides !== undefined) {
    const stored = await storeAuthenticationAndLock(tx, write, audit, decides)
    return stored && { verdict, ...stored }
  }
  if (write === undefined) await recordUnchanged(tx, decision)
  else if (!(await storeAuthentication(tx, write, audit))) return undefined
  if (decides === undefined) return { verdict, operation: undefined }
  // A statement of its own, also for an activation that does not exist, so that the time of a refusal does not reveal which exist.
  const { applicationId, activationId } = verdict.activation ?? NOBODY
  return { verdict, operation: await lockOperation(tx, applicationId, decides, activationId) }
}

/**
 * Stores a decision outside of a transaction. Requests that come at the same time share a statement. USED_MEANWHILE: the decision is stored, but
 * another request has used the value of this one since the read.
 */
export async function storeDecisionAlone(
  { db, authenticationStore }: ChannelParts,
  decision: CodeDecision,
): Promise<'STORED' | 'USED_MEANWHILE' | undefined> {
  const { write, audit } = decision
  if (write === undefined) {
    await recordUnchanged(db, decision)
    return 'STORED'
  }
  try {
    return (await authenticationStore.store(write, audit)) ? 'STORED' : undefined
  } catch (error) {
    // Another call with the same Idempotency-Key has stored its verdict meanwhile. The caller has to read it.
    if (write.kept !== undefined && isUniqueViolation(error, write.use && 'door_verdict_pkey')) return undefined
    if (write.use === undefined || !isUniqueViolation(error)) throw error
    // The code was right and is used up all the same. No verdict is stored, because it would say that the request was accepted.
    const unused = { ...write, use: undefined, secondUse: undefined, kept: undefined }
    return (await authenticationStore.store(unused, audit)) ? 'USED_MEANWHILE' : undefined
  }
}

async function recordUnchanged(db: Db, { audit, strangersNetwork }: CodeDecision): Promise<void> {
  if (strangersNetwork === undefined) await insertAuditEvent(db, audit, heldActivation(audit.activationId))
  else await countStranger(db, strangersNetwork, audit.occurredAt)
}

/** Logs a stored block. */
export function noteBlock({ events }: ChannelParts, { write }: CodeDecision): void {
  if (write === undefined || write.blockedReason === null) return
  const { activationId, blockedReason, blockExpiresAt } = write
  events.activationBlocked({ activationId, reason: blockedReason, until: blockExpiresAt?.toISOString() })
}

function sealMove({ recordKeys }: ChannelParts, activation: ActivationRow, move: CounterMove) {
  const masterSecret = move.activationSecret && recordKeys.seal(places.masterSecret(activation), move.activationSecret)
  return {
    counter: activation.counter + move.steps,
    ctrData: recordKeys.seal(places.ctrData(activation.activationId), move.ctrData),
    ...(masterSecret && { masterSecret }),
  }
}

const changesAnything = (activation: ActivationRow, outcome: AuthenticationDecision): boolean =>
  outcome.valid || outcome.failedAttempts !== activation.failedAttempts || outcome.state !== activation.state

function verdictOf(judged: Judged, activation: ActivationRow | undefined): CodeVerdict {
  if (!judged.isRight) return { isRight: false, reason: judged.refusal, isGuess: judged.isGuess, activation }
  // A right code implies that the activation exists.
  if (activation === undefined) throw new TypeError('a right code of no activation')
  return { isRight: true, activation }
}

// No application and no activation has this id.
const NOBODY = { applicationId: '', activationId: '' }
