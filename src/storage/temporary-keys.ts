// The table temporary_key: server keys for a few minutes of encryption (v3 §7).
import { sql } from 'kysely'
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

/** Stores a new key. */
export async function insertTemporaryKey(db: Db, key: TemporaryKeyRow): Promise<void> {
  await db
    .insertInto('temporary_key')
    .values({
      temporary_key_id: key.temporaryKeyId,
      application_key: key.applicationKey,
      activation_id: key.activationId,
      private_key: key.privateKey,
      expires_at: key.expiresAt,
    })
    .execute()
}

/** A key by its id, expired or not. */
export async function findTemporaryKey(db: Db, temporaryKeyId: string): Promise<TemporaryKeyRow | undefined> {
  return db
    .selectFrom('temporary_key')
    .select([
      'temporary_key_id as temporaryKeyId',
      'application_key as applicationKey',
      'activation_id as activationId',
      'private_key as privateKey',
      'expires_at as expiresAt',
    ])
    .where('temporary_key_id', '=', temporaryKeyId)
    .executeTakeFirst()
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
