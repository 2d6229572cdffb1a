// Connections to PostgreSQL that hang, fall silent or break at the worst statement: every request that was answered 200 is stored, whatever
// ends the server or its transaction then, and the server serves again within 15 s.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { COUNT_WAITING } from '../helpers/app.ts'
import { HOLD_MS, type LineFault } from '../helpers/database-line.ts'
import { close, closeAccount, expectNothingLost, kill, meet, openSite, type Site, terminate } from './site.ts'

const STATEMENTS = {
  BEGIN: /^begin$/,
  COMMIT: /^commit$/,
  'the conditional write': /update activation a set counter/,
} as const
const FAULTS: readonly LineFault[] = ['hold', 'swallow', 'cut']
const POOL_SIZES = [1, 8]
const CASES = POOL_SIZES.flatMap((poolSize) =>
  FAULTS.flatMap((fault) => Object.entries(STATEMENTS).map(([name, statement]) => ({ poolSize, fault, name, statement }))),
)

afterAll(() => closeAccount('connections'))

describe.concurrent('a pool', () => {
  test.each(CASES)('of $poolSize, $fault at $name', async ({ poolSize, fault, statement }) => {
    const site = await openSite(poolSize)
    for (const end of [rollBack, poison, terminate, kill]) {
      await meet(site, () => site.line.strike(statement, fault), fault === 'hold' ? HOLD_MS : 0)
      await end(site)
      await expectNothingLost(site.load)
    }
    await close(site)
  })

  test.each(POOL_SIZES)('of %i whose connections all fall silent', async (poolSize) => {
    const site = await openSite(poolSize)
    await meet(site, async () => site.line.silence())
    await kill(site)
    await expectNothingLost(site.load)
    await close(site)
  })

  test.each(POOL_SIZES)('of %i whose commit is done and never answered', async (poolSize) => {
    const site = await openSite(poolSize)
    await meet(site, () => site.line.strike(STATEMENTS.COMMIT, 'mute'))
    await kill(site)
    await expectNothingLost(site.load)
    await close(site)
  })

  test.each(POOL_SIZES)('of %i whose connections are in a transaction that the server did not begin', async (poolSize) => {
    const site = await openSite(poolSize)
    for (const end of [rollBack, poison, terminate, kill]) {
      await meet(site, async () => site.line.smuggle('begin'))
      await end(site)
      await expectNothingLost(site.load)
    }
    await close(site)
  })
})

/** Has the bank send a change that pawl refuses and rolls back. */
async function rollBack({ load, world }: Site): Promise<void> {
  await load.pause()
  expect((await world.bank.call('POST', '/admin/application', { id: world.applicationId })).status).toBe(400)
}

/** Makes a statement fail on every connection. In a transaction it would make all later statements fail, too. */
async function poison({ load, world, installation }: Site): Promise<void> {
  await load.pause()
  const holder = new Client(installation.env['DATABASE_URL'])
  const observer = new Client(installation.env['DATABASE_URL'])
  await Promise.all([holder.connect(), observer.connect()])
  const { userId } = await world.activePhone('3.3')
  await holder.query('begin')
  await holder.query('select 1 from activation for update')
  const failed = Array.from({ length: 8 }, () => world.bank.change(userId, 'BLOCK'))
  let canceled = 0
  while (canceled < 1 || (await observer.query<{ waiting: number }>(COUNT_WAITING)).rows[0]?.waiting !== 0) {
    const { rows } = await observer.query(CANCEL_WAITING)
    canceled += rows.length
    await sleep(20)
  }
  await holder.query('rollback')
  for (const { status } of await Promise.all(failed)) expect([503, 200, 400, 404]).toContain(status)
  await Promise.all([holder.end(), observer.end()])
}

const CANCEL_WAITING = `
  select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
