// Limits of failures that hold for two processes on one database: each has budgets and gates of its own, and tells the other.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { importHmacKey } from '../../src/crypto/hash.ts'
import { createLoginGate, type Login, type LoginGate } from '../../src/domain/credential/login-gate.ts'
import { createSharedFailures, type SharedFailures } from '../../src/domain/limits/shared-failures.ts'
import { createWindow, type Window } from '../../src/domain/limits/window.ts'
import { createEvents } from '../../src/log/events.ts'
import { createLog } from '../../src/log/log.ts'
import { currentScope, runInScope } from '../../src/lib/trace.ts'
import type { Db } from '../../src/storage/database/database.ts'
import { deleteOldFailureCounts } from '../../src/storage/credential/failure-counts.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
})
afterAll(() => server.close())

const MINUTE = 60_000
const key = importHmacKey(Buffer.alloc(32, 1))
const events = createEvents(createLog('silent', { write: () => undefined }))
/** Their clocks show what the tests say, which is what is in the database, too. */
const share = () => createSharedFailures(server.context.db, key, { now: () => 0, monotonic: () => 0 })
const countFailures = async (): Promise<number> => {
  const { rows } = await sql<{ failures: number }>`select failures from failure_count`.execute(server.context.db)
  return rows.reduce((sum, { failures }) => sum + failures, 0)
}
const countWaits = async (): Promise<number> => {
  const { rows } = await sql<{ waits: number }>`select waits from failure_count`.execute(server.context.db)
  return Math.max(...rows.map(({ waits }) => waits))
}

test('what failed at one process counts at the other from its first failure on, until the minute of both is over', async () => {
  const at = 1_700_000_000_000
  const open = (): Window => createWindow({ perMinute: 10, others: { shared: share(), of: 'test' } })
  const [first, second] = [open(), open()]
  for (let i = 0; i < 50; i += 1) first.takeIfLeft('good', at)?.giveBack()
  for (let i = 0; i < 10; i += 1) first.takeIfLeft('a', at)?.keep()
  expect(first.takeIfLeft('a', at)).toBeUndefined()
  await expect.poll(countFailures).toBe(10)
  second.takeIfLeft('a', at + 30_000)?.keep()
  await expect.poll(() => second.takeIfLeft('a', at + 30_000)).toBeUndefined()
  expect(second.secondsLeft('a', at + 30_000)).toBe(30)
  expect(second.takeIfLeft('b', at + 30_000)).toBeDefined()
  // The minute began at the first process.
  expect(second.takeIfLeft('a', at + MINUTE)).toBeDefined()
  second.takeIfLeft('a', at + MINUTE)?.keep()
  await expect.poll(countFailures).toBe(1)
  expect(await deleteOldFailureCounts(server.context.db, new Date(at + MINUTE), 10)).toBe(0)
  expect(await deleteOldFailureCounts(server.context.db, new Date(at + 3 * MINUTE), 10)).toBe(1)
})

test('a password is not looked at by a process while another one makes its user and source wait', async () => {
  const at = 1_700_001_000_000
  const open = (): LoginGate => createLoginGate(events, () => at, 4, share())
  const [first, second] = [open(), open()]
  const login: Login = { username: 'eve', source: '192.0.2.1', onGone: () => () => undefined }
  let looks = 0
  const guess = async (gate: LoginGate, now: number): Promise<unknown> => {
    try {
      await gate.check(login, String(looks), now, async () => {
        looks += 1
      })
      return gate.fail(login, now, true)
    } catch (error) {
      return error
    }
  }
  // Two guesses each are the four that both have.
  for (const gate of [first, first]) expect(await guess(gate, at)).toMatchObject({ code: 'CREDENTIALS_INVALID' })
  await expect.poll(countFailures).toBe(4)
  for (const gate of [second, second]) expect(await guess(gate, at)).toMatchObject({ code: 'CREDENTIALS_INVALID' })
  await expect.poll(countWaits).toBe(1)
  expect(await guess(first, at)).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 60 })
  expect(looks).toBe(4)
  // A process that starts later has heard of it before its first look.
  expect(await guess(open(), at + 59_000)).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 1 })
  // For an hour one more failure is enough for a wait of two minutes.
  expect(await guess(open(), at + MINUTE)).toMatchObject({ code: 'CREDENTIALS_INVALID' })
  await expect.poll(countWaits).toBe(2)
  expect(await guess(first, at + MINUTE)).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 120 })
  expect(looks).toBe(5)
})

