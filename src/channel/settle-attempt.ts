// Makes the outcome of one attempt durable: counter, failed attempts, state and audit row in one conditional statement, and what an
// endpoint adds to it in the same transaction (v3 §10.5, mobile-token §4.5).
import type { AuthenticationDecision } from '../domain/authentication.ts'
import { places } from '../domain/secrets.ts'
import { composeBlockEnd, endBlockIfOver } from '../domain/temporary-block.ts'
import type { CounterMove } from '../protocol/protocol.ts'
import { type ActivationRow, storeAuthentication } from '../storage/activations.ts'
import { type AuditEvent, insertAuditEvent } from '../storage/audit.ts'
import { type Db, inTransaction, type Tx } from '../storage/database.ts'
import { countStranger } from '../storage/stranger-counts.ts'
import type { ChannelParts } from './parts.ts'

/** Why a code was not accepted, as the audit log names it (cloud §7). */
export type Refusal =
  | 'signature_does_not_match'
  | 'activation_invalid_state'
  | 'activation_invalid_state_ctr_mismatch'
  | 'activation_invalid_application'
  | 'biometry_disabled'
  | 'protocol_version_too_low'
  | 'activation_unknown'

export interface Judged {
  readonly refusal: Refusal | undefined
  /** Set when the code is accepted. */
  readonly move: CounterMove | undefined
  /** What becomes of the activation, if there is one. */
  readonly decision: AuthenticationDecision | undefined
}

/** What an endpoint does in the transaction of the check; `refusal` is undefined when the code was right. */
export type Effect<T> = (tx: Tx, outcome: { refusal: Refusal | undefined; activation: ActivationRow | undefined }) => Promise<T>

/** What a code that is accepted was made under; both must still be taken when it is stored. */
export interface Accepted {
  readonly applicationKey: string
  /** Text of the protocol version. */
  readonly version: string
}

export interface Settled<T> {
  /** As it is now. */
  readonly activation: ActivationRow | undefined
  readonly effect: T | undefined
}

export interface SettleOptions<T> {
  /** What an accepted code was accepted for; null for a refusal. */
  readonly accepted: Accepted | null
  /** Of the caller, where the activation may not exist: its codes are counted under it. */
  readonly network?: string
  readonly effect?: Effect<T> | undefined
}

/** Stores a judged attempt; undefined when the activation is no longer the one that was read: the caller reads and judges again. */
export async function settleAttempt<T>(
  parts: ChannelParts,
  activation: ActivationRow | undefined,
  judged: Judged,
  audit: AuditEvent,
  { accepted, network, effect }: SettleOptions<T>,
): Promise<Settled<T> | undefined> {
  const { move, decision } = judged
  const refusal = move ? undefined : (judged.refusal ?? 'signature_does_not_match')
  // An activation that does not exist has no log: anybody can think of one.
  const record = (db: Db): Promise<void> =>
    activation === undefined && network !== undefined ? countStranger(db, network, audit.occurredAt) : insertAuditEvent(db, audit)
  if (!activation?.ctrData || !decision || !changesAnything(activation, decision)) {
    if (effect === undefined) {
      await record(parts.db)
      return { activation, effect: undefined }
    }
    return inTransaction(parts.db, async (tx) => {
      await record(tx)
      return { activation, effect: await effect(tx, { refusal, activation }) }
    })
  }
  if (await endBlockIfOver(parts, activation)) return undefined
  const { activationId, rowVersion } = activation
  const ctrData = move ? parts.recordKeys.seal(places.ctrData(activationId), move.ctrData) : activation.ctrData
  const activationSecret = move?.activationSecret
  const masterSecret = activationSecret && Buffer.from(parts.recordKeys.seal(places.masterSecret(activationId), activationSecret))
  const at = audit.occurredAt
  const blockedReason = decision.blockedReason ?? null
  const blockExpiresAt =
    blockedReason === null ? null : composeBlockEnd(parts.settings.temporaryBlockSeconds, decision.blocksInRow, at)
  const next = {
    rowVersion: rowVersion + 1,
    counter: activation.counter + (move?.steps ?? 0),
    ctrData: Buffer.from(ctrData),
    failedAttempts: decision.failedAttempts,
    blocksInRow: decision.blocksInRow,
    blockExpiresAt,
    state: decision.state,
    highestVersion: accepted?.version ?? null,
  }
  const outcome = {
    ...next,
    activationId,
    rowVersion,
    masterSecret: masterSecret ?? null,
    blockedReason,
    acceptedFor: accepted?.applicationKey ?? null,
    at,
  }
  const highestVersion = next.highestVersion ?? activation.highestVersion
  const after = { ...activation, ...next, highestVersion, ...(masterSecret && { masterSecret }) }
  const settled =
    effect === undefined
      ? (await parts.authenticationStore.store(outcome, audit)) && { activation: after, effect: undefined }
      : await inTransaction(parts.db, async (tx) => {
          if (!(await storeAuthentication(tx, outcome, audit))) return false
          return { activation: after, effect: await effect(tx, { refusal, activation: after }) }
        })
  if (!settled) return undefined
  if (blockedReason !== null)
    parts.events.activationBlocked({ activationId, reason: blockedReason, until: blockExpiresAt?.toISOString() })
  return settled
}

const changesAnything = (activation: ActivationRow, decision: AuthenticationDecision): boolean =>
  decision.valid || decision.failedAttempts !== activation.failedAttempts || decision.state !== activation.state
