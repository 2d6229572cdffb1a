// Reads and writes the database for every authentication: one read, and one conditional write with an audit row. Each is one statement that
// concurrent requests share, because a round trip costs more than the work of the statement (docs/decisions/0003-shared-trips.md).
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
  type DoorNames,
  type DoorParties,
  findDoorParties,
  findParties,
  findProofs,
  type PartyNames,
  type ProofNames,
  type Proofs,
  type ReadParties,
  type RequestParties,
} from './lookup.ts'
import { type DoorEnvelope, type DoorEnvelopeNames, findDoorEnvelopes } from './door-envelopes.ts'
import { type DoorVerdict, insertVerdictsFrom, toVerdictColumns, VERDICT_COLUMNS } from './door-verdicts.ts'
import { findStatusProofs, type StatusProofs } from './upgrade.ts'
import { insertTwoValuesFrom, toValueColumns, type UniqueValue, VALUE_COLUMNS } from '../activation/unique-values.ts'
import { isTaken } from '../application/version.ts'

/** The columns that every code writes; `ctrData` is never null. */
type CodeColumns = Written<typeof CODE_COLUMNS> & { readonly ctrData: Uint8Array }

/** The changes that a checked code makes. */
export interface AuthenticationOutcome extends CodeColumns, Written<typeof BLOCK_COLUMNS> {
  readonly activationId: string
  readonly rowVersion: number
  /**
   * The state that was read. After a restore the database counts row versions again, and may reach a version that a process remembers, with another
   * state.
   */
  readonly from: ActivationState
  /**
   * The counter from which the code was judged. The row must not be ahead of it: after a failover another process may have used these values, and
   * the row versions may have become equal again. Absent for the counter of a pending upgrade, which is not in the row.
   */
  readonly fromCounter?: number | undefined
  /** Sealed; null keeps the stored secret. */
  readonly masterSecret: Uint8Array | null
  /**
   * For an accepted code, its application key. When it is stored, that version must still be supported, and its application must still take the
   * protocol version of the code, which becomes the highest of the activation. Null for a refused code.
   */
  readonly acceptedFor: string | null
  /** The data in a door's answer to an accepted code; it must still be current when the outcome is stored. */
  readonly told?: ToldAtDoor | undefined
  /** The value that an accepted code uses up. If it was used before, the statement throws a unique violation and stores nothing. */
  readonly use?: UniqueValue | undefined
  /** A second such value, only with `use`. */
  readonly secondUse?: UniqueValue | undefined
  /** The verdict of a door to keep. If its key has a verdict, the statement throws a unique violation and stores nothing. */
  readonly kept?: DoorVerdict | undefined
  readonly at: Date
}

/** Data in an answer to the bank, as stored: flags of the activation, name of the app version, roles of the application. */
interface ToldAtDoor {
  readonly flags: string
  readonly versionName: string
  readonly roles: string
}

export interface AuthenticationStore {
  /**
   * Returns, without a read, a phone whose code this process accepted, as the acceptance left it; no phone otherwise. Other processes may have
   * changed it since, so the only decision to make with it is an acceptance, which `store` confirms.
   */
  readonly recall: (names: Omit<PartyNames, 'at'>) => RequestParties
  /**
   * Reads version and activation; an empty application key names no version. The counter is never lower than one that this process accepted, whatever
   * the database returns.
   */
  readonly find: (names: PartyNames) => Promise<ReadParties>
  /** Like find, and reads the envelope key and the token that the request names. Without one its id is an empty text, and its hash null. */
  readonly findProofs: (names: ProofNames) => Promise<Proofs>
  /** findStatusProofs, whose concurrent calls share a statement. */
  readonly findStatusProofs: (names: ProofNames) => Promise<StatusProofs>
  /** Reads what findDoorParties reads; concurrent calls share a statement, and the counter is that of find. */
  readonly findAtDoor: (names: DoorNames) => Promise<DoorParties>
  /** Like findAtDoor, and reads the envelope key that the request names. */
  readonly findEnvelopeAtDoor: (names: DoorEnvelopeNames) => Promise<DoorEnvelope>
  /** storeAuthentication, whose concurrent calls share a statement. */
  readonly store: (outcome: AuthenticationOutcome, audit: AuditEvent) => Promise<boolean>
  /** Remembers the parties of a committed acceptance, as the acceptance left them; without a version for an offline code. */
  readonly remember: (parties: RequestParties) => void
}

interface TripEvents {
  readonly tripTaken?: (told: { readonly trip: 'find' | 'store'; readonly items: number }) => void
}

/**
 * Makes the store of a process. Requests that arrive while a statement is running share the next one; the events report how many requests share
 * each statement.
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
  /** Reads parties whose counter is never lower than one that this process accepted. */
  const shareParties = <Names extends PartyNames, Found extends { readonly parties: ReadParties }>(
    find: (db: Db, names: readonly Names[]) => Promise<readonly Found[]>,
  ) => {
    const read = share(find)
    return async (names: Names): Promise<Found> => {
      // Taken before the read, because an acceptance during the read is newer than the rows that the read returns.
      const known = phones.latest(names.activationId)
      const found = await read(names)
      return { ...found, parties: phones.renew(known, found.parties) }
    }
  }
  const find = shareParties(findParties)
  const move = createSharedTrip((changes: readonly Change[]) => storeAll(db, changes), {
    // Two outcomes for one row version must not share a statement: each would be reported as stored.
    keyOf: ({ outcome }) => outcome.activationId,
    onTrip: (items) => events.tripTaken?.({ trip: 'store', items }),
  })
  return {
    recall: phones.recall,
    find: async (names) => (await find(names)).parties,
    findProofs: shareParties(findProofs),
    findAtDoor: shareParties(findDoorParties),
    findEnvelopeAtDoor: shareParties(findDoorEnvelopes),
    findStatusProofs: share(findStatusProofs),
    store: (outcome, audit) => move({ outcome, audit }),
    remember: phones.remember,
  }
}

