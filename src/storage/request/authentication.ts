// Reads and stores for every authentication: one read, and one conditional write together with its audit row. Each is one statement, for
// one request and for all that come at the same time: a trip costs more than what it does there (docs/decisions/0003-shared-trips.md).
import { type RawBuilder, sql } from 'kysely'
import { AUDIT_GIVEN, AUDIT_OF_GIVEN, type AuditEvent, insertAuditFrom, toAuditGiven } from '../audit/audit.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import type { ActivationState } from '../database/schema.ts'
import { type LockedColumns, type LockedOperation, OPERATION_COLUMNS, toLocked } from '../operation/operations.ts'
import { createSharedTrip } from '../database/batched-statement.ts'
import { BLOCK_COLUMNS, CODE_COLUMNS, givenColumns, setColumns, type Written } from '../activation/columns.ts'
import { insertHistoryFrom } from '../activation/history.ts'
import { type Caches, createCaches } from '../../lib/memory.ts'
import { createRecentPhones, type PhoneEvents } from './recent-phones.ts'
import {
  ASKED,
  type DoorNames,
  type DoorParties,
  FIND_PROOFS,
  findDoorParties,
  fromAsked,
  PARTIES,
  type PartiesRow,
  type PartyNames,
  type ProofColumns,
  type ProofNames,
  type Proofs,
  type ReadParties,
  type RequestParties,
  toParties,
  toProofs,
} from './lookup.ts'
import { type DoorEnvelope, type DoorEnvelopeNames, findDoorEnvelopes } from './door-envelopes.ts'
import { type DoorVerdict, insertVerdictsFrom, toVerdictColumns, VERDICT_COLUMNS } from './door-verdicts.ts'
import { findStatusProofs, type StatusProofs } from './upgrade.ts'
import { insertTwoValuesFrom, toValueColumns, type UniqueValue, VALUE_COLUMNS } from '../activation/unique-values.ts'
import { isTaken } from '../application/version.ts'

/** Of the counter and its data there is always one. */
type CodeColumns = Written<typeof CODE_COLUMNS> & { readonly ctrData: Uint8Array }

/** What a checked code changes. */
export interface AuthenticationOutcome extends CodeColumns, Written<typeof BLOCK_COLUMNS> {
  readonly activationId: string
  readonly rowVersion: number
  /**
   * The state that was read. A database that went back in time counts row versions again, and may come to the one that a process remembers
   * by another way.
   */
  readonly from: ActivationState
  /** sealed; null when it stays */
  readonly masterSecret: Uint8Array | null
  /**
   * For an acceptance the application key it was accepted for: its version must still be supported, and its application must still take the protocol
   * version of the code, which is then the highest of the activation. Null for a refusal.
   */
  readonly acceptedFor: string | null
  /** What a door tells of an acceptance; it must still be so when it is stored. */
  readonly told?: ToldAtDoor | undefined
  /** What an acceptance uses up: a value that was used before makes the statement a unique violation, and nothing is stored. */
  readonly use?: UniqueValue | undefined
  /** The same, only beside `use`. */
  readonly secondUse?: UniqueValue | undefined
  /** What a door answers, kept with it: a key that has a verdict makes the statement a unique violation, and nothing is stored. */
  readonly kept?: DoorVerdict | undefined
  readonly at: Date
}

/** What a bank is told, as it is stored: flags of the activation, name of the version, roles of the application. */
interface ToldAtDoor {
  readonly flags: string
  readonly versionName: string
  readonly roles: string
}

