// The table audit_user_key: the random key that stands for a user in the seals of the audit log (docs/decisions/0019-erasure.md). It is written
// and deleted under the sealer's lock alone.
import { sql } from 'kysely'
import { toHex } from '../../lib/bytes.ts'
import type { Tx } from '../database/database.ts'

/** The keys of users, by user; who has none gets the one that is given. */
export async function provideUserKeys(tx: Tx, fresh: ReadonlyMap<string, Uint8Array>): Promise<ReadonlyMap<string, Uint8Array>> {
  if (fresh.size === 0) return fresh
  const keys = [...fresh.values()].map(toHex)
  const { rows } = await sql<{ userId: string; userKey: Buffer }>`
    with given as (
      select user_id, decode(user_key, 'hex') as user_key from unnest(${[...fresh.keys()]}::text[], ${keys}::text[]) as g (user_id, user_key)
    ), known as (
      select k.user_id, k.user_key from given g join audit_user_key k on k.user_id = g.user_id
    ), added as (
      insert into audit_user_key (user_id, user_key)
      select user_id, user_key from given where user_id not in (select user_id from known)
      returning user_id, user_key
    )
    select user_id as "userId", user_key as "userKey" from known
    union all select user_id, user_key from added`.execute(tx)
  return new Map(rows.map(({ userId, userKey }) => [userId, userKey]))
}

/** Deletes the key of a user: what seals say of the user cannot be found out any more. */
export async function deleteUserKey(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('audit_user_key').where('user_id', '=', userId).execute()
}
