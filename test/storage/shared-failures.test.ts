// Limits of failures that hold for two processes on one database: each has budgets and gates of its own, and tells the other.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { importHmacKey } from '../../src/crypto/hmac.ts'
import { createLoginGate, type Login, type LoginGate } from '../../src/domain/credential/login-gate.ts'
import { createFailureBudget, type FailureBudget } from '../../src/domain/limits/failure-budget.ts'
import { createSharedFailures } from '../../src/domain/limits/shared-failures.ts'
import { createEvents } from '../../src/lib/events.ts'
import { createLog } from '../../src/lib/log.ts'
import { deleteOldFailureCounts } from '../../src/storage/failure-counts.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
})
afterAll(() => server.close())

const MINUTE = 60_000
const key = importHmacKey(Buffer.alloc(32, 1))
const events = createEvents(createLog('silent', { write: () => undefined }))
const share = () => createSharedFailures(server.context.db, key)
const countFailures = async (): Promise<number> => {
  const rows = await server.context.db.selectFrom('failure_count').select('failures').execute()
  return rows.reduce((sum, { failures }) => sum + failures, 0)
}
const countWaits = async (): Promise<number> => {
  const rows = await server.context.db.selectFrom('failure_count').select('waits').execute()
  return Math.max(...rows.map(({ waits }) => waits))
}

test('what failed at one process counts at the other from its first failure on, until the minute of both is over', async () => {
  const at = 1_700_000_000_000
  const open = (): FailureBudget => createFailureBudget(10, { shared: share(), of: 'test' })
  const [first, second] = [open(), open()]
  for (let i = 0; i < 50; i += 1) first.take('good', at)?.giveBack()
  for (let i = 0; i < 10; i += 1) first.take('a', at)?.keep()
  expect(first.take('a', at)).toBeUndefined()
  await expect.poll(countFailures).toBe(10)
  second.take('a', at + 30_000)?.keep()
  await expect.poll(() => second.take('a', at + 30_000)).toBeUndefined()
  expect(second.secondsLeft('a', at + 30_000)).toBe(30)
  expect(second.take('b', at + 30_000)).toBeDefined()
  // The minute began at the first process.
  expect(second.take('a', at + MINUTE)).toBeDefined()
  second.take('a', at + MINUTE)?.keep()
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
