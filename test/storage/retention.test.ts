// What is over goes after its days, and nothing before or beside it.
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import { deleteOutdated } from '../../src/domain/housekeeping.ts'
import { expectRefused } from '../helpers/expectations.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'
import { expectOk } from '../helpers/world.ts'

const DAY = 86_400_000
const env = { PAWL_OPERATION_RETENTION_DAYS: '10', PAWL_ACTIVATION_RETENTION_DAYS: '20', PAWL_INBOX_RETENTION_DAYS: '30' }

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ env, worksInBackground: false })
})
afterAll(() => world.close())

const run = async (): Promise<void> => {
  await world.housekeeping()
  const [context] = world.contexts
  if (context === undefined) throw new TypeError('a world without a server')
  await deleteOutdated(context, new AbortController().signal)
}
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
