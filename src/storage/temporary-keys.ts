// The table temporary_key: server keys for a few minutes of encryption (v3 §7).
import { CompiledQuery, type RawBuilder, sql } from 'kysely'
import type { VersionRow } from './activation/version.ts'
import type { Db } from './database.ts'

export interface TemporaryKeyRow {
  readonly temporaryKeyId: string
  readonly applicationKey: string
  /** Null in application scope. */
  readonly activationId: string | null
  /** sealed */
  readonly privateKey: Uint8Array
  readonly expiresAt: Date
}

/** TEMPORARY_KEY_COLUMNS, outer joined. */
export interface TemporaryKeyColumns {
  readonly keyId: string | null
  readonly keyApplicationKey: string | null
  readonly keyActivationId: string | null
  readonly keyPrivate: Buffer | null
  readonly keyExpiresAt: Date | null
}

/** The key of a row, if it has one. */
export function toTemporaryKey(row: TemporaryKeyColumns): TemporaryKeyRow | undefined {
  const { keyId, keyApplicationKey, keyActivationId, keyPrivate, keyExpiresAt } = row
  if (keyId === null || keyApplicationKey === null || keyPrivate === null || keyExpiresAt === null) return undefined
  return {
    temporaryKeyId: keyId,
    applicationKey: keyApplicationKey,
    activationId: keyActivationId,
    privateKey: keyPrivate,
    expiresAt: keyExpiresAt,
  }
}

/** What is selected of a key. */
export const TEMPORARY_KEY_COLUMNS = sql`t.temporary_key_id as "keyId", t.application_key as "keyApplicationKey",
    t.activation_id as "keyActivationId", t.private_key as "keyPrivate", t.expires_at as "keyExpiresAt"`

/** Where these columns come from: the key of an id, which may be missing. `id`: a column. */
export const joinTemporaryKey = (id: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`left join temporary_key t on t.temporary_key_id = ${id}`

/** Stores a new key. */
export async function insertTemporaryKey(db: Db, key: TemporaryKeyRow): Promise<void> {
  const { temporaryKeyId, applicationKey, activationId, privateKey, expiresAt } = key
  await db.executeQuery(CompiledQuery.raw(INSERT, [temporaryKeyId, applicationKey, activationId, privateKey, expiresAt]))
}

/**
 * Stores a new key of an application, if its version is the one that was read, still supported, and the master keys are there. False when
 * not: the caller reads and decides again.
 */
export async function insertTemporaryKeyOfApplication(
  db: Db,
  key: TemporaryKeyRow,
  { applicationId, applicationSecret, algorithms, isProtocol3Admitted }: VersionRow,
  masterKeyPairIds: readonly string[],
): Promise<boolean> {
  const { temporaryKeyId, applicationKey, activationId, privateKey, expiresAt } = key
  const values = [temporaryKeyId, applicationKey, activationId, privateKey, expiresAt]
  const expected = [applicationId, applicationSecret, algorithms.join(','), isProtocol3Admitted, masterKeyPairIds]
  const { rows } = await db.executeQuery(CompiledQuery.raw(INSERT_OF_APPLICATION, [...values, ...expected]))
  return rows.length === 1
}

/** Deletes up to `limit` expired keys. */
export async function deleteExpiredTemporaryKeys(db: Db, at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from temporary_key where temporary_key_id in (
      select temporary_key_id from temporary_key where expires_at <= ${at} order by expires_at limit ${limit}
      for update skip locked
    ) returning temporary_key_id`.execute(db)
  return rows.length
}

// Of constant text: composed anew, each takes 15 µs more, and 60 before it is compiled.
const INSERT = `
  insert into temporary_key (temporary_key_id, application_key, activation_id, private_key, expires_at) values ($1, $2, $3, $4, $5)`
const INSERT_OF_APPLICATION = `
  insert into temporary_key (temporary_key_id, application_key, activation_id, private_key, expires_at)
  select $1::text, v.application_key, $3::text, $4::bytea, $5::timestamptz
  from application_version v join application p on p.application_id = v.application_id
  where v.application_key = $2::text and v.is_supported and v.application_id = $6::text and v.application_secret = $7::bytea
    and p.algorithms = $8::text and p.is_protocol_3_admitted = $9::boolean
    and (select count(*) from master_key_pair m where m.master_key_pair_id = any($10::text[]) and m.application_id = v.application_id)
      = cardinality($10::text[])
  returning temporary_key_id`
