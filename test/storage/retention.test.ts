// Ended rows are deleted after their days of retention, and no other row is.
import { CompiledQuery, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import { deleteOutdated } from '../../src/domain/housekeeping.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { deleteOldActivations } from '../../src/storage/retention.ts'
import { expectRefused } from '../helpers/expectations.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'
import { recordQueries } from '../helpers/recorded-queries.ts'
import { expectOk } from '../helpers/world.ts'

const DAY = 86_400_000
const env = { PAWL_OPERATION_RETENTION_DAYS: '10', PAWL_ACTIVATION_RETENTION_DAYS: '20', PAWL_INBOX_RETENTION_DAYS: '30' }

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ env, worksInBackground: false })
})
afterAll(() => world.close())

const theServer = () => {
  const [context] = world.contexts
  if (context === undefined) throw new TypeError('a world without a server')
  return context
}
const run = async (): Promise<void> => {
  await world.housekeeping()
  await deleteOutdated(theServer(), new AbortController().signal)
}
/** The time so many days ago. */
const ago = (days: number): Date => new Date(theServer().platform.now() - days * DAY)
const count = async (table: string, column: string, value: string): Promise<number> => {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from ${sql.table(table)} where ${sql.ref(column)} = ${value}`.execute(world.db)
  return rows[0]?.n ?? Number.NaN
}

test('operations that are over go after their days; those of today stay', async () => {
  const { userId } = await world.holder('3.3')
  const canceled = await world.operation(userId)
  expectOk(await world.bank.cancelOperation(canceled.id))
  const expired = await world.operation(userId)
  await world.advance(9 * DAY)
  await run()
  expect(await count('operation', 'user_id', userId)).toBe(2)
  const young = await world.operation(userId)
  await world.advance(2 * DAY)
  await run()
  for (const { id } of [canceled, expired]) expect(await count('operation', 'operation_id', id)).toBe(0)
  expect((await world.stored(young.id)).status).toBe('EXPIRED')
})

test('an operation that waits is never deleted, however old it is made to look', async () => {
  const { userId } = await world.holder('3.3')
  const { id } = await world.operation(userId)
  await sql`update operation set created_at = created_at - interval '1000 days' where operation_id = ${id}`.execute(world.db)
  await run()
  expect((await world.stored(id)).status).toBe('PENDING')
})

test('work that the database refuses keeps none of the others from being done', async () => {
  const { userId } = await world.holder('3.3')
  const over = await world.operation(userId)
  expectOk(await world.bank.cancelOperation(over.id))
  const message = { userId, type: 'text', subject: 'old', summary: 'old', body: 'old' }
  expectOk(await world.bank.call('POST', '/inbox/messages', message))
  await world.advance(31 * DAY)
  const waiting = await world.operation(userId)
  await world.advance(DAY)
  const refused = ['unique_value', 'operation']
  await sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`.execute(
    world.db,
  )
  await sql`insert into unique_value (value_hash, expires_at) values ('\\x00', 'epoch')`.execute(world.db)
  for (const table of refused)
    await sql`create trigger refuse before delete on ${sql.table(table)} for each row execute function refuse()`.execute(world.db)
  await expect(world.housekeeping()).rejects.toThrow('refused')
  await expect(deleteOutdated(theServer(), new AbortController().signal)).rejects.toThrow('refused')
  expect((await world.stored(waiting.id)).status).toBe('EXPIRED')
  expect([await count('operation', 'operation_id', over.id), await count('inbox_message', 'user_id', userId)]).toEqual([1, 0])
  for (const table of refused) await sql`drop trigger refuse on ${sql.table(table)}`.execute(world.db)
  await sql`drop function refuse`.execute(world.db)
  await run()
  expect(await count('operation', 'operation_id', over.id)).toBe(0)
})

test('a removed activation goes after its days with all that belongs to it; its audit rows stay', async () => {
  const { userId, phone } = await world.holder('3.3')
  const { activationId } = phone.state
  const others = await world.holder('3.3')
  await world.advance(30 * DAY)
  expectOk(await phone.send(phone.prepareRemove()))
  await world.advance(19 * DAY)
  await run()
  expect(await count('activation', 'activation_id', activationId)).toBe(1)
  const audited = await count('audit_trail', 'activation_id', activationId)
  await world.advance(2 * DAY)
  await run()
  for (const table of ['activation', 'activation_history', 'token', 'temporary_key', 'push_registration'])
    expect([table, await count(table, 'activation_id', activationId)]).toEqual([table, 0])
  expect(await count('audit_trail', 'activation_id', activationId)).toBe(audited)
  // An activation that lives is not touched by its age.
  expect(await count('activation', 'activation_id', others.phone.state.activationId)).toBe(1)
  expectOk(await others.phone.send(others.phone.prepareValidation({ body: '{}' })))
  // What is gone is as unknown as what never was, and its user can register again.
  expectRefused(await phone.send(phone.prepareValidation({ body: '{}' })), 'signature')
  expectOk(await world.bank.call('POST', '/registration', { userId }))
})

test('an activation that another server removed goes by its removal, not by the import', async () => {
  const { db } = world
  await insertRemoved('imported', 2, { createdDays: 60, removedDays: 50 })
  await sql`
    insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
    select activation_id, 'REMOVED', 'REMOVED', 'IMPORTED', ${ago(0)} from activation where user_id = 'imported'`.execute(db)
  await insertRemoved('young', 1, { createdDays: 60, removedDays: 19 })
  // Without a time of removal the import is what is known.
  await insertRemoved('bare', 1, { createdDays: 60, removedDays: 0 })
  // A state that nothing made from here: what is stored as alive is not deleted.
  await insertRemoved('alive', 1, { createdDays: 60, removedDays: 50 })
  await sql`update activation set state = 'BLOCKED' where user_id = 'alive'`.execute(db)
  await run()
  const left = await Promise.all(['imported', 'young', 'bare', 'alive'].map((userId) => count('activation', 'user_id', userId)))
  expect(left).toEqual([0, 1, 1, 1])
})