export interface AuthenticationStore {
  /**
   * A phone whose code this process accepted, as that left it, without a read; nobody for any other. Others may have changed it since: nothing
   * may be decided by it but an acceptance, which `store` confirms.
   */
  readonly recall: (names: Omit<PartyNames, 'at'>) => RequestParties
  /** Reads version and activation. The counter is never behind what this process accepted, whatever the database says. */
  readonly find: (names: PartyNames) => Promise<ReadParties>
  /** The same with what an envelope and a token name; a text is empty, and a hash null, where a request names none. */
  readonly findProofs: (names: ProofNames) => Promise<Proofs>
  /** As findStatusProofs, shared with what others ask. */
  readonly findStatusProofs: (names: ProofNames) => Promise<StatusProofs>
  /** What a door reads, shared with what others ask; the counter is that of find. */
  readonly findAtDoor: (names: DoorNames) => Promise<DoorParties>
  /** The same with what an envelope names. */
  readonly findEnvelopeAtDoor: (names: DoorEnvelopeNames) => Promise<DoorEnvelope>
  /** As storeAuthentication, shared with what others store. */
  readonly store: (outcome: AuthenticationOutcome, audit: AuditEvent) => Promise<boolean>
  /** Is told of an acceptance that is committed: the parties as it left them. */
  readonly remember: (parties: RequestParties) => void
}

interface TripEvents {
  readonly tripTaken?: (told: { readonly trip: 'find' | 'store'; readonly items: number }) => void
}

/**
 * A store of one process. What is asked for while a trip is on its way shares the next one; the events are told how many requests share
 * one.
 */
export function createAuthenticationStore(
  db: Db,
  events: PhoneEvents & TripEvents,
  caches: Caches = createCaches(),
): AuthenticationStore {
  const phones = createRecentPhones(events, caches)
  const share = <Names, Found>(find: (db: Db, names: readonly Names[]) => Promise<readonly Found[]>) =>
    createSharedTrip((names: readonly Names[]) => find(db, names), {
      onTrip: (items) => events.tripTaken?.({ trip: 'find', items }),
    })
  /** Reads parties that are never behind what this process accepted. */
  const shareParties = <Names extends PartyNames, Found extends { readonly parties: ReadParties }>(
    find: (db: Db, names: readonly Names[]) => Promise<readonly Found[]>,
  ) => {
    const read = share(find)
    return async (names: Names): Promise<Found> => {
      // Taken before the read: what is accepted while it is on its way is newer than what it brings.
      const known = phones.latest(names.activationId)
      const found = await read(names)
      return { ...found, parties: phones.renew(known, found.parties) }
    }
  }
  const findParties = shareParties(findAll)
  const move = createSharedTrip((changes: readonly Change[]) => storeAll(db, changes), {
    // Two outcomes for one row version must not meet in one statement: each would be told that it was stored.
    keyOf: ({ outcome }) => outcome.activationId,
    onTrip: (items) => events.tripTaken?.({ trip: 'store', items }),
  })
  return {
    recall: phones.recall,
    find: async (names) => (await findParties(names)).parties,
    findProofs: shareParties(findAllProofs),
    findAtDoor: shareParties(findDoorParties),
    findEnvelopeAtDoor: shareParties(findDoorEnvelopes),
    findStatusProofs: share(findStatusProofs),
    store: (outcome, audit) => move({ outcome, audit }),
    remember: phones.remember,
  }
}

/**
 * Stores the outcome of a checked code and its audit row in one statement, if the activation is still the one that was read and, for an
 * acceptance, version and protocol version are still taken. False when not: the caller reads and decides again.
 */
export async function storeAuthentication(db: Db, outcome: AuthenticationOutcome, audit: AuditEvent): Promise<boolean> {
  const [isStored = false] = await storeAll(db, [{ outcome, audit }])
  return isStored
}

/**
 * The same in the transaction that decides an operation: the operation is locked in the same statement, after the activation is written.
 * Undefined where storeAuthentication is false; no operation where the application of the activation has none of that id.
 */
export async function storeAuthenticationAndLock(
  tx: Tx,
  outcome: AuthenticationOutcome,
  audit: AuditEvent,
  operationId: string,
): Promise<{ readonly operation: LockedOperation | undefined } | undefined> {
  const move = { ...toMove({ outcome, audit }), operationId }
  const statement = isUsual(outcome) ? STORE_USUAL_AND_LOCK([move]) : STORE_AND_LOCK([move])
  const { rows } = await tx.executeQuery<LockedColumns | Unlocked>(statement)
  const [row] = rows
  return row && { operation: row.operationId === null ? undefined : toLocked(row) }
}

/** Of an activation that was written, where there is no such operation. */
interface Unlocked {
  readonly operationId: null
}

