// Reads all rows about one user, without secret columns.
import { type RawBuilder, sql } from 'kysely'
import { isTold } from '../audit/erasure.ts'
import type { Db } from '../database/database.ts'
import { operationsOf, tellsOf } from './erasure.ts'

/** Columns under their names in the tables; times are Dates, and int8 numbers are text. */
export type UserRow = Readonly<Record<string, unknown>>

export interface UserRows {
  readonly registrations: readonly UserRow[]
  readonly history: readonly UserRow[]
  readonly upgrades: readonly UserRow[]
  readonly tokens: readonly UserRow[]
  readonly pushRegistrations: readonly UserRow[]
  readonly configItems: readonly UserRow[]
  readonly operations: readonly UserRow[]
  readonly inbox: readonly UserRow[]
  /** Changes that the user made to activations of others. */
  readonly actedFor: readonly UserRow[]
  readonly webhookDeliveries: readonly UserRow[]
  readonly audit: readonly UserRow[]
  readonly administration: readonly UserRow[]
}

/** Reads the rows of a user in all applications. Keys, codes, secrets of tokens, seeds, and tokens of push services are left out. */
export async function readUserRows(db: Db, userId: string): Promise<UserRows> {
  const read = async (query: RawBuilder<UserRow>): Promise<readonly UserRow[]> => (await query.execute(db)).rows
  // Joined with `application`, because the indexes begin with the application.
  const phones = sql`(select a.* from application p join activation a on a.application_id = p.application_id where a.user_id = ${userId})`
  const ofPhones = (columns: string, table: string, order: string): Promise<readonly UserRow[]> =>
    read(sql`select ${sql.raw(columns)} from ${sql.table(table)} c where c.activation_id in (select activation_id from ${phones} a)
      order by ${sql.raw(order)}`)
  const registrations = await read(
    sql`select ${sql.raw(ACTIVATION_COLUMNS)} from ${phones} a order by a.created_at, a.activation_id`,
  )
  const person = { userId, phones: registrations.map((row) => String(row['activation_id'])), actedFor: [] }
  return {
    registrations,
    history: await ofPhones(
      'activation_id, from_state, to_state, reason, external_user_id, occurred_at',
      'activation_history',
      'activation_history_id',
    ),
    upgrades: await ofPhones('activation_id, algorithm, activation_fingerprint', 'activation_upgrade', 'activation_id'),
    tokens: await ofPhones('token_id, activation_id, factors, created_at', 'token', 'created_at, token_id'),
    pushRegistrations: await ofPhones('activation_id, platform, environment, updated_at', 'push_registration', 'activation_id'),
    configItems: await ofPhones('activation_id, scope, key, value, updated_at', 'config_item', 'activation_id, key, scope'),
    operations: await read(sql`select ${sql.raw(OPERATION_COLUMNS)} from ${operationsOf(userId, phones)} o
      order by o.created_at, o.operation_id`),
    inbox: await read(sql`select message_id, application_id, type, subject, summary, body, is_read, created_at
      from inbox_message where user_id = ${userId} order by created_at, message_id`),
    actedFor: await read(sql`select activation_id, from_state, to_state, reason, occurred_at
      from activation_history where external_user_id = ${userId} order by activation_history_id`),
    webhookDeliveries:
      await read(sql`select delivery_id, webhook_id, object_id, activation_id, payload, status, created_at, finished_at
      from webhook_delivery d where activation_id in (select activation_id from ${phones} a) or ${tellsOf(userId, phones)}
      order by sequence`),
    audit: await read(sql`select occurred_at, application_id, activation_id, event_type, event_data
      from (
        select sequence, occurred_at, application_id, activation_id, event_type, event_data from audit_log where user_id = ${userId}
        union all
        select sequence, occurred_at, application_id, activation_id, event_type, event_data from audit_pending where user_id = ${userId}
      ) e order by occurred_at, sequence`),
    administration: await read(sql`select occurred_at, username, action, target, before, after from admin_event e
      where ${isTold('administrators', person)} order by sequence`),
  }
}

/** Finds the sealed claims of a user in all applications. */
export async function findAllUserClaims(
  db: Db,
  userId: string,
): Promise<readonly { readonly applicationId: string; readonly claims: Buffer; readonly updatedAt: Date }[]> {
  return db
    .selectFrom('user_claims')
    .select(['application_id as applicationId', 'claims', 'updated_at as updatedAt'])
    .where('user_id', '=', userId)
    .orderBy('application_id')
    .execute()
}

const ACTIVATION_COLUMNS = `a.activation_id, a.application_id, a.state, a.protocol_version, a.highest_version, a.algorithm, a.name, a.platform,
  a.device_info, a.extras, a.external_id, a.flags, a.activation_fingerprint, a.failed_attempts, a.max_failed_attempts, a.blocked_reason,
  a.block_expires_at, a.commit_phase, a.is_confirmation_pending, a.is_biometry_enabled, a.created_at, a.expires_at, a.last_used_at,
  a.parent_activation_id, a.replaces_parent`
const OPERATION_COLUMNS = `o.operation_id, o.application_id, o.external_id, o.template_name, o.operation_type, o.language, o.parameters, o.data,
  o.status, o.status_reason, o.signature_types, o.failure_count, o.max_failure_count, o.risk_flags, o.activation_flag, o.activation_id,
  o.additional_data, o.created_at, o.expires_at, o.finalized_at`
