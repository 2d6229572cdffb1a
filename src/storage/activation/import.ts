// Stores activations that another server made, with their history and tokens (docs/IMPORT.md).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineAskedRows, defineGivenRows } from '../database/bulk-statement.ts'
import type { ActivationState } from '../database/schema.ts'
import {
  type Columns,
  DEVICE_COLUMNS,
  givenColumns,
  insertColumns,
  OWNER_COLUMNS,
  selectColumns,
  type Written,
} from './columns.ts'
import { slotOf } from './device-slot.ts'
import type { OwnedActivation } from './find.ts'
import { type HistoryRow, insertHistoryFrom } from './history.ts'

/** Columns of an imported activation of protocol 3 that has exchanged keys. `server_private_key`, `master_secret` and `ctr_data` are sealed. */
const IMPORTED_COLUMNS = {
  ...OWNER_COLUMNS,
  state: 'text',
  protocol_version: 'int',
  activation_code_hash: 'bytea',
  server_public_key: 'bytea',
  server_private_key: 'bytea',
  device_public_key: 'bytea',
  activation_fingerprint: 'text',
  master_secret: 'bytea',
  ctr_data: 'bytea',
  counter: 'int',
  failed_attempts: 'int',
  max_failed_attempts: 'int',
  blocked_reason: 'text',
  ...DEVICE_COLUMNS,
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  last_used_at: 'timestamptz',
  flags: 'text',
  commit_phase: 'text',
} as const satisfies Columns

export interface ImportedActivation extends Written<typeof IMPORTED_COLUMNS>, Pick<AuditEvent, 'eventType' | 'eventData'> {
  readonly state: Exclude<ActivationState, 'CREATED'>
  /** The moment of the import. */
  readonly at: Date
}

/** A row of an activation's history from another server. */
export interface ImportedHistory extends Omit<HistoryRow, 'sequence'> {
  readonly activationId: string
}

/** A token that another server issued. */
export interface ImportedToken {
  readonly tokenId: string
  readonly activationId: string
  readonly factors: string
  /** Sealed. */
  readonly tokenSecret: Uint8Array
  readonly createdAt: Date
}

/** Returns the ids among these that are stored already. */
export async function findExistingActivations(db: Db, activationIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select activation_id as id from activation where activation_id = any(${[...activationIds]}::text[])`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

/** Returns the token ids among these that are stored already. */
export async function findExistingTokens(db: Db, tokenIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (tokenIds.length === 0) return new Set()
  const { rows } = await sql<{ id: string }>`
    select token_id as id from token where token_id = any(${[...tokenIds]}::text[])`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

/**
 * Takes the lock for an import until the end of the transaction, and removes the transaction's idle limit. False when another import holds the
 * lock.
 */
export async function lockImport(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ isLocked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('pawl.import', 0)) as "isLocked",
      set_config('idle_in_transaction_session_timeout', '0', true),
      case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '0', true) end`.execute(
    tx,
  )
  return rows[0]?.isLocked === true
}

/** Lists the live activations of these users in all applications. */
export async function listLiveActivations(db: Db, userIds: readonly string[]): Promise<readonly OwnedActivation[]> {
  const { rows } = await sql<OwnedActivation>`
    select ${selectColumns(OWNER_COLUMNS)} from activation a
    where application_id in (select application_id from application) and user_id = any(${[...userIds]}::text[])
      and state <> 'REMOVED'`.execute(db)
  return rows
}

/**
 * Inserts activations, each with an audit row, and returns the ids of the inserted ones. A row is left out when its id or code exists, or when the
 * user has a live activation and may have no other.
 */
export async function insertImportedActivations(tx: Tx, rows: readonly ImportedActivation[]): Promise<ReadonlySet<string>> {
  const { rows: inserted } = await tx.executeQuery<{ activation_id: string }>(INSERT_ACTIVATIONS(rows))
  return new Set(inserted.map((row) => row.activation_id))
}

/** Inserts rows of history in the given order. */
export async function insertImportedHistory(tx: Tx, rows: readonly ImportedHistory[]): Promise<void> {
  if (rows.length > 0) await tx.executeQuery(INSERT_HISTORY(rows))
}

/** Inserts tokens of stored activations, and returns the ids of the inserted ones. */
export async function insertImportedTokens(tx: Tx, rows: readonly ImportedToken[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set()
  const { rows: inserted } = await tx.executeQuery<{ token_id: string }>(INSERT_TOKENS(rows))
  return new Set(inserted.map((row) => row.token_id))
}

const { names, values } = insertColumns(IMPORTED_COLUMNS)

const INSERT_ACTIVATIONS = defineGivenRows<ImportedActivation>({
  ...givenColumns(IMPORTED_COLUMNS),
  eventType: 'text',
  eventData: 'text',
  at: 'timestamptz',
}).define(
  (given) => sql`
  with created as (
    insert into activation (${names}, device_slot)
    select ${values}, ${slotOf(sql`i."applicationId"`, sql`i."activationId"`)} from ${given} as i
    on conflict do nothing
    returning activation_id, application_id, user_id
  )
  ${insertAuditFrom(sql`created join ${given} as i on i."activationId" = activation_id`, {
    eventType: sql`i."eventType"`,
    eventData: sql`i."eventData"`,
    occurredAt: sql`i.at`,
  })}
  returning activation_id`,
)

const INSERT_HISTORY = defineAskedRows<ImportedHistory>({
  activationId: 'text',
  fromState: 'text',
  toState: 'text',
  reason: 'text',
  externalUserId: 'text',
  occurredAt: 'timestamptz',
}).define((given) =>
  insertHistoryFrom(sql`(select "activationId" as activation_id, i.* from ${given} as i) as h order by position`, {
    from: sql`"fromState"`,
    to: sql`"toState"`,
    reason: sql`reason`,
    externalUserId: sql`"externalUserId"`,
    at: sql`"occurredAt"`,
  }),
)

const INSERT_TOKENS = defineGivenRows<ImportedToken>({
  tokenId: 'text',
  activationId: 'text',
  factors: 'text',
  tokenSecret: 'bytea',
  createdAt: 'timestamptz',
}).define(
  (given) => sql`
  insert into token (token_id, activation_id, factors, token_secret, created_at)
  select "tokenId", "activationId", factors, "tokenSecret", "createdAt" from ${given} as i
  on conflict do nothing
  returning token_id`,
)