test('a batch of removed activations reads what it deletes, and none of the many that are old and were removed lately', async () => {
  const { db } = world
  const before = ago(20)
  await insertRemoved('late', 8_000, { createdDays: 400, removedDays: 5 })
  await insertRemoved('long-ago', 1_200, { createdDays: 300, removedDays: 30 })
  await sql`analyze`.execute(db)
  const [query] = await recordQueries((recording) => deleteOldActivations(recording, before, 500))
  if (query === undefined) throw new TypeError('no statement')
  const undone = new Error('undone')
  const plans: unknown[] = []
  await db
    .transaction()
    .execute(async (tx) => {
      const { rows } = await tx.executeQuery(CompiledQuery.raw(`explain (analyze, format json) ${query.text}`, [...query.values]))
      plans.push(...rows)
      throw undone
    })
    .catch((error: unknown) => expect(error).toBe(undone))
  // Five hundred, with two rows of history each, looked at some times.
  expect(countRead(plans)).toBeGreaterThan(500)
  expect(countRead(plans)).toBeLessThan(8_000)
  await run()
  expect(await count('activation', 'user_id', 'long-ago')).toBe(0)
  expect(await count('activation', 'user_id', 'late')).toBe(8_000)
})

test('a batch of removed activations does not look through the items and keys of others', async () => {
  await insertRemoved('with-items', 2000, { createdDays: 60, removedDays: 5 })
  await sql`
    insert into config_item (application_id, activation_id, scope, key, value, updated_at)
    select application_id, activation_id, 'ACTIVATION', 'k', '1', now() from activation where user_id = 'with-items'`.execute(
    world.db,
  )
  await sql`
    insert into temporary_key (temporary_key_id, application_key, activation_id, private_key, expires_at)
    select activation_id, 'k', activation_id, '', now() + interval '1 hour' from activation where user_id = 'with-items'`.execute(
    world.db,
  )
  await insertRemoved('without-items', 500, { createdDays: 60, removedDays: 50 })
  await sql`analyze`.execute(world.db)
  const read = await inTransaction(theServer().db, async (tx) => {
    expect(await deleteOldActivations(tx, ago(20), 500)).toBe(500)
    const { rows } = await sql<{ read: number }>`
      select seq_tup_read::int as read from pg_stat_xact_user_tables where relname in ('config_item', 'temporary_key')`.execute(
      tx,
    )
    return rows.map((row) => row.read)
  })
  expect(read).toHaveLength(2)
  expect(Math.max(...read)).toBeLessThan(10_000)
})

/** Activations of one user that were made and REMOVED so many days ago, with the two rows of their history. */
async function insertRemoved(
  userId: string,
  rows: number,
  { createdDays, removedDays }: { readonly createdDays: number; readonly removedDays: number },
): Promise<void> {
  // A thousand at a time are far from the time limit of a statement.
  for (let first = 1; first <= rows; first += 1_000) {
    const last = Math.min(rows, first + 999)
    await sql`
      with made as (
        insert into activation (activation_id, application_id, user_id, state, activation_code_hash, server_public_key, server_private_key,
          max_failed_attempts, created_at, expires_at)
        select ${userId}::text || '-' || i, ${world.applicationId}, ${userId}, 'REMOVED', sha256(convert_to(${userId}::text || i, 'UTF8')), '', '',
          5, ${ago(createdDays)}, ${ago(createdDays)} from generate_series(${first}::int, ${last}::int) i
        returning activation_id
      )
      insert into activation_history (activation_id, from_state, to_state, occurred_at)
      select activation_id, from_state, to_state, occurred_at from made, (values
        (null, 'CREATED', ${ago(createdDays)}::timestamptz), ('CREATED', 'REMOVED', ${ago(removedDays)}::timestamptz)
      ) as change (from_state, to_state, occurred_at)`.execute(world.db)
  }
}

/** How many rows the scans of a plan have read, also those that they left out. */
function countRead(part: unknown): number {
  if (typeof part !== 'object' || part === null) return 0
  const below = Object.values(part).reduce<number>((sum, value) => sum + countRead(value), 0)
  if (!('Relation Name' in part) || String(member(part, 'Node Type')) === 'ModifyTable') return below
  const rows = ['Actual Rows', 'Rows Removed by Filter', 'Rows Removed by Index Recheck'].map((name) =>
    Number(member(part, name) ?? 0),
  )
  return below + rows.reduce((sum, some) => sum + some, 0) * Number(member(part, 'Actual Loops'))
}

test('inbox messages go after their days', async () => {
  const { userId } = await world.holder('3.3')
  const message = { userId, type: 'text', subject: 'Hello', summary: 'Hello', body: 'Hello' }
  const { json } = expectOk(await world.bank.call('POST', '/inbox/messages', message))
  const id = String(member(json, 'messageId'))
  await world.advance(29 * DAY)
  await run()
  expect(await count('inbox_message', 'message_id', id)).toBe(1)
  await world.advance(2 * DAY)
  await run()
  expect(await count('inbox_message', 'message_id', id)).toBe(0)
})
