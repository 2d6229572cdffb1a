// Outcomes of several activations in one statement: each stands or falls by its own row version (ARCHITECTURE, "Invariants"). And several
// values that are used up in one statement.
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AuthenticationOutcome } from '../../src/storage/request/authentication.ts'
import { createAuthenticationStore } from '../../src/storage/request/authentication.ts'
import { listActivationHistory } from '../../src/storage/activation/history.ts'
import { type Db, inTransaction, type Tx } from '../../src/storage/database/database.ts'
import { type UniqueValue, useUniqueValues } from '../../src/storage/activation/unique-values.ts'
import { openWorld, type World } from '../helpers/world.ts'
import { COUNT_WAITING, serverUrl, startTestServer, type TestServer } from '../helpers/app.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const AT = new Date(1_700_000_000_000)
// Housekeeping takes away at any moment what is past.
const LATER = new Date(Date.now() + 3_600_000)
const named = (applicationKey: string, activationId: string) => ({ applicationKey, activationId, at: AT })
const createStore = (db: Db) => createAuthenticationStore(db, { counterWentBack: () => undefined })

let server: TestServer
let world: World
beforeAll(async () => {
  server = await startTestServer()
  const admin = `${server.admin.user}:${server.admin.password}`
  world = await openWorld({ urls: [server.url], admin, advance: () => undefined, close: () => server.close() })
})
afterAll(() => server.close())

const createActivations = (count: number): Promise<string[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const { userId, phone } = await world.activePhone('3.3')
      owners.set(phone.state.activationId, userId)
      return phone.state.activationId
    }),
  )
const owners = new Map<string, string>()

const outcomeFor = (activationId: string, rowVersion: number, counter: number): AuthenticationOutcome => ({
  activationId,
  rowVersion,
  from: 'ACTIVE',
  counter,
  ctrData: Buffer.from([counter, 0, 255]),
  masterSecret: null,
  failedAttempts: counter,
  state: 'ACTIVE',
  blockedReason: null,
  blockExpiresAt: null,
  blocksInRow: counter,
  acceptedFor: null,
  highestVersion: null,
  at: new Date(1_700_000_000_000 + counter),
})
const auditFor = (activationId: string, eventData: string) => ({
  applicationId: world.applicationId,
  userId: owners.get(activationId) ?? '',
  activationId,
  eventType: 'test_of_store',
  eventData,
  occurredAt: new Date(1_700_000_000_000),
})
const auditsOf = async (activationId: string): Promise<string[]> => {
  const { rows } = await sql<{ data: string }>`
    select event_data as data from audit_trail
    where activation_id = ${activationId} and event_type = 'test_of_store' order by sequence`.execute(server.context.db)
  return rows.map(({ data }) => data)
}

test('reads asked for at once come back each with its own row, unknown ones with none', async () => {
  const store = createStore(server.context.db)
  const ids = await createActivations(4)
  const names = [...ids, randomUUID(), ids[0] ?? ''].map((id, i) => ({ id, key: i === 2 ? 'unknown' : world.app.applicationKey }))
  const found = await Promise.all(names.map(({ id, key }) => store.find(named(key, id))))
  expect(found.map(({ activation }) => activation?.activationId)).toEqual([...ids, undefined, ids[0]])
  expect(found.map(({ version }) => version?.applicationKey)).toEqual(
    names.map(({ key }) => (key === 'unknown' ? undefined : key)),
  )
})

test('of outcomes stored at once those with a stale row version are lost, and only the others are audited', async () => {
  const store = createStore(server.context.db)
  const ids = await createActivations(6)
  const rows = await Promise.all(ids.map(async (id) => (await store.find(named(world.app.applicationKey, id))).activation))
  const stored = await Promise.all(
    ids.map((id, i) => {
      const rowVersion = (rows[i]?.rowVersion ?? 0) - (i % 2)
      return store.store(outcomeFor(id, rowVersion, 10 + i), auditFor(id, `first "${i}" {\\} ,null`))
    }),
  )
  expect(stored).toEqual(ids.map((_, i) => i % 2 === 0))
  for (const [i, id] of ids.entries()) {
    const { activation } = await store.find(named(world.app.applicationKey, id))
    const isMoved = i % 2 === 0
    expect(activation?.rowVersion).toBe((rows[i]?.rowVersion ?? 0) + (isMoved ? 1 : 0))
    expect(activation?.counter).toBe(isMoved ? 10 + i : 0)
    expect([activation?.failedAttempts, activation?.blocksInRow]).toEqual(isMoved ? [10 + i, 10 + i] : [0, 0])
    if (isMoved) expect([...(activation?.ctrData ?? [])]).toEqual([10 + i, 0, 255])
    expect(await auditsOf(id)).toEqual(isMoved ? [`first "${i}" {\\} ,null`] : [])
  }
})

