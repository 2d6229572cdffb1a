// The operation that a code decides is locked in the statement that stores the code: as it is after everybody who held it before
// (docs/decisions/0002-conditional-writes.md).
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storeAuthenticationAndLock } from '../../src/storage/request/authentication.ts'
import { findActivation } from '../../src/storage/activation/find.ts'
import { inTransaction, type Pool } from '../../src/storage/database/database.ts'
import { lockOperation } from '../../src/storage/operation/operations.ts'
import { COUNT_WAITING, serverUrl } from '../helpers/app.ts'
import { type Holder, type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'

const AT = new Date(1_700_000_000_000)

let world: OperationWorld
let db: Pool
beforeAll(async () => {
  world = await startOperationWorld()
  const [context] = world.contexts
  if (!context) throw new Error('a world without a server')
  db = context.db
})
afterAll(() => world.close())

const read = async ({ phone }: Holder) => {
  const activation = await findActivation(db, phone.state.activationId, AT)
  if (!activation) throw new Error('a phone without its activation')
  return activation
}
type Activation = Awaited<ReturnType<typeof read>>

const store = (activation: Activation, operationId: string, change: { rowVersion?: number; masterSecret?: Buffer } = {}) => {
  const { activationId, applicationId, userId, rowVersion, counter } = activation
  const outcome = {
    ...activation,
    rowVersion,
    from: activation.state,
    counter: counter + 1,
    ctrData: Buffer.from([1, 2, 3]),
    masterSecret: null,
    blockedReason: null,
    blockExpiresAt: null,
    acceptedFor: null,
    highestVersion: null,
    at: AT,
    ...change,
  }
  const audit = { applicationId, userId, activationId, eventType: 'test_of_lock', eventData: operationId, occurredAt: AT }
  return inTransaction(db, (tx) => storeAuthenticationAndLock(tx, outcome, audit, operationId))
}

const countAudits = async (operationId: string): Promise<number> => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from audit_trail where event_type = 'test_of_lock' and event_data = ${operationId}`.execute(db)
  return rows[0]?.count ?? 0
}

test.each([
  ['a usual code', undefined],
  ['a code that settles a factor key', Buffer.from([9, 9])],
])('the operation of %s comes with its columns and the flags of the activation', async (_, masterSecret) => {
  const holder = await world.holder()
  await world.setFlags(holder, 'ONE,TWO')
  const { id } = await world.operation(holder.userId)
  const before = await read(holder)
  const stored = await store(before, id, masterSecret && { masterSecret })
  const locked = await inTransaction(db, (tx) => lockOperation(tx, before.applicationId, id, before.activationId))
  expect(locked).toMatchObject({ operationId: id, userId: holder.userId, status: 'PENDING', approverFlags: ['ONE', 'TWO'] })
  expect(stored).toEqual({ operation: locked })
  const { counter, rowVersion, masterSecret: kept } = await read(holder)
  expect({ counter, rowVersion }).toEqual({ counter: before.counter + 1, rowVersion: before.rowVersion + 1 })
  expect(kept).toEqual(masterSecret ?? before.masterSecret)
  expect(await countAudits(id)).toBe(1)
})

test('an activation that was changed since is neither written nor audited, and no operation comes with it', async () => {
  const holder = await world.holder()
  const { id } = await world.operation(holder.userId)
  const before = await read(holder)
  expect(await store(before, id, { rowVersion: before.rowVersion - 1 })).toBeUndefined()
  expect(await read(holder)).toEqual(before)
  expect(await countAudits(id)).toBe(0)
})

test('a code that names an operation of another application, or none, is stored all the same', async () => {
  const holder = await world.holder()
  const side = await world.openSide()
  const stranger = await world.holder('3.2', {}, side)
  const { id } = await world.operation(stranger.userId, {}, side.bank)
  for (const named of [id, randomUUID()]) {
    const before = await read(holder)
    expect(await store(before, named)).toEqual({ operation: undefined })
    expect((await read(holder)).counter).toBe(before.counter + 1)
    expect(await countAudits(named)).toBe(1)
  }
})

// The embedded database has one session: there nobody holds a lock beside others.
test.runIf(serverUrl() !== undefined)('who waits for the lock sees how the operation ended meanwhile', async () => {
  const holder = await world.holder()
  const { id } = await world.operation(holder.userId)
  const before = await read(holder)
  let waiting: ReturnType<typeof store> | undefined
  await inTransaction(db, async (tx) => {
    await sql`update operation set status = 'CANCELED', finalized_at = ${AT} where operation_id = ${id}`.execute(tx)
    waiting = store(before, id)
    await expect.poll(async () => (await sql.raw<{ waiting: number }>(COUNT_WAITING).execute(tx)).rows[0]?.waiting).toBe(1)
  })
  expect((await waiting)?.operation).toMatchObject({ operationId: id, status: 'CANCELED' })
  expect((await read(holder)).counter).toBe(before.counter + 1)
})
