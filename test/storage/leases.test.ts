// A lease of a process lasts no longer when somebody sets the clock back.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHousekeeping } from '../../src/domain/housekeeping.ts'
import { endDeliveryLease, leaseDelivery } from '../../src/storage/audit/chain.ts'
import { closeName, openName } from '../../src/storage/user/erasure.ts'
import { claimDeliveries } from '../../src/storage/webhook/deliveries.ts'
import type { TestServer } from '../helpers/app.ts'
import { HOUR, MINUTE, SECOND } from '../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../helpers/world.ts'

const START = 1_900_000_000_000
const lease = (leaseId: string, at: number, ms: number) => ({ leaseId, at: new Date(at), until: new Date(at + ms) })
const ID = { one: '00000000-0000-4000-8000-000000000001', other: '00000000-0000-4000-8000-000000000002' }

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({ worksInBackground: false }))
})
afterAll(() => world.close())

describe('a name of an erasure that the clock was set back under', () => {
  const closing = (name: string) => ({ erasureId: `erasure-${name}`, salt: Buffer.alloc(32, 5) })
  const secondsLeft = async (name: string): Promise<number> => {
    const { rows } = await sql<{ left: number }>`
      select extract(epoch from closed_until - clock_timestamp())::float8 as left from user_erasure
      where erasure_id = ${closing(name).erasureId}`.execute(server.context.db)
    return rows[0]?.left ?? Number.NaN
  }

  test.each([
    ['an hour', 2 * 3_600],
    ['a day', 86_400],
    ['a year', 365 * 86_400],
  ])('by %s is open within an hour', async (name, seconds) => {
    const { db } = server.context
    await closeName(db, closing(name), name)
    await sql`update user_erasure set closed_until = closed_until + make_interval(secs => ${seconds - 3_600})
      where erasure_id = ${closing(name).erasureId}`.execute(db)
    expect(await secondsLeft(name)).toBeGreaterThan(seconds - 600)
    await runHousekeeping(server.context)
    const left = await secondsLeft(name)
    expect([left <= 3_600, left > 3_000]).toEqual([true, true])
  })

  test('by nothing stays closed for as long as it was', async () => {
    const { db } = server.context
    await closeName(db, closing('steady'), 'steady')
    await openName(db, 'steady', 600_000)
    const before = await secondsLeft('steady')
    await runHousekeeping(server.context)
    expect(await secondsLeft('steady')).toBeLessThanOrEqual(before)
  })
})

describe.each([
  ['three minutes', 3 * MINUTE],
  ['an hour', HOUR],
  ['a day', 24 * HOUR],
])('after the clock was set back by %s', (_, ms) => {
  test('another process delivers the audit log', async () => {
    const { db } = server.context
    const take = (id: string, at: number) => leaseDelivery(db, lease(id, at, MINUTE))
    expect(await take(ID.one, START)).toBe(true)
    for (const at of [START, START - 5 * SECOND, START + 59 * SECOND]) expect(await take(ID.other, at)).toBe(false)
    expect(await take(ID.other, START - ms)).toBe(true)
    expect(await take(ID.one, START - ms + SECOND)).toBe(false)
    await endDeliveryLease(db, ID.other)
  })

  test('another process delivers a message', async () => {
    const { db } = server.context
    const webhook = {
      application: 'test-app',
      kind: 'OPERATION',
      name: `hook-${ms}`,
      url: 'https://bank.example/',
      attributes: [],
    }
    expectOk(await world.bank.call('POST', '/admin/webhooks', webhook))
    const { userId } = await world.activePhone('3.3')
    expectOk(await world.bank.createOperation({ userId, template: 'login' }))
    const { webhook_id: id } = await db
      .selectFrom('webhook')
      .select('webhook_id')
      .where('name', '=', `hook-${ms}`)
      .executeTakeFirstOrThrow()
    const take = async (leaseId: string, at: number): Promise<number> =>
      (await claimDeliveries(db, id, lease(leaseId, at, 30 * SECOND), 16)).length
    expect(await take(ID.one, START)).toBe(1)
    for (const at of [START, START - 5 * SECOND, START + 29 * SECOND]) expect(await take(ID.other, at)).toBe(0)
    expect(await take(ID.other, START - ms)).toBe(1)
    expect(await take(ID.one, START - ms + SECOND)).toBe(0)
  })
})
