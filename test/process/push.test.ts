// Every push of an operation that was answered reaches its provider: two providers, one of them over TLS, and servers that are killed again and
// again (mobile-token §7.1).
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterEach, expect, test, vi } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { createBank } from '../helpers/bank.ts'
import { createCertificate } from '../helpers/certificates.ts'
import { findQuietPort } from '../helpers/ports.ts'
import type { Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import { type PushProviderServer, startApns, startFcm } from '../helpers/push-providers.ts'
import { expectOk, openWorld, type World } from '../helpers/world.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })
afterEach(endEverything)

const PHONES = 8
const OPERATIONS = 200
/** After so many operations a server is killed. */
const KILLS = [60, 140]

interface Site {
  readonly world: World
  /** The servers that run now; one on the embedded database, else two. */
  readonly servers: PawlProcess[]
  /** Kills one of the servers, and starts another in its place. */
  readonly kill: () => Promise<void>
  /** Lets the leases of who was killed run out. */
  readonly endLeases: () => Promise<void>
  readonly output: () => string
}

async function openSite(installation: Installation, providers: readonly PushProviderServer[]): Promise<Site> {
  const shift = join(installation.directory, 'shift')
  writeFileSync(shift, '0')
  const preload = fileURLToPath(new URL('../helpers/shifted-clock.mjs', import.meta.url))
  const clock = installation.kind === 'embedded' ? { NODE_OPTIONS: `--import=${preload}`, SHIFTED_CLOCK_FILE: shift } : {}
  const certificate = { NODE_EXTRA_CA_CERTS: join(installation.directory, 'ca.pem') }
  const settings = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_LOG_LEVEL: 'debug', PAWL_WEBHOOK_RETRY_BASE_SECONDS: '1' }
  const ports = [await findQuietPort(), ...(installation.kind === 'embedded' ? [] : [await findQuietPort()])]
  const env = Object.assign({}, ...providers.map((provider) => provider.env)) as Record<string, string>
  const start = (port: number): Promise<PawlProcess> =>
    startPawl(installation.env, env, settings, clock, certificate, { PAWL_PORT: String(port) })
  const servers: PawlProcess[] = []
  for (const port of ports) servers.push(await start(port))
  const ended: string[] = []
  let kills = 0
  const urls = servers.map(({ url }) => url)
  const world = await openWorld({
    urls,
    admin: `admin:${ADMIN_PASSWORD}`,
    advance: () => undefined,
    close: async () => undefined,
  })
  return {
    world,
    servers,
    kill: async () => {
      const index = kills++ % servers.length
      const { stdout, stderr } = (await servers[index]?.end('SIGKILL')) ?? { stdout: '', stderr: '' }
      ended.push(stdout, stderr)
      servers[index] = await start(ports[index] ?? 0)
    },
    endLeases: async () => {
      writeFileSync(shift, '31000')
      if (installation.adminUrl === undefined) return
      const client = new Client({ connectionString: installation.adminUrl })
      await client.connect()
      await client.query(
        `update webhook_delivery set leased_until = leased_until - interval '31 s' where leased_until is not null`,
      )
      await client.end()
    },
    output: () => [...ended, ...servers.map((server) => server.output())].join(''),
  }
}

/** Binds phones and tells where pushes reach them, half of them at Apple; returns user and token of each. */
async function bindPhones(world: World): Promise<readonly { userId: string; deviceToken: string }[]> {
  const bound: { userId: string; deviceToken: string }[] = []
  for (let i = 0; i < PHONES; i += 1) {
    const { userId, phone } = await world.activePhone('3.2')
    const token = await phone.createToken('possession')
    const deviceToken = `${i}`.padStart(64, 'd')
    const registration = { platform: i % 2 === 0 ? 'apns' : 'fcm', token: deviceToken }
    expectOk(await phone.send(await phone.prepareTokenCall('push', token, registration)))
    bound.push({ userId, deviceToken })
  }
  return bound
}

test(`each push of ${OPERATIONS} operations arrives, though servers are killed and providers are moody`, async () => {
  const certificate = createCertificate(['IP:127.0.0.1'])
  const [apns, fcm] = await Promise.all([startApns({ certificate }), startFcm()])
  const installation = await createInstallation(DATABASE_KIND)
  writeFileSync(join(installation.directory, 'ca.pem'), certificate.pem)
  const site = await openSite(installation, [apns, fcm])
  const phones = await bindPhones(site.world)
  for (const provider of [apns, fcm]) {
    provider.answerWith(() => {
      const nth = provider.received.length
      if (nth % 41 === 0) return 'reset'
      return { status: nth % 11 === 0 ? 503 : 200 }
    })
  }
  /** Operations that were answered, and who is to be told of them. */
  const told = new Map<string, string>()
  let made = 0
  let killing: Promise<void> = Promise.resolve()
  const create = async (): Promise<void> => {
    while (made < OPERATIONS) {
      const nth = made++
      if (KILLS.includes(nth)) killing = site.kill()
      const { userId, deviceToken } = phones[nth % PHONES] ?? { userId: '', deviceToken: '' }
      const { url = '' } = site.servers[nth % site.servers.length] ?? {}
      const bank = createBank(url, `admin:${ADMIN_PASSWORD}`)
      const body = { userId, template: 'login' }
      const reply = await bank.createOperation(body).catch((): HttpReply | undefined => undefined)
      if (reply?.status === 200) told.set(String((reply.json as { operationId: unknown }).operationId), deviceToken)
      // Nobody answers until the next start: those of this moment are lost, and no others.
      else await killing
    }
  }
  await Promise.all([create(), create(), create(), create()])
  await killing
  expect(told.size).toBeGreaterThan(OPERATIONS - 4 * KILLS.length - 1)
  await site.endLeases()
  const accepted = () => [...apns.accepted(), ...fcm.accepted()]
  const untold = (): string[] => {
    const got = new Map(accepted().map(({ data, token }) => [data['operationId'], token]))
    return [...told]
      .filter(([operationId, deviceToken]) => got.get(operationId) !== deviceToken)
      .map(([operationId]) => operationId)
  }
  await expect.poll(untold, { interval: 200 }).toEqual([])
  // What comes again is the same push. More often than the kills and the refusals make it nothing comes again.
  const ids = Map.groupBy(apns.received, ({ data }) => data['operationId'])
  for (const pushes of ids.values()) expect(new Set(pushes.map(({ headers }) => headers['apns-id'])).size).toBe(1)
  expect(accepted().length).toBeLessThanOrEqual(told.size + 4 * KILLS.length + 2 * 16 * KILLS.length)
  const output = site.output()
  expect(output).toContain('HTTP 503')
  for (const secret of [...apns.secrets, ...fcm.secrets, ...phones.map(({ deviceToken }) => deviceToken)])
    expect(output).not.toContain(secret)
  await Promise.all([apns.close(), fcm.close()])
})