interface Change {
  readonly outcome: AuthenticationOutcome
  readonly audit: AuditEvent
}

async function findAll(db: Db, names: readonly PartyNames[]): Promise<readonly { readonly parties: ReadParties }[]> {
  const { rows } = await db.executeQuery<PartiesRow>(FIND(names))
  return rows.map((row) => ({ parties: toParties(row) }))
}

async function findAllProofs(db: Db, names: readonly ProofNames[]): Promise<readonly Proofs[]> {
  const { rows } = await db.executeQuery<ProofColumns>(FIND_PROOFS(names))
  return rows.map(toProofs)
}

async function storeAll(db: Db, changes: readonly Change[]): Promise<readonly boolean[]> {
  const moves = changes.map(toMove)
  // In one order: two processes that move the same activations would otherwise wait for each other, and all others with them.
  const ordered = moves.toSorted((one, other) => (one.activationId < other.activationId ? -1 : 1))
  const { rows } = await db.executeQuery<{ activation_id: string }>(chooseStore(ordered)(ordered))
  const stored = new Set(rows.map((row) => row.activation_id))
  return changes.map(({ outcome }) => stored.has(outcome.activationId))
}

/** With the owner that the audit row names: what was read, or remembered, of an activation is not stored in the row of another owner. */
const toMove = ({ outcome, audit }: Change): AnyMove => ({
  ...outcome,
  ...toAuditGiven(audit),
  toldFlags: outcome.told?.flags,
  toldVersion: outcome.told?.versionName,
  toldRoles: outcome.told?.roles,
  ...toVerdictColumns(outcome.kept),
  ...toValueColumns([outcome.use, outcome.secondUse]),
})

/** The one that does enough for all of them and costs the least. */
const chooseStore = (moves: readonly AnyMove[]) =>
  moves.every(isUsual) ? STORE_USUAL : moves.every(keepsAtMost) ? STORE_KEEPING : STORE

/** Whether an outcome leaves the state and the keys as they are and uses nothing; the row version is the one they were read under. */
const keepsAtMost = ({ blockedReason, masterSecret, use }: AuthenticationOutcome): boolean =>
  blockedReason === null && masterSecret === null && use === undefined
/** Whether it keeps nothing as well. */
const isUsual = (outcome: AuthenticationOutcome): boolean => keepsAtMost(outcome) && outcome.kept === undefined

const FIND = ASKED.define(
  (asked) => sql`
  select ${PARTIES}
  ${fromAsked(asked)}
  order by i.position`,
)

const TOLD_COLUMNS = { toldFlags: 'text', toldVersion: 'text', toldRoles: 'text' } as const

const USUAL_COLUMNS = {
  activationId: 'text',
  rowVersion: 'int',
  from: 'text',
  ...givenColumns(CODE_COLUMNS),
  acceptedFor: 'text',
  at: 'timestamptz',
  ...AUDIT_GIVEN,
  ...TOLD_COLUMNS,
} as const
type UsualMove = Pick<AuthenticationOutcome, Extract<keyof typeof USUAL_COLUMNS, keyof AuthenticationOutcome>> &
  ReturnType<typeof toAuditGiven> &
  Readonly<Record<keyof typeof TOLD_COLUMNS, string | undefined>>

const KEEPING_COLUMNS = { ...USUAL_COLUMNS, ...VERDICT_COLUMNS } as const
type KeepingMove = UsualMove & ReturnType<typeof toVerdictColumns>

const ANY_COLUMNS = {
  ...KEEPING_COLUMNS,
  masterSecret: 'bytea',
  ...givenColumns(BLOCK_COLUMNS),
  ...VALUE_COLUMNS,
} as const
type AnyMove = KeepingMove &
  Written<typeof BLOCK_COLUMNS> &
  Pick<AuthenticationOutcome, 'masterSecret'> &
  ReturnType<typeof toValueColumns>

type Changed = Readonly<Record<'set' | 'returned' | 'beside', RawBuilder<unknown>>>

// A column that is named costs, also when its value stays: the trigger that tells webhooks of states is looked at then.
const USUAL: Changed = { set: sql``, returned: sql``, beside: sql`` }

