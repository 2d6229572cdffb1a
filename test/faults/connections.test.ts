// Connections to PostgreSQL that hang, fall silent or break at the worst statement: what was answered 200 is stored, whatever ends the
// server or its transaction then, and the server serves again within 15 s.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { COUNT_WAITING } from '../helpers/app.ts'
import { type DatabaseLine, HOLD_MS, type LineFault, openDatabaseLine } from '../helpers/database-line.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  type Environment,
  endEverything,
  type Installation,
  type PawlProcess,
  startPawl,
} from '../helpers/process.ts'
import { openWorld, type World } from '../helpers/world.ts'
import { type Counts, type Load, openLoad } from './load.ts'

const HEALED_MS = 15_000

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

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

const totals = { sent: 0, answered: 0, lost: 0, acceptedAgain: 0, slowest: 0 }

afterAll(async () => {
  await endEverything()
  const { sent, answered, lost, acceptedAgain, slowest } = totals
  const seconds = (slowest / 1000).toFixed(1)
  process.stdout.write(
    `connections: ${sent} sent, ${answered} answered, ${lost} lost, ${acceptedAgain} accepted again, healed within ${seconds} s\n`,
  )
})

describe.concurrent('a pool', () => {
  test.each(CASES)('of $poolSize, $fault at $name', async ({ poolSize, fault, statement }) => {
    const site = await openSite(poolSize)
    for (const end of [rollBack, poison, terminate, kill]) {
      await meet(site, () => site.line.strike(statement, fault), fault)
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

interface Site {
  readonly installation: Installation
  readonly env: Environment
  readonly line: DatabaseLine
  readonly world: World
  readonly load: Load
  server: PawlProcess
}

async function openSite(poolSize: number): Promise<Site> {
  const installation = await createInstallation('postgresql')
  const line = await openDatabaseLine(installation.env['DATABASE_URL'] ?? '')
  const env = {
    ...installation.env,
    DATABASE_URL: line.url,
    PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
    PAWL_DATABASE_POOL_SIZE: String(poolSize),
    PAWL_PORT: String(await findQuietPort()),
  }
  const server = await startPawl(env)
  const admin = `admin:${ADMIN_PASSWORD}`
  const world = await openWorld({ urls: [server.url], admin, advance: () => undefined, close: async () => undefined })
  const load = await openLoad(world)
  load.start()
  await load.everyoneAnswered()
  return { installation, env, line, world, load, server }
}

/** Lets the fault happen under load, and waits until everyone is served and what was held has arrived. */
async function meet({ load }: Site, strike: () => Promise<void>, fault?: LineFault): Promise<void> {
  load.start()
  await strike()
  const since = performance.now()
  await load.everyoneAnswered()
  const took = performance.now() - since
  totals.slowest = Math.max(totals.slowest, took)
  expect(took, 'milliseconds until everyone was served').toBeLessThan(HEALED_MS)
  if (fault === 'hold') await sleep(Math.max(0, HOLD_MS - took))
  await sleep(AFTERWARDS_MS)
}

/** A change of the administration that is refused is rolled back. */
async function rollBack({ load, world }: Site): Promise<void> {
  await load.pause()
  expect((await world.bank.call('POST', '/admin/application', { id: world.applicationId })).status).toBe(400)
}

/** A statement that fails on every connection: in a transaction it would spoil all that come after. */
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

async function terminate(site: Site): Promise<void> {
  expect(await site.server.end('SIGTERM')).toMatchObject({ code: 0, signal: null })
  await restart(site)
}

/** In the middle of the load: what is under way then has no answer. */
async function kill(site: Site): Promise<void> {
  await site.server.end('SIGKILL')
  await restart(site)
}

async function restart(site: Site): Promise<void> {
  await site.load.pause()
  site.server = await startPawl(site.env)
}

async function expectNothingLost({ counts, check }: Load): Promise<void> {
  await check()
  expect(counts).toMatchObject({ lost: 0, acceptedAgain: 0, refused: [] } satisfies Partial<Counts>)
}

async function close({ server, line, load }: Site): Promise<void> {
  totals.sent += load.counts.sent
  totals.answered += load.counts.answered
  totals.lost += load.counts.lost
  totals.acceptedAgain += load.counts.acceptedAgain
  await server.end('SIGTERM')
  await line.close()
}

const AFTERWARDS_MS = 1_500
const CANCEL_WAITING = `
  select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
