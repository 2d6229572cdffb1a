// The table idempotency_key: a creation that is sent again gives the operation of the first time (cloud §6.1).
import { PawlError } from '../../lib/errors.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineExpiry } from '../database/bulk-statement.ts'

interface IdempotencyKey {
  readonly username: string
  readonly key: string
  /** SHA-256 of the request's body, 32 bytes. */
  readonly bodyHash: Uint8Array
}

/** The operation a key stands for, and the hash of the body it came with. */
export interface KnownKey {
  readonly operationId: string
  readonly bodyHash: Buffer
  readonly expiresAt: Date
}

/**
 * Takes a key for an operation. When it is taken already, also by a transaction that is on its way and commits, gives what it stands for;
 * undefined when it is ours now.
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
    // Gone again when its time ran out between the two statements.
    const known = await findIdempotencyKey(tx, username, key)
    if (known !== undefined) return known
  }
  throw new PawlError('UNAVAILABLE', { detail: 'an idempotency key comes and goes', retryAfterSeconds: 1 })
}

/** What a key stands for, or stood for until its time was over. */
export async function findIdempotencyKey(db: Db, username: string, key: string): Promise<KnownKey | undefined> {
  return db
    .selectFrom('idempotency_key')
    .select(['operation_id as operationId', 'body_hash as bodyHash', 'expires_at as expiresAt'])
    .where('username', '=', username)
    .where('idempotency_key', '=', key)
    .executeTakeFirst()
}

/** Deletes keys whose time is over. */
export const deleteExpiredIdempotencyKeys = defineExpiry('idempotency_key', 'username', 'idempotency_key')
