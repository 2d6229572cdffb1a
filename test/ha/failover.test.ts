// The primary is lost under load, and a standby takes its place: no acknowledged code is lost or accepted again, and pawl serves again within
// 5 s of the promotion, without a restart.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { HttpRequest } from '../../phone/http.ts'
import { createBank } from '../helpers/bank.ts'
import { hasHaproxy } from '../helpers/haproxy.ts'
import { ADMIN_PASSWORD, endEverything, type Environment, startPawl } from '../helpers/process.ts'
import { activatePhones, type LoadPhone, openApplication, replay, runLoad } from '../helpers/recorded-load.ts'
import { type Cluster, type CuttableCluster, openCluster } from './cluster.ts'
import { openDatabaseHaproxy } from './haproxy.ts'
import { hasPatroni, openPatroniCluster, type RestartableCluster } from './patroni.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  await endEverything()
  for (const close of closers.splice(0).reverse()) await close()
})

interface Case {
  readonly way: string
  readonly fault: string
  readonly isInstalled: boolean
  readonly open: () => Promise<{
    readonly cluster: Cluster
    readonly url: string
    readonly strike: () => Promise<void>
    readonly wake: () => Promise<unknown>
  }>
}

const kill = async ({ signalPrimary }: Cluster) => signalPrimary('SIGKILL')
const freeze = async ({ signalPrimary }: Cluster) => signalPrimary('SIGSTOP')
const cutAndKill = async ({ cutReplication, signalPrimary }: CuttableCluster) => {
  cutReplication()
  await sleep(1_000)
  signalPrimary('SIGKILL')
}
const goOn = async ({ signalPrimary }: Cluster) => signalPrimary('SIGCONT')
// A watchdog resets a machine that stood still: its open transactions are lost, and its server starts as a standby. Without the reset, the agent
// takes the lock back (Patroni before 3.0.3), and its server answers from old data until the agent has ended it (all versions).
const isReset = async ({ signalPrimary, restartPrimary }: RestartableCluster) => {
  signalPrimary('SIGKILL')
  return restartPrimary()
}
const allHosts = async ({ urlOf }: Cluster) => urlOf()

const CASES: readonly Case[] = [
  prepare('all hosts in the URL', 'is killed', openCluster, allHosts, kill),
  prepare('all hosts in the URL', 'is killed a second after its replication was cut', openCluster, allHosts, cutAndKill),
  // The transactions of a frozen machine go on when it wakes up, and none of them may count.
  prepare('all hosts in the URL', 'stands still', openCluster, allHosts, freeze, { wake: goOn }),
  prepare('HAProxy', 'is killed', openCluster, throughHaproxy, kill, { isInstalled: hasHaproxy }),
  prepare('HAProxy', 'stands still', openCluster, throughHaproxy, freeze, { isInstalled: hasHaproxy }),
  prepare('Patroni', 'is killed', openPatroniCluster, allHosts, kill, { isInstalled: hasPatroni }),
  prepare('Patroni', 'stands still', openPatroniCluster, allHosts, freeze, { isInstalled: hasPatroni, wake: isReset }),
]

function prepare<C extends Cluster>(
  way: string,
  fault: string,
  openIt: () => Promise<C>,
  reach: (cluster: C) => Promise<string>,
  strike: (cluster: C) => Promise<void>,
  { isInstalled = true, wake = kill }: { readonly isInstalled?: boolean; readonly wake?: (cluster: C) => Promise<unknown> } = {},
): Case {
  const open = async () => {
    const cluster = await openIt()
    closers.push(cluster.close)
    return { cluster, url: await reach(cluster), strike: () => strike(cluster), wake: () => wake(cluster) }
  }
  return { way, fault, isInstalled, open }
}

