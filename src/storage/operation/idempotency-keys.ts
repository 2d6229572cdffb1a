// Stores idempotency keys in the table idempotency_key: a repeated creation returns the operation of the first request (cloud §6.1).
import { PawlError } from '../../lib/errors.ts'
import { sql } from 'kysely'
import { type Db, type Tx, writesRow } from '../database/database.ts'
import { defineExpiry } from '../database/bulk-statement.ts'

interface IdempotencyKey {
  readonly username: string
  readonly key: string
  /** SHA-256 of the request's body, 32 bytes. */
  readonly bodyHash: Uint8Array
}

/** The operation of a key, and the hash of the request body that came with the key. */
export interface KnownKey {
  readonly operationId: string
  readonly bodyHash: Buffer
  readonly expiresAt: Date
}

/**
 * Takes a key for an operation, and returns undefined. When the key is taken already, also by a concurrent transaction that commits, returns the
 * operation of the key.
 */
export async function takeIdempotencyKey(
  tx: Tx,
  { username, key, bodyHash }: IdempotencyKey,
  operationId: string,
  at: Date,
  expiresAt: Date,
): Promise<KnownKey | undefined> {
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await sql`delete from idempotency_key where username = ${username} and idempotency_key = ${key} and expires_at <= ${at}`.execute(
      tx,
    )
    const take = sql`
      insert into idempotency_key (username, idempotency_key, body_hash, operation_id, expires_at)
      values (${username}, ${key}, ${bodyHash}, ${operationId}, ${expiresAt}) on conflict do nothing`
    if (await writesRow(tx, take)) return undefined
    // Undefined when the key expired and was deleted between the two statements.
    const known = await findIdempotencyKey(tx, username, key)
    if (known !== undefined) return known
  }
  throw new PawlError('UNAVAILABLE', { detail: 'an idempotency key comes and goes', retryAfterSeconds: 1 })
}

/** Finds the operation of a key, also when the key has expired but is not deleted yet. */
export async function findIdempotencyKey(db: Db, username: string, key: string): Promise<KnownKey | undefined> {
  const { rows } = await sql<KnownKey>`
    select operation_id as "operationId", body_hash as "bodyHash", expires_at as "expiresAt" from idempotency_key
    where username = ${username} and idempotency_key = ${key}`.execute(db)
  return rows[0]
}

/** Deletes expired keys. */
export const deleteExpiredIdempotencyKeys = defineExpiry('idempotency_key', 'username', 'idempotency_key')
