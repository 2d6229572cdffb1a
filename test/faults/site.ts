// Runs a server whose connection to the database can be disturbed, under a load that counts, and adds up the counts of a test file.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type DatabaseLine, openDatabaseLine } from '../helpers/database-line.ts'
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

export interface Site {
  readonly installation: Installation
  readonly env: Environment
  readonly line: DatabaseLine
  readonly world: World
  readonly load: Load
  server: PawlProcess
}

/** Starts a server with a pool of this size, and waits until every sender has been served once. */
export async function openSite(poolSize: number): Promise<Site> {
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

/** Causes a fault under load. Expects that every sender is served again in time, and waits until the fault is over. */
export async function meet({ load }: Site, strike: () => Promise<void>, pastMs = 0): Promise<void> {
  load.start()
  await strike()
  const since = performance.now()
  await load.everyoneAnswered()
  const took = performance.now() - since
  await load.everyoneAnswered()
  const ordinary = performance.now() - since - took
  totals.slowest = Math.max(totals.slowest, took)
  expect(took, 'milliseconds until everyone was served').toBeLessThan(HEALED_MS + ROUNDS * ordinary)
  await sleep(Math.max(0, pastMs - took))
  await sleep(AFTERWARDS_MS)
}

export async function terminate(site: Site): Promise<void> {
  expect(await site.server.end('SIGTERM')).toMatchObject({ code: 0, signal: null })
  await restart(site)
}

/** Kills the server in the middle of the load, so that requests under way get no answer, and starts a new one. */
export async function kill(site: Site): Promise<void> {
  await site.server.end('SIGKILL')
  await restart(site)
}

async function restart(site: Site): Promise<void> {
  await site.load.pause()
  site.server = await startPawl(site.env)
}

/** Expects that no effect of a 200 is lost, that no code is accepted again, and that right requests were refused with 503 only. */
export async function expectNothingLost({ counts, check }: Load): Promise<void> {
  await check()
  expect(counts).toMatchObject({ lost: 0, acceptedAgain: 0, refused: [] } satisfies Partial<Counts>)
}

/** Adds the counts of a site to the account of the file, and closes the site. */
export async function close({ server, line, load }: Site): Promise<void> {
  totals.sent += load.counts.sent
  totals.answered += load.counts.answered
  totals.lost += load.counts.lost
  totals.acceptedAgain += load.counts.acceptedAgain
  await server.end('SIGTERM')
  await line.close()
}

/** For afterAll: ends all processes, and prints the account. */
export async function closeAccount(name: string): Promise<void> {
  await endEverything()
  const { sent, answered, lost, acceptedAgain, slowest } = totals
  const seconds = (slowest / 1000).toFixed(1)
  process.stdout.write(
    `${name}: ${sent} sent, ${answered} answered, ${lost} lost, ${acceptedAgain} accepted again, healed within ${seconds} s\n`,
  )
}

const totals = { sent: 0, answered: 0, lost: 0, acceptedAgain: 0, slowest: 0 }
// A connection without an answer ends after nine seconds. The work that follows takes longer on a busy machine, so the limit grows with the time
// of the next round, which takes 300 ms on a quiet machine.
const HEALED_MS = 12_000
const ROUNDS = 10
const AFTERWARDS_MS = 1_500
