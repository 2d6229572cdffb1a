// Activations that were made by another server, with their history and tokens (docs/IMPORT.md).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineAskedRows, defineGivenRows } from '../database/bulk-statement.ts'
import type { ActivationState, CommitPhase } from '../database/schema.ts'
import { slotOf } from './device-slot.ts'
import { insertHistoryFrom } from './history.ts'

/** An activation of protocol 3 that has exchanged keys. */
export interface ImportedActivation extends Pick<AuditEvent, 'eventType' | 'eventData'> {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  readonly state: Exclude<ActivationState, 'CREATED'>
  readonly protocolVersion: number
  readonly activationCodeHash: Uint8Array
  readonly serverPublicKey: Uint8Array
  /** sealed */
  readonly serverPrivateKey: Uint8Array
  readonly devicePublicKey: Uint8Array
  readonly activationFingerprint: string
  /** sealed */
  readonly masterSecret: Uint8Array
  /** sealed */
  readonly ctrData: Uint8Array
  readonly counter: number
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly blockedReason: string | null
  readonly name: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  readonly extras: string | null
  readonly externalId: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly lastUsedAt: Date | null
  /** Comma list. */
  readonly flags: string
  readonly commitPhase: CommitPhase
  /** The moment of the import. */
  readonly at: Date
}

/** A row of an activation's history, as another server kept it. */
export interface ImportedHistory {
  readonly activationId: string
  readonly fromState: string | null
  readonly toState: string
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly occurredAt: Date
}

/** A token that another server issued. */
export interface ImportedToken {
  readonly tokenId: string
  readonly activationId: string
  readonly factors: string
  /** sealed */
  readonly tokenSecret: Uint8Array
  readonly createdAt: Date
}

/** Which of these activations are stored already. */
export async function findExistingActivations(db: Db, activationIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select activation_id as id from activation where activation_id = any(${[...activationIds]}::text[])`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

/** Which of these tokens are stored already. */
export async function findExistingTokens(db: Db, tokenIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (tokenIds.length === 0) return new Set()
  const { rows } = await sql<{ id: string }>`
    select token_id as id from token where token_id = any(${[...tokenIds]}::text[])`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

/** Keeps other imports out until the end of the transaction, which may wait for long; false when one is under way. */
export async function lockImport(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ isLocked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('pawl.import', 0)) as "isLocked",
      set_config('idle_in_transaction_session_timeout', '0', true)`.execute(tx)
  return rows[0]?.isLocked === true
}

/** The live activations of these users, in any application. */
export async function listLiveActivations(
  db: Db,
  userIds: readonly string[],
): Promise<readonly { readonly activationId: string; readonly applicationId: string; readonly userId: string }[]> {
  const { rows } = await sql<{ activationId: string; applicationId: string; userId: string }>`
    select activation_id as "activationId", application_id as "applicationId", user_id as "userId" from activation
    where application_id in (select application_id from application) and user_id = any(${[...userIds]}::text[])
      and state <> 'REMOVED'`.execute(db)
  return rows
}

/**
 * Inserts activations, each with an audit row, and returns the ids of those that were inserted: where the id or the code is there, or the
 * user has a live activation and may have no other, the row is left out.
 */
export async function insertImportedActivations(tx: Tx, rows: readonly ImportedActivation[]): Promise<ReadonlySet<string>> {
  const { rows: inserted } = await tx.executeQuery<{ activation_id: string }>(INSERT_ACTIVATIONS(rows))
  return new Set(inserted.map((row) => row.activation_id))
}

/** Inserts history in the order given. */
export async function insertImportedHistory(tx: Tx, rows: readonly ImportedHistory[]): Promise<void> {
  if (rows.length > 0) await tx.executeQuery(INSERT_HISTORY(rows))
}

/** Inserts tokens of activations that are there; the ids of those that were inserted. */
export async function insertImportedTokens(tx: Tx, rows: readonly ImportedToken[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set()
  const { rows: inserted } = await tx.executeQuery<{ token_id: string }>(INSERT_TOKENS(rows))
  return new Set(inserted.map((row) => row.token_id))
}

const ACTIVATIONS = defineGivenRows<ImportedActivation>({
  activationId: 'text',
  applicationId: 'text',
  userId: 'text',
  state: 'text',
  protocolVersion: 'int',
  activationCodeHash: 'bytea',
  serverPublicKey: 'bytea',
  serverPrivateKey: 'bytea',
  devicePublicKey: 'bytea',
  activationFingerprint: 'text',
  masterSecret: 'bytea',
  ctrData: 'bytea',
  counter: 'int',
  failedAttempts: 'int',
  maxFailedAttempts: 'int',
  blockedReason: 'text',
  name: 'text',
  platform: 'text',
  deviceInfo: 'text',
  extras: 'text',
  externalId: 'text',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  lastUsedAt: 'timestamptz',
  flags: 'text',
  commitPhase: 'text',
  eventType: 'text',
  eventData: 'text',
  at: 'timestamptz',
})

const INSERT_ACTIVATIONS = ACTIVATIONS.define(
  (given) => sql`
  with created as (
    insert into activation (activation_id, application_id, user_id, state, protocol_version, activation_code_hash, server_public_key,
      server_private_key, device_public_key, activation_fingerprint, master_secret, ctr_data, counter, failed_attempts,
      max_failed_attempts, blocked_reason, name, platform, device_info, extras, external_id, created_at, expires_at, last_used_at, flags,
      commit_phase, device_slot)
    select "activationId", "applicationId", "userId", state, "protocolVersion", "activationCodeHash", "serverPublicKey",
      "serverPrivateKey", "devicePublicKey", "activationFingerprint", "masterSecret", "ctrData", counter, "failedAttempts",
      "maxFailedAttempts", "blockedReason", name, platform, "deviceInfo", extras, "externalId", "createdAt", "expiresAt", "lastUsedAt",
      flags, "commitPhase", ${slotOf(sql`i."applicationId"`, sql`i."activationId"`)} from ${given} as i
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

const HISTORY = defineAskedRows<ImportedHistory>({
  activationId: 'text',
  fromState: 'text',
  toState: 'text',
  reason: 'text',
  externalUserId: 'text',
  occurredAt: 'timestamptz',
})

const INSERT_HISTORY = HISTORY.define((given) =>
  insertHistoryFrom(sql`(select "activationId" as activation_id, i.* from ${given} as i) as h order by position`, {
    from: sql`"fromState"`,
    to: sql`"toState"`,
    reason: sql`reason`,
    externalUserId: sql`"externalUserId"`,
    at: sql`"occurredAt"`,
  }),
)

const TOKENS = defineGivenRows<ImportedToken>({
  tokenId: 'text',
  activationId: 'text',
  factors: 'text',
  tokenSecret: 'bytea',
  createdAt: 'timestamptz',
})

const INSERT_TOKENS = TOKENS.define(
  (given) => sql`
  insert into token (token_id, activation_id, factors, token_secret, created_at)
  select "tokenId", "activationId", factors, "tokenSecret", "createdAt" from ${given} as i
  on conflict do nothing
  returning token_id`,
)