test('an outcome that blocks and one that settles a factor key are stored among others', async () => {
  const { db } = server.context
  const store = createStore(db)
  const ids = await createActivations(3)
  const [blocked = '', settled = '', usual = ''] = ids
  const find = async (id: string) => (await store.find(named(world.app.applicationKey, id))).activation
  const before = await Promise.all(ids.map(find))
  const versionOf = (i: number): number => before[i]?.rowVersion ?? 0
  const until = new Date(AT.getTime() + 60_000)
  const block = { state: 'BLOCKED', blockedReason: 'MAX_FAILED_ATTEMPTS', blockExpiresAt: until } as const
  const secret = Buffer.from([0, 92, 255])
  const stored = await Promise.all([
    store.store({ ...outcomeFor(blocked, versionOf(0), 1), ...block }, auditFor(blocked, 'blocks')),
    store.store({ ...outcomeFor(settled, versionOf(1), 2), masterSecret: secret }, auditFor(settled, 'settles')),
    store.store(outcomeFor(usual, versionOf(2), 3), auditFor(usual, 'usual')),
  ])
  expect(stored).toEqual([true, true, true])
  const after = await Promise.all(ids.map(find))
  expect(after[0]).toMatchObject({ state: 'BLOCKED', blockExpiresAt: until, masterSecret: before[0]?.masterSecret })
  expect(after[1]).toMatchObject({ state: 'ACTIVE', blockExpiresAt: null, masterSecret: secret })
  expect(after[2]).toMatchObject({ state: 'ACTIVE', blockExpiresAt: null, masterSecret: before[2]?.masterSecret })
  const histories = await Promise.all(ids.map(async (id) => (await listActivationHistory(db, id, { limit: 1 }))[0]?.reason))
  expect(histories.map((reason) => reason === 'MAX_FAILED_ATTEMPTS')).toEqual([true, false, false])
})

test('an acceptance whose value was used before is not stored, and those beside it are', async () => {
  const store = createStore(server.context.db)
  const ids = await createActivations(3)
  const use = { valueHash: Buffer.from(randomUUID()), expiresAt: LATER }
  const fresh = { valueHash: Buffer.from(randomUUID()), expiresAt: LATER }
  await useUniqueValues(server.context.db, [use])
  const rows = await Promise.all(ids.map(async (id) => (await store.find(named(world.app.applicationKey, id))).activation))
  const uses = [use, fresh, undefined]
  const stored = await Promise.allSettled(
    ids.map((id, i) => store.store({ ...outcomeFor(id, rows[i]?.rowVersion ?? 0, 1), use: uses[i] }, auditFor(id, 'once'))),
  )
  expect(stored.map((one) => (one.status === 'fulfilled' ? one.value : 'refused'))).toEqual(['refused', true, true])
  expect(await Promise.all(ids.map(auditsOf))).toEqual([[], ['once'], ['once']])
  expect(await useUniqueValues(server.context.db, [fresh])).toBe(false)
})

// The embedded database has one session: there nobody holds a lock beside others.
test.runIf(serverUrl() !== undefined)('an outcome whose activation is locked holds up no other', async () => {
  const { db } = server.context
  const store = createStore(db)
  const ids = await createActivations(2)
  const [locked = '', free = ''] = ids
  const rows = await Promise.all(ids.map(async (id) => (await store.find(named(world.app.applicationKey, id))).activation))
  const isLocked = Promise.withResolvers<void>()
  const ends = Promise.withResolvers<void>()
  const locking = inTransaction(db, async (tx) => {
    await sql`select from activation where activation_id = ${locked} for update`.execute(tx)
    isLocked.resolve()
    await ends.promise
  })
  await isLocked.promise
  const waiting = store.store(outcomeFor(locked, rows[0]?.rowVersion ?? 0, 1), auditFor(locked, 'waits'))
  try {
    await expectOneWaiting()
    expect(await store.store(outcomeFor(free, rows[1]?.rowVersion ?? 0, 1), auditFor(free, 'is free'))).toBe(true)
  } finally {
    ends.resolve()
    await locking
  }
  expect(await waiting).toBe(true)
})

test('of many outcomes for one row version exactly one is stored', async () => {
  const store = createStore(server.context.db)
  const [id = '', other = ''] = await createActivations(2)
  const versions = await Promise.all(
    [id, other].map(async (one) => (await store.find(named(world.app.applicationKey, one))).activation?.rowVersion ?? 0),
  )
  const stored = await Promise.all(
    Array.from({ length: 20 }, (_, i) => {
      const target = i % 2 ? other : id
      return store.store(outcomeFor(target, versions[i % 2] ?? 0, i + 1), auditFor(target, String(i)))
    }),
  )
  expect(stored.filter(Boolean)).toHaveLength(2)
  expect([(await auditsOf(id)).length, (await auditsOf(other)).length]).toEqual([1, 1])
})