describe.each(CASES)('with $way', ({ way, fault, isInstalled, open }) => {
  test.runIf(isInstalled)(`a primary that ${fault}`, async () => {
    const { cluster, url, strike, wake } = await open()
    const env: Environment = {
      DATABASE_URL: url,
      PAWL_MASTER_KEY: randomBytes(32).toString('base64'),
      PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
    }
    const server = await startPawl(env)
    const admin = createBank(server.url, ADMIN)
    const { bank } = await openApplication(server.url, ADMIN, 'load')
    const phones = await activatePhones(admin, bank, 'load', PHONES)

    const acknowledged: HttpRequest[] = []
    const times: number[] = []
    const state = { isOver: false }
    const load = runLoad(phones, {
      url: server.url,
      isOver: () => state.isOver,
      record: (request) => {
        acknowledged.push(request)
        times.push(performance.now())
      },
    })
    await sleep(LOAD_MS)
    const struckAt = performance.now()
    await strike()
    await sleep(NOTICED_MS)
    const before = acknowledged.length
    await cluster.promote()
    const promotedAt = performance.now()
    await vi.waitFor(() => expect(times.some((at) => at > promotedAt)).toBe(true), { timeout: PATIENCE_MS, interval: 50 })
    const backMs = (times.find((at) => at > promotedAt) ?? Number.NaN) - promotedAt
    await sleep(AFTER_MS)
    if (fault === 'stands still') await wake()
    await sleep(AFTER_MS)
    state.isOver = true
    const { refused } = await load

    // A new server has nothing of the phones in memory, so its answers show the contents of the database.
    await server.end('SIGTERM')
    const fresh = await startWhenWritable({ ...env, ...UNLIMITED, DATABASE_URL: cluster.urlOf(reached(way, cluster)) })
    const lost = await countLost(fresh.url, phones)
    // `replay` sends the last of the given requests first.
    const { accepted, otherwise } = await replay(fresh.url, acknowledged.toReversed())
    process.stdout.write(
      `${way}, ${fault}: ${acknowledged.length} acknowledged (${before} before the promotion), ${lost} lost, ` +
        `${accepted.length} accepted again, promoted after ${((promotedAt - struckAt) / 1000).toFixed(1)} s, ` +
        `back ${(backMs / 1000).toFixed(1)} s later\n`,
    )
    expect(acknowledged.length - before).toBeGreaterThan(PHONES)
    expect({ lost, accepted, otherwise, refused }).toEqual({ lost: 0, accepted: [], otherwise: [], refused: [] })
    expect(backMs).toBeLessThan(BACK_MS)
  })
})

async function throughHaproxy(cluster: Cluster): Promise<string> {
  const { host, close } = await openDatabaseHaproxy(cluster.ports)
  closers.push(close)
  return cluster.urlOf([host])
}

/** Limits out of reach, because every repeated code counts as a failure, and all of them come from one address. */
const UNLIMITED = { PAWL_SOURCE_FAILURES_PER_MINUTE: '1000000', PAWL_CODE_FAILURES_PER_MINUTE: '100000' }

/** Starts pawl until it stays up: it ends when no server takes writes, as happens for a while after an old primary wakes up. */
const startWhenWritable = (env: Environment) => vi.waitFor(() => startPawl(env), { timeout: PATIENCE_MS, interval: 1_000 })

/**
 * The hosts that the fresh pawl reaches: without the replaced primary, which an operator shuts out first. Under Patroni the replaced primary
 * follows, and may become the primary again, so all three are named.
 */
const reached = (way: string, { ports }: Cluster): string[] =>
  ports.slice(way === 'Patroni' ? 0 : 1).map((port) => `localhost:${port}`)

/** The number of codes by which the server is behind the newest acknowledged ones, over all phones. */
async function countLost(url: string, phones: readonly LoadPhone[]): Promise<number> {
  let lost = 0
  for (const { phone, codesMade, codesAccepted } of phones) {
    const { ctrByte } = await phone.readStatus({ withChallenge: true, url })
    // A code without an answer may have been accepted, so the server may be ahead, up to the number of codes made.
    const ahead = (ctrByte - codesAccepted) & 0xff
    if (ahead > codesMade - codesAccepted) lost += 0x100 - ahead
  }
  return lost
}

const ADMIN = `admin:${ADMIN_PASSWORD}`
const PHONES = 8
const LOAD_MS = 3_000
const NOTICED_MS = 1_000
const AFTER_MS = 1_500
const BACK_MS = 5_000
