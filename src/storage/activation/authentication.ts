// The two statements of every authentication, for one request or for all that come at the same time. A trip to the database costs more
// than what it does there; under load several requests share one.
import { CompiledQuery } from 'kysely'
import { createBatch } from '../../lib/batch.ts'
import type { AuditEvent } from '../audit.ts'
import type { Db } from '../database.ts'
import type { ActivationState } from '../schema.ts'
import { type ActivationRow, composeActivationColumns } from './find.ts'
import { composeTaken, composeVersionJoin, toVersion, VERSION_COLUMNS, type VersionColumns, type VersionRow } from './version.ts'

export interface RequestParties {
  readonly version: VersionRow | undefined
  readonly activation: ActivationRow | undefined
}

/** Reads the version and the activation that a device request names, in one round trip; either may be missing. */
export async function findRequestParties(
  db: Db,
  applicationKey: string,
  activationId: string,
  at: Date,
): Promise<RequestParties> {
  const { rows } = await db.executeQuery<RequestPartiesRow>(
    CompiledQuery.raw(FIND_REQUEST_PARTIES, [applicationKey, activationId, at]),
  )
  const [row] = rows
  return row === undefined ? { version: undefined, activation: undefined } : toRequestParties(row)
}

/** A row of VERSION_COLUMNS and composeActivationColumns, both outer joined. */
export type RequestPartiesRow = Nullable<ActivationRow> & VersionColumns

/** Splits a joined row into its parties. */
export const toRequestParties = (row: RequestPartiesRow): RequestParties => ({
  version: toVersion(row),
  activation: row.activationId === null ? undefined : (row as ActivationRow),
})

/** What a checked code changes. */
export interface AuthenticationOutcome {
  readonly activationId: string
  readonly rowVersion: number
  readonly counter: number
  /** sealed */
  readonly ctrData: Uint8Array
  /** sealed; null when it stays */
  readonly masterSecret: Uint8Array | null
  readonly failedAttempts: number
  readonly state: ActivationState
  readonly blockedReason: string | null
  /** Of a temporary block. */
  readonly blockExpiresAt: Date | null
  readonly blocksInRow: number
  /** For an acceptance the application key it was accepted for: its version must still be supported. Null for a refusal. */
  readonly acceptedFor: string | null
  /**
   * For an acceptance the protocol version of the code, which is then the highest of the activation; the application must still take it.
   * Null when that stays.
   */
  readonly highestVersion: string | null
  readonly at: Date
}

/**
 * Stores the outcome of a checked code and its audit row in one statement, if the activation is still the one that was read.
 * False when it is not: the caller reads and decides again.
 */
export async function storeAuthentication(db: Db, outcome: AuthenticationOutcome, audit: AuditEvent): Promise<boolean> {
  const { activationId, rowVersion, counter, ctrData, masterSecret, failedAttempts, blocksInRow, state, blockedReason } = outcome
  const { rows } = await db.executeQuery(
    CompiledQuery.raw(selectStatement(outcome), [
      activationId,
      rowVersion,
      counter,
      ctrData,
      failedAttempts,
      state,
      blockedReason,
      outcome.at,
      audit.applicationId,
      audit.userId,
      audit.eventType,
      audit.eventData,
      outcome.acceptedFor,
      blocksInRow,
      outcome.highestVersion,
      ...(blockedReason === null ? [] : [outcome.blockExpiresAt]),
      ...(masterSecret === null ? [] : [masterSecret]),
    ]),
  )
  return rows.length === 1
}

export interface AuthenticationStore {
  /** As findRequestParties. */
  readonly find: (applicationKey: string, activationId: string, at: Date) => Promise<RequestParties>
  /** As storeAuthentication. */
  readonly store: (outcome: AuthenticationOutcome, audit: AuditEvent) => Promise<boolean>
}

/** A store that joins what is asked for while a trip is on its way. */
export function createAuthenticationStore(db: Db): AuthenticationStore {
  const find = createBatch((names: readonly Names[]) => findAll(db, names), { itemsMax: ITEMS_MAX, isUndone })
  const move = createBatch((changes: readonly Change[]) => storeAll(db, changes), {
    itemsMax: ITEMS_MAX,
    // Two outcomes for one row version must not meet in one statement: each would be told that it was stored.
    keyOf: ({ outcome }) => outcome.activationId,
    isUndone,
  })
  return {
    find: (applicationKey, activationId, at) => find({ applicationKey, activationId, at }),
    // An outcome that blocks writes a history row, one that settles a factor key writes a secret. Both are rare: they go alone.
    store: (outcome, audit) => {
      const isUsual = outcome.blockedReason === null && outcome.masterSecret === null
      return isUsual ? move({ outcome, audit }) : storeAuthentication(db, outcome, audit)
    },
  }
}

interface Names {
  readonly applicationKey: string
  readonly activationId: string
  readonly at: Date
}

interface Change {
  readonly outcome: AuthenticationOutcome
  readonly audit: AuditEvent
}

async function findAll(db: Db, names: readonly Names[]): Promise<readonly RequestParties[]> {
  const [first] = names
  if (first !== undefined && names.length === 1)
    return [await findRequestParties(db, first.applicationKey, first.activationId, first.at)]
  const parameters = [
    names.map(({ applicationKey }) => applicationKey),
    names.map(({ activationId }) => activationId),
    names.map(({ at }) => at.toISOString()),
  ]
  const { rows } = await db.executeQuery<RequestPartiesRow>(CompiledQuery.raw(FIND_ALL, parameters))
  return rows.map(toRequestParties)
}