test('an outcome that cannot be stored fails alone', async () => {
  const store = createStore(server.context.db)
  const ids = await createActivations(4)
  const rows = await Promise.all(ids.map(async (id) => (await store.find(named(world.app.applicationKey, id))).activation))
  const results = await Promise.allSettled(
    ids.map((id, i) => {
      const outcome = outcomeFor(id, rows[i]?.rowVersion ?? 0, i + 1)
      // Text with U+0000 is refused by the database.
      return store.store(outcome, auditFor(id, i === 2 ? 'bad\0' : 'good'))
    }),
  )
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(await Promise.all(ids.map(async (id) => (await auditsOf(id)).length))).toEqual([1, 1, 0, 1])
})

test('an acceptance is lost when its application version was switched off, alone and among others; a refusal is stored', async () => {
  const { db } = server.context
  const store = createStore(db)
  const ids = await createActivations(4)
  const key = world.app.applicationKey
  const rows = await Promise.all(ids.map(async (id) => (await store.find(named(key, id))).activation))
  const storeAll = (acceptedFor: string | null) =>
    Promise.all(
      ids.map((id, i) => store.store({ ...outcomeFor(id, rows[i]?.rowVersion ?? 0, 1), acceptedFor }, auditFor(id, 'x'))),
    )
  await db.updateTable('application_version').set({ is_supported: false }).where('application_key', '=', key).execute()
  expect(await storeAll(key)).toEqual([false, false, false, false])
  expect(await storeAll(null)).toEqual([true, true, true, true])
  await db.updateTable('application_version').set({ is_supported: true }).where('application_key', '=', key).execute()
})

// The embedded database has one connection, on which nobody waits for another.
const hasManyConnections = serverUrl() !== undefined

test.runIf(hasManyConnections)(
  'outcomes stored at once lock their activations in one order, whatever order they come in',
  async () => {
    const { db } = server.context
    const ids = (await createActivations(2)).toSorted()
    const { find } = createStore(db)
    const rows = await Promise.all(ids.map(async (id) => (await find(named(world.app.applicationKey, id))).activation))
    const storeReversed = () =>
      db.connection().execute(async (connection) => {
        // As in a table of many rows, where nobody reads all of it.
        await sql`set enable_seqscan = off`.execute(connection)
        const { store } = createStore(connection)
        const stored = await Promise.all(
          ids.toReversed().map((id) => {
            const rowVersion = rows.find((row) => row?.activationId === id)?.rowVersion ?? 0
            return store(outcomeFor(id, rowVersion, 1), auditFor(id, 'reversed'))
          }),
        )
        await sql`reset enable_seqscan`.execute(connection)
        return stored
      })
    let stored: Promise<boolean[]> | undefined
    await inTransaction(db, async (tx) => {
      const lock = (id: string) =>
        tx.selectFrom('activation').select('activation_id').where('activation_id', '=', id).forUpdate().noWait().execute()
      await lock(ids[0] ?? '')
      stored = storeReversed()
      await expectOneWaiting()
      // What waits has locked none of the others.
      for (const id of ids) await lock(id)
    })
    expect(await stored).toEqual([true, true])
  },
)

test.runIf(hasManyConnections)('a statement of two requests is planned five times at most, however often it runs', async () => {
  const { db } = server.context
  const ids = await createActivations(2)
  await db.connection().execute(async (connection) => {
    const store = createStore(connection)
    for (let round = 1; round <= 8; round += 1) {
      const rows = await Promise.all(ids.map(async (id) => (await store.find(named(world.app.applicationKey, id))).activation))
      const stored = ids.map((id, i) => store.store(outcomeFor(id, rows[i]?.rowVersion ?? 0, round), auditFor(id, 'planned')))
      expect(await Promise.all(stored)).toEqual([true, true])
    }
    // The connection has prepared others before, which ran less often.
    const { rows } = await sql<{ planned: number }>`
      select custom_plans::int as planned from pg_prepared_statements
      where statement like '%offset 0) as arrays%' and custom_plans + generic_plans >= 8`.execute(connection)
    expect(rows.length).toBeGreaterThanOrEqual(2)
    expect(rows.map(({ planned }) => planned)).toEqual(rows.map(() => 5))
  })
})

test.runIf(hasManyConnections)('values are used up in one order, so that no two requests wait for each other', async () => {
  const { db } = server.context
  const value = (byte: number) => ({ valueHash: Buffer.alloc(32, byte), expiresAt: LATER })
  const [first, second] = [value(1), value(2)]
  const hold = (tx: Tx, { valueHash, expiresAt }: UniqueValue) =>
    sql`insert into unique_value (value_hash, expires_at) values (${valueHash}, ${expiresAt})`.execute(tx)
  let other: Promise<boolean> | undefined
  await inTransaction(db, async (tx) => {
    await hold(tx, first)
    other = useUniqueValues(db, [second, first])
    await expectOneWaiting()
    await hold(tx, second)
  })
  expect(await other).toBe(false)
})

const expectOneWaiting = () =>
  expect
    .poll(async () => (await sql.raw(COUNT_WAITING).execute(server.context.db)).rows, { timeout: PATIENCE_MS })
    .toEqual([{ waiting: 1 }])
