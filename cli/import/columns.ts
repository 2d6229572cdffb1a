// Checks that the reference's tables have the columns that an import reads (docs/IMPORT.md lists all of them).
import { sql } from 'kysely'
import type { Db } from '../../src/storage/database/database.ts'
import { Fault } from '../fault.ts'

/** Throws a Fault that names the columns that are missing. */
export async function checkTables(tx: Db): Promise<void> {
  const wanted = Object.entries(READ_COLUMNS)
  const { rows } = await sql<{ table: string; column: string }>`
    select t.name as table, a.attname as column
    from unnest(${wanted.map(([table]) => table)}::text[]) as t (name) join pg_attribute a on a.attrelid = to_regclass(t.name)
    where a.attnum > 0 and not a.attisdropped`.execute(tx)
  const there = new Set(rows.map(({ table, column }) => `${table}.${column}`))
  const isThereAtAll = new Set(rows.map(({ table }) => table))
  const missing = wanted
    .filter(([table]) => isThereAtAll.has(table) || !OPTIONAL_TABLES.includes(table))
    .flatMap(([table, columns]) => columns.map((column) => `${table}.${column}`))
    .filter((name) => !there.has(name) && !OPTIONAL_COLUMNS.includes(name))
  if (missing.length > 0)
    throw new Fault(
      'refused',
      `this is not the database of a PowerAuth server 1.9: it has no ${missing.slice(0, 10).join(', ')}${missing.length > 10 ? ', …' : ''}`,
    )
}

/** The columns that an import reads, by table. If one is missing, the schema is an older one, or that of another program. */
export const READ_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  pa_application: ['roles', 'id', 'name'],
  pa_application_version: ['id', 'application_id', 'application_key', 'application_secret', 'name', 'supported'],
  pa_master_keypair: ['id', 'application_id', 'master_key_private_base64', 'master_key_public_base64', 'timestamp_created'],
  pa_activation: [
    'activation_id',
    'application_id',
    'user_id',
    'activation_name',
    'activation_code',
    'activation_status',
    'activation_otp',
    'blocked_reason',
    'counter',
    'ctr_data',
    'device_public_key_base64',
    'extras',
    'platform',
    'device_info',
    'flags',
    'failed_attempts',
    'max_failed_attempts',
    'server_private_key_base64',
    'server_private_key_encryption',
    'server_public_key_base64',
    'timestamp_activation_expire',
    'timestamp_created',
    'timestamp_last_used',
    'version',
    'external_id',
    'protocol',
    'commit_phase',
  ],
  pa_activation_history: ['id', 'activation_id', 'activation_status', 'event_reason', 'external_user_id', 'timestamp_created'],
  pa_token: ['token_id', 'token_secret', 'activation_id', 'signature_type', 'timestamp_created'],
  pa_application_callback: [
    'id',
    'application_id',
    'name',
    'callback_url',
    'type',
    'attributes',
    'authentication',
    'encryption_mode',
  ],
  pa_operation: ['status'],
  pa_operation_template: [
    'template_name',
    'operation_type',
    'data_template',
    'signature_type',
    'max_failure_count',
    'expiration',
    'risk_flags',
    'proximity_check_enabled',
  ],
  pa_recovery_code: ['status'],
  es_operation_template: ['placeholder', 'language', 'title', 'message', 'attributes', 'ui', 'result_texts'],
}
/** Later versions have no recovery codes, and the enrollment server may have a database of its own. */
const OPTIONAL_TABLES: readonly string[] = ['pa_recovery_code', 'es_operation_template']
/** Versions of the enrollment server before 1.8 have no texts of results. */
const OPTIONAL_COLUMNS: readonly string[] = ['es_operation_template.ui', 'es_operation_template.result_texts']