async function storeAll(db: Db, changes: readonly Change[]): Promise<readonly boolean[]> {
  const [first] = changes
  if (first !== undefined && changes.length === 1) return [await storeAuthentication(db, first.outcome, first.audit)]
  // In one order: two processes that move the same activations would otherwise wait for each other, and all others with them.
  const ordered = changes.toSorted((one, other) => (one.outcome.activationId < other.outcome.activationId ? -1 : 1))
  const outcomes = ordered.map(({ outcome }) => outcome)
  const audits = ordered.map(({ audit }) => audit)
  const parameters = [
    outcomes.map(({ activationId }) => activationId),
    outcomes.map(({ rowVersion }) => rowVersion),
    outcomes.map(({ counter }) => counter),
    // As text: the drivers differ in how they write an array of bytes.
    outcomes.map(({ ctrData }) => Buffer.from(ctrData).toString('hex')),
    outcomes.map(({ failedAttempts }) => failedAttempts),
    outcomes.map(({ blocksInRow }) => blocksInRow),
    outcomes.map(({ at }) => at.toISOString()),
    outcomes.map(({ acceptedFor }) => acceptedFor),
    outcomes.map(({ highestVersion }) => highestVersion),
    audits.map(({ applicationId }) => applicationId),
    audits.map(({ userId }) => userId),
    audits.map(({ eventType }) => eventType),
    audits.map(({ eventData }) => eventData),
  ]
  const { rows } = await db.executeQuery<{ activation_id: string }>(CompiledQuery.raw(STORE_ALL, parameters))
  const stored = new Set(rows.map((row) => row.activation_id))
  return changes.map(({ outcome }) => stored.has(outcome.activationId))
}

/**
 * The database answered with an error, so the statement was rolled back. A lost connection tells nothing: what may have been stored is
 * not stored a second time, or a code that was accepted would be counted as a wrong one.
 */
const isUndone = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' && ROLLED_BACK.test(error.code)

// SQLSTATE (which always has a digit, unlike EPIPE), but for 08 connection and 57 operator intervention, which end the connection.
const ROLLED_BACK = /^(?!08|57)(?=.*[0-9])[0-9A-Z]{5}$/
const ITEMS_MAX = 64

function selectStatement({ masterSecret, blockedReason }: AuthenticationOutcome): string {
  if (blockedReason !== null) return STORE_AUTHENTICATION_AND_HISTORY
  return masterSecret === null ? STORE_AUTHENTICATION : STORE_AUTHENTICATION_AND_SECRET
}

type Nullable<T> = { [K in keyof T]: T[K] | null }

/** What is selected of the version of the application key $1 and of the activation of the id $2 at the time $3. */
export const SELECTED_PARTIES = `${VERSION_COLUMNS}, ${composeActivationColumns('$3')}`
/** From where: one row, whether there are a version and an activation or not. */
export const JOINED_PARTIES = `from (select 1) as one
  ${composeVersionJoin('$1')}
  left join activation a on a.activation_id = $2`

// Constant text: building it anew would cost more than running it.
const FIND_REQUEST_PARTIES = `
  select ${SELECTED_PARTIES}
  ${JOINED_PARTIES}`
const FIND_ALL = `
  select ${VERSION_COLUMNS}, ${composeActivationColumns('i.at')}
  from unnest($1::text[], $2::text[], $3::timestamptz[]) with ordinality as i (application_key, activation_id, at, position)
  ${composeVersionJoin('i.application_key')}
  left join activation a on a.activation_id = i.activation_id
  order by i.position`

// State and reason stay: what blocks does not get here, and the row version is the one that was read.
const STORE_ALL = `
  with input as (
    select * from unnest($1::text[], $2::int[], $3::int[], $4::text[], $5::int[], $6::int[], $7::timestamptz[], $8::text[], $9::text[],
      $10::text[], $11::text[], $12::text[], $13::text[])
      as i (activation_id, row_version, counter, ctr_data, failed_attempts, blocks_in_row, at, accepted_for, highest_version,
        application_id, user_id, event_type, event_data)
  ), moved as (
    update activation a set counter = i.counter, ctr_data = decode(i.ctr_data, 'hex'), failed_attempts = i.failed_attempts,
      blocks_in_row = i.blocks_in_row, highest_version = coalesce(i.highest_version, a.highest_version), last_used_at = i.at,
      row_version = a.row_version + 1
    from input i where a.activation_id = i.activation_id and a.row_version = i.row_version
      and (i.accepted_for is null or ${composeTaken('i.accepted_for', 'i.highest_version')})
    returning a.activation_id
  )
  insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
  select i.application_id, i.user_id, i.activation_id, i.event_type, i.event_data, i.at
  from moved join input i on i.activation_id = moved.activation_id
  returning activation_id`

const move = (further = ''): string => `moved as (
    update activation set counter = $3, ctr_data = $4, failed_attempts = $5, state = $6, blocked_reason = $7, last_used_at = $8,
      blocks_in_row = $14, highest_version = coalesce($15, highest_version), row_version = row_version + 1${further}
    where activation_id = $1 and row_version = $2
      and ($13::text is null or ${composeTaken('$13', '$15::text')})
    returning activation_id
  )`
const AUDITED = `
  insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
  select $9::text, $10::text, activation_id, $11::text, $12::text, $8::timestamptz from moved returning activation_id`
const STORE_AUTHENTICATION = `with ${move()}${AUDITED}`
const STORE_AUTHENTICATION_AND_SECRET = `with ${move(', master_secret = $16')}${AUDITED}`
const STORE_AUTHENTICATION_AND_HISTORY = `with ${move(', block_expires_at = $16')}, history as (
    insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
    select activation_id, 'ACTIVE', $6::text, $7::text, $8::timestamptz from moved
  )${AUDITED}`