test('after a wait, too, failures at two processes add up', async () => {
  const at = 1_700_002_000_000
  const shared = share()
  const open = (): Window => createWindow({ perMinute: 8, backsOff: true, others: { shared: share(), of: 'waits' } })
  const [first, second] = [open(), open()]
  for (let i = 0; i < 8; i += 1) first.fail('a', at)
  await expect.poll(() => shared.ask('waits\0a')).toMatchObject({ failures: 0, waits: 1 })
  // For an hour two failures in a minute are too many.
  expect(first.fail('a', at + MINUTE)).toBeUndefined()
  await expect.poll(() => shared.ask('waits\0a')).toMatchObject({ failures: 1, waits: 1 })
  await second.hear('a', at + MINUTE)
  expect(second.fail('a', at + MINUTE)).toBe(120)
})

test('what is told to the database is part of no request, not even of the one that failed first', async () => {
  const scopes: unknown[] = []
  const executeQuery = async () => {
    scopes.push(currentScope())
    return { rows: [] }
  }
  const shared = createSharedFailures({ executeQuery } as unknown as Db, key, { now: () => 0, monotonic: () => 0 })
  const failure = { failures: 1, endsAt: MINUTE, waits: 0, waitEndsAt: 0 }
  runInScope({ id: 'the first', span: undefined }, () => shared.tell('a', failure, () => undefined))
  await expect.poll(() => scopes).toEqual([undefined])
})

describe('a clock of the database that was set back', () => {
  const set = 1_700_010_000_000
  /** A process whose own clock shows `uptime`. */
  const shareAt = (databaseNow: number, uptime: number) =>
    createSharedFailures(server.context.db, key, { now: () => databaseNow, monotonic: () => uptime })
  const failuresOf = async (share: SharedFailures, name: string) => (await share.ask(name))?.failures

  test.each([
    ['an hour', 3_600_000],
    ['a day', 86_400_000],
    ['three minutes', 180_000],
  ])('begins the minute of a source anew, by %s', async (name, ms) => {
    const of = `by ${name}`
    const before = createWindow({ perMinute: 3, others: { shared: shareAt(set, 10_000), of } })
    for (let i = 0; i < 3; i += 1) before.takeIfLeft('a', 10_000)?.keep()
    await expect.poll(() => failuresOf(shareAt(set, 10_000), `${of}\0a`)).toBe(3)
    const after = createWindow({ perMinute: 3, others: { shared: shareAt(set - ms, 5_000), of } })
    after.takeIfLeft('a', 5_000)?.keep()
    await expect.poll(() => failuresOf(shareAt(set - ms, 5_000), `${of}\0a`)).toBe(1)
    expect(after.takeIfLeft('a', 5_000)).toBeDefined()
    expect(after.takeIfLeft('a', 5_000)).toBeDefined()
    expect(after.takeIfLeft('a', 5_000)).toBeUndefined()
    expect(after.secondsLeft('a', 5_000)).toBe(60)
  })

  test.each([
    ['an hour', 3_600_000],
    ['a day', 86_400_000],
    ['three minutes', 180_000],
  ])('leaves nobody waiting for it, by %s', async (name, ms) => {
    const login: Login = { username: `mallory ${name}`, source: '192.0.2.9', onGone: () => () => undefined }
    const guess = (gate: LoginGate, now: number): Promise<unknown> =>
      gate
        .check(login, String(now), now, async () => undefined)
        .then(() => gate.fail(login, now, true))
        .catch((error: unknown) => error)
    const before = createLoginGate(events, () => 10_000, 1, shareAt(set, 10_000))
    expect(await guess(before, 10_000)).toMatchObject({ code: 'CREDENTIALS_INVALID' })
    // The wait is in the database.
    const beside = () =>
      guess(
        createLoginGate(events, () => 99, 1, shareAt(set, 99)),
        99,
      )
    await expect.poll(beside).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 60 })
    const share = shareAt(set - ms, 5_000)
    const after = createLoginGate(events, () => 5_000, 1, share)
    expect(await guess(after, 5_000)).toMatchObject({ code: 'CREDENTIALS_INVALID' })
    expect(await guess(after, 5_001)).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 60 })
    expect(await guess(after, 65_000)).toMatchObject({ code: 'CREDENTIALS_INVALID' })
  })
})
