// Stores idempotency keys in the table idempotency_key: a repeated creation returns the operation of the first request (cloud §6.1).
import { PawlError } from '../../lib/errors.ts'
import type { Db, Tx } from '../database/database.ts'
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
  const values = { username, idempotency_key: key, body_hash: bodyHash, operation_id: operationId, expires_at: expiresAt }
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await tx
      .deleteFrom('idempotency_key')
      .where('username', '=', username)
      .where('idempotency_key', '=', key)
      .where('expires_at', '<=', at)
      .execute()
    const taken = await tx
      .insertInto('idempotency_key')
      .values(values)
      .onConflict((conflict) => conflict.columns(['username', 'idempotency_key']).doNothing())
      .returning('operation_id')
      .executeTakeFirst()
    if (taken !== undefined) return undefined
    // Undefined when the key expired and was deleted between the two statements.
    const known = await findIdempotencyKey(tx, username, key)
    if (known !== undefined) return known
  }
  throw new PawlError('UNAVAILABLE', { detail: 'an idempotency key comes and goes', retryAfterSeconds: 1 })
}

/** Finds the operation of a key, also when the key has expired but is not deleted yet. */
export async function findIdempotencyKey(db: Db, username: string, key: string): Promise<KnownKey | undefined> {
  return db
    .selectFrom('idempotency_key')
    .select(['operation_id as operationId', 'body_hash as bodyHash', 'expires_at as expiresAt'])
    .where('username', '=', username)
    .where('idempotency_key', '=', key)
    .executeTakeFirst()
}

/** Deletes expired keys. */
export const deleteExpiredIdempotencyKeys = defineExpiry('idempotency_key', 'username', 'idempotency_key')
