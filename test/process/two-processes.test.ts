// Two processes on one PostgreSQL database decide as one would (README, decisions 1 to 3), and one is replaced while the other serves.
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { serverUrl } from '../helpers/app.ts'
import { createBank } from '../helpers/bank.ts'
import { readCounters, STATE } from '../helpers/expectations.ts'
import { member } from '../helpers/http.ts'
import { PHONE_VERSIONS } from '../helpers/phone-crypto.ts'
import type { Environment, Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, startPawl } from '../helpers/process.ts'
import { describeRaces } from '../helpers/races.ts'
import type { VirtualPhone } from '../helpers/virtual-phone.ts'
import type { World } from '../helpers/world.ts'
import { expectOk, openWorld } from '../helpers/world.ts'

const ADMIN: Environment = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

const title =
  serverUrl() === undefined ? 'skipped: PAWL_TEST_DATABASE_URL is not set, and only PostgreSQL has room for two' : 'two processes'

describe.skipIf(serverUrl() === undefined)(title, () => {
  describe('started at once on an empty database', () => {
    afterEach(endEverything)

    test.each([1, 2, 3])('both serve, with one configured administrator (%i)', async () => {
      const { servers } = await startTwo(ADMIN)
      for (const { url, output } of servers) {
        expectOk(await createBank(url, `admin:${ADMIN_PASSWORD}`).call('GET', '/admin/applications'))
        expect(output()).not.toContain('replaced')
      }
    })

    test.each([1, 2, 3])('one of them shows the generated password, which both accept (%i)', async () => {
      const { servers } = await startTwo({})
      const shown = servers.flatMap(({ output }) =>
        [...output().matchAll(/^Administrator: admin, password: (\S+) /gm)].map(([, password]) => password),
      )
      expect(shown).toHaveLength(1)
      for (const { url } of servers) expectOk(await createBank(url, `admin:${shown[0]}`).call('GET', '/admin/users'))
    })
  })

  describe('races over both', () => {
    afterAll(endEverything)
    describeRaces('of two processes', async () => openSharedWorld(await startTwo(ADMIN)))
  })

  describe('one acts and the other decides', () => {
    let world: World
    beforeAll(async () => {
      world = await openSharedWorld(await startTwo(ADMIN))
    })
    afterAll(endEverything)

    test.each(PHONE_VERSIONS)('no code passes on one after the other has answered the block (%s)', async (version) => {
      const [first = '', second = ''] = world.urls
      for (let round = 0; round < 3; round++) {
        const { phone, userId } = await world.activePhone(version)
        const requests = Array.from({ length: 19 }, () => phone.prepareValidation({ factors: 'possession' }))
        const early = Promise.all(requests.slice(0, 12).map((request) => phone.send(request, second)))
        expectOk(await world.bank.as(world.bank.credential, first).change(userId, 'BLOCK'))
        const late = await Promise.all(requests.slice(12).map((request) => phone.send(request, second)))
        expect(late.map(({ status }) => status)).toEqual(Array.from(late, () => 401))
        const after = await readCounters(phone, second)
        expect(after.state).toBe(STATE.BLOCKED)
        // What passed before the block is what moved the counter; codes that came in order count one each.
        const passed = (await early).filter(({ status }) => status === 200).length
        expect(passed).toBeLessThanOrEqual(after.ctrByte)
        expect(await readCounters(phone, first)).toEqual(after)
      }
    })

    test('what one process stores, the other knows at once', async () => {
      const [first = '', second = ''] = world.urls
      const { phone, userId } = await world.activePhone('3.3')
      for (const url of [first, second, first, second]) expectOk(await phone.send(phone.prepareValidation(), url))
      expect(await readCounters(phone, first)).toMatchObject({ ctrByte: 4, failedAttempts: 0 })
      expectOk(await world.bank.as(world.bank.credential, second).remove(userId))
      expect((await phone.send(phone.prepareValidation(), first)).status).toBe(401)
      const created = await world.bank.call('POST', '/admin/users', { username: 'two', role: 'admin' })
      const password = String(member(created.json, 'password'))
      expectOk(await createBank(second, `two:${password}`).call('GET', '/admin/users'))
    })
  })

  describe('a rolling restart', () => {
    afterAll(endEverything)

    test('one ends with 0 while the other serves, no request to the other fails, and the new one goes on', async () => {
      const two = await startTwo(ADMIN)
      const world = await openSharedWorld(two)
      const [first, second] = two.servers
      const phones = await Promise.all(PHONE_VERSIONS.map(async (version) => world.activePhone(version)))
      let isOver = false
      const load = Promise.all(phones.map(({ phone }) => keepSending(phone, second.url, () => isOver)))
      expect(await first.end('SIGTERM')).toMatchObject({ code: 0, signal: null, stderr: '' })
      const third = await startPawl(two.installation.env, ADMIN)
      isOver = true
      const statuses = (await load).flat()
      expect(statuses.length).toBeGreaterThan(PHONE_VERSIONS.length)
      expect(statuses).toEqual(Array.from(statuses, () => 200))
      for (const { phone } of phones) expectOk(await phone.send(phone.prepareValidation(), third.url))
    })
  })
})

interface Two {
  readonly installation: Installation
  readonly servers: readonly [PawlProcess, PawlProcess]
}

async function startTwo(env: Environment): Promise<Two> {
  const installation = await createInstallation('postgresql')
  const start = (): Promise<PawlProcess> => startPawl(installation.env, env)
  return { installation, servers: await Promise.all([start(), start()]) }
}

/** A world on both. Their clock is the machine's, so time passes by moving what is stored into the past. */
const openSharedWorld = ({ installation, servers }: Two): Promise<World> =>
  openWorld({
    urls: servers.map(({ url }) => url),
    admin: `admin:${ADMIN_PASSWORD}`,
    advance: (milliseconds) => ageStoredTimes(installation.env['DATABASE_URL'] ?? '', milliseconds),
    close: async () => void (await Promise.all(servers.map((server) => server.end('SIGTERM')))),
  })

async function ageStoredTimes(databaseUrl: string, milliseconds: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    for (const table of ['activation', 'temporary_key', 'unique_value']) {
      await client.query(`update ${table} set expires_at = expires_at - make_interval(secs => $1)`, [milliseconds / 1000])
    }
  } finally {
    await client.end()
  }
}

/** Sends one request after the other; a connection that breaks rejects. */
async function keepSending(phone: VirtualPhone, url: string, isOver: () => boolean): Promise<number[]> {
  const statuses: number[] = []
  while (!isOver() && statuses.length < 5_000) {
    statuses.push((await phone.send(phone.prepareValidation({ body: `turn ${statuses.length}` }), url)).status)
  }
  return statuses
}