/**
 * Stores the outcome of a checked code and its audit row in one statement. False when the activation has changed since it was read or, for an
 * accepted code, when its version or protocol version is no longer taken. The caller then reads and decides again.
 */
export async function storeAuthentication(db: Db, outcome: AuthenticationOutcome, audit: AuditEvent): Promise<boolean> {
  const [isStored = false] = await storeAll(db, [{ outcome, audit }])
  return isStored
}

/**
 * Like storeAuthentication, in the transaction that decides an operation: the same statement locks the operation, after it has written the
 * activation. Undefined where storeAuthentication is false. `operation` is undefined when the application of the activation has no operation with
 * that id.
 */
export async function storeAuthenticationAndLock(
  tx: Tx,
  outcome: AuthenticationOutcome,
  audit: AuditEvent,
  operationId: string,
): Promise<{ readonly operation: LockedOperation | undefined } | undefined> {
  const move = { ...toMove({ outcome, audit }), operationId }
  const { rows } = await tx.executeQuery<LockedColumns | Unlocked>(STORE_AND_LOCK([move]))
  const [row] = rows
  return row && { operation: row.operationId === null ? undefined : toLocked(row) }
}

/** The row of a written activation when there is no such operation. */
interface Unlocked {
  readonly operationId: null
}

interface Change {
  readonly outcome: AuthenticationOutcome
  readonly audit: AuditEvent
}

async function storeAll(db: Db, changes: readonly Change[]): Promise<readonly boolean[]> {
  const moves = changes.map(toMove)
  // Sorted, because two processes that move the same activations would otherwise deadlock, and block all other requests.
  const ordered = moves.toSorted((one, other) => (one.activationId < other.activationId ? -1 : 1))
  const { rows } = await db.executeQuery<{ activation_id: string }>(STORE(ordered))
  const stored = new Set(rows.map((row) => row.activation_id))
  return changes.map(({ outcome }) => stored.has(outcome.activationId))
}

/** Adds the owner that the audit row names: an outcome for a remembered activation must not be stored in a row of another owner. */
const toMove = ({ outcome, audit }: Change) => ({
  ...outcome,
  ...toAuditGiven(audit),
  toldFlags: outcome.told?.flags,
  toldVersion: outcome.told?.versionName,
  toldRoles: outcome.told?.roles,
  ...toVerdictColumns(outcome.kept),
  ...toValueColumns([outcome.use, outcome.secondUse]),
})

type Move = Pick<ReturnType<typeof toMove>, keyof typeof MOVE_COLUMNS>

const MOVE_COLUMNS = {
  activationId: 'text',
  rowVersion: 'int',
  from: 'text',
  fromCounter: 'int',
  ...givenColumns(CODE_COLUMNS),
  ...givenColumns(BLOCK_COLUMNS),
  masterSecret: 'bytea',
  acceptedFor: 'text',
  at: 'timestamptz',
  ...AUDIT_GIVEN,
  toldFlags: 'text',
  toldVersion: 'text',
  toldRoles: 'text',
  ...VERDICT_COLUMNS,
  ...VALUE_COLUMNS,
} as const

const IS_AS_TOLD = sql`i."toldFlags" is null or (a.flags, v.name, p.roles) = (i."toldFlags", i."toldVersion", i."toldRoles")`

/**
 * Composes the update of the activations, `moved`, and the inserts beside it. `andReturned` adds columns to `moved`. A column that keeps its value
 * is written all the same: the row is written anew in any case.
 */
const withMoved = (moves: RawBuilder<unknown>, andReturned = sql``) => sql`
  with moved as (
    update activation a set ${setColumns(CODE_COLUMNS)}, ${setColumns(BLOCK_COLUMNS)},
      master_secret = coalesce(i."masterSecret", a.master_secret), last_used_at = i.at, row_version = a.row_version + 1
    from ${moves} as i
    where a.activation_id = i."activationId" and a.row_version = i."rowVersion" and a.state = i."from"
      and a.counter <= coalesce(i."fromCounter", a.counter) and a.application_id = i."applicationId" and a.user_id = i."userId"
      and (i."acceptedFor" is null or ${isTaken(sql`i."acceptedFor"`, sql`i."highestVersion"`, IS_AS_TOLD)})
    returning i.*, a.activation_id${andReturned}
  ), history as (
    ${insertHistoryFrom(sql`moved where "blockedReason" is not null`, { from: sql`'ACTIVE'`, to: sql`state`, reason: sql`"blockedReason"`, at: sql`at` })}
  ), used as (
    ${insertTwoValuesFrom(sql`moved`)}
  ), kept as (
    ${insertVerdictsFrom(sql`moved`)}
  )`

const AUDIT_OF_MOVED = insertAuditFrom(sql`moved`, AUDIT_OF_GIVEN)

const STORE = defineGivenRows<Move>(MOVE_COLUMNS).define(
  (moves) => sql`${withMoved(moves)}
  ${AUDIT_OF_MOVED}
  returning activation_id`,
)

const STORE_AND_LOCK = defineGivenRows<Move & { readonly operationId: string }>({ ...MOVE_COLUMNS, operationId: 'text' }).define(
  (moves) => sql`${withMoved(moves, sql`, a.flags`)}, audited as (
    ${AUDIT_OF_MOVED}
  )
  select moved.flags as "approverFlags", o.*
  from moved left join lateral (
    select ${OPERATION_COLUMNS} from operation o
    where o.operation_id = moved."operationId" and o.application_id = moved."applicationId"
    for update
  ) as o on true`,
)