const KEPT_OF_MOVED = sql`, kept as (
    ${insertVerdictsFrom(sql`moved`)}
  )`

/** What one that keeps a verdict does besides. */
const KEEPING: Changed = {
  set: sql``,
  returned: sql`, i."verdictKey", i."verdictAnswer", i."verdictExpiresAt", i."verdictMac"`,
  beside: KEPT_OF_MOVED,
}

/** What one that blocks, settles a key or uses a value does besides; it may keep a verdict, too. */
const ANY: Changed = {
  set: sql`, master_secret = coalesce(i."masterSecret", a.master_secret), ${setColumns(BLOCK_COLUMNS)}`,
  returned: sql`${KEEPING.returned}, i.state, i."blockedReason", i.value, i."valueExpiresAt", i."secondValue", i."secondValueExpiresAt"`,
  beside: sql`, history as (
    ${insertHistoryFrom(sql`moved where "blockedReason" is not null`, { from: sql`'ACTIVE'`, to: sql`state`, reason: sql`"blockedReason"`, at: sql`at` })}
  ), used as (
    ${insertTwoValuesFrom(sql`moved`)}
  )${KEPT_OF_MOVED}`,
}

const IS_AS_TOLD = sql`i."toldFlags" is null or (a.flags, v.name, p.roles) = (i."toldFlags", i."toldVersion", i."toldRoles")`

/** The activations that a code moves, `moved`, with what is written beside. */
const withMoved = (moves: RawBuilder<unknown>, { set, returned, beside }: Changed) => sql`
  with moved as (
    update activation a set ${setColumns(CODE_COLUMNS)}, last_used_at = i.at, row_version = a.row_version + 1${set}
    from ${moves} as i
    where a.activation_id = i."activationId" and a.row_version = i."rowVersion" and a.state = i."from"
      and a.application_id = i."applicationId" and a.user_id = i."userId"
      and (i."acceptedFor" is null or ${isTaken(sql`i."acceptedFor"`, sql`i."highestVersion"`, IS_AS_TOLD)})
    returning a.activation_id, i."applicationId", i."userId", i."eventType", i."eventData", i."verifiedBy", i.at${returned}
  )${beside}`

const AUDIT_OF_MOVED = insertAuditFrom(sql`moved`, AUDIT_OF_GIVEN)

const composeStore = (moves: RawBuilder<unknown>, changed: Changed) => sql`${withMoved(moves, changed)}
  ${AUDIT_OF_MOVED}
  returning activation_id`

const composeStoreAndLock = (moves: RawBuilder<unknown>, changed: Changed) => {
  const returned = sql`${changed.returned}, i."operationId", a.flags`
  return sql`${withMoved(moves, { ...changed, returned })}, audited as (
    ${AUDIT_OF_MOVED}
  )
  select moved.flags as "approverFlags", o.*
  from moved left join lateral (
    select ${OPERATION_COLUMNS} from operation o
    where o.operation_id = moved."operationId" and o.application_id = moved."applicationId"
    for update
  ) as o on true`
}

const STORE_USUAL = defineGivenRows<UsualMove>(USUAL_COLUMNS).define((moves) => composeStore(moves, USUAL))
const STORE_KEEPING = defineGivenRows<KeepingMove>(KEEPING_COLUMNS).define((moves) => composeStore(moves, KEEPING))
const STORE = defineGivenRows<AnyMove>(ANY_COLUMNS).define((moves) => composeStore(moves, ANY))

const OF_OPERATION = { operationId: 'text' } as const
type OfOperation = { readonly operationId: string }
const STORE_USUAL_AND_LOCK = defineGivenRows<UsualMove & OfOperation>({ ...USUAL_COLUMNS, ...OF_OPERATION }).define((moves) =>
  composeStoreAndLock(moves, USUAL),
)
const STORE_AND_LOCK = defineGivenRows<AnyMove & OfOperation>({ ...ANY_COLUMNS, ...OF_OPERATION }).define((moves) =>
  composeStoreAndLock(moves, ANY),
)
