// Two processes on one PostgreSQL database decide as one would (ARCHITECTURE, "Invariants"), and one is replaced while the other serves.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { serverUrl } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { readCounters, STATE } from '../helpers/expectations.ts'
import { member } from '../../phone/http.ts'
import { PHONE_VERSIONS } from '../helpers/phone-versions.ts'
import type { Environment, Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, startPawl } from '../helpers/process.ts'
import { describeRaces } from '../helpers/races.ts'
import { describeRacesV4 } from '../helpers/races-v4.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import type { Bound, World } from '../helpers/world.ts'
import { expectOk, openWorld } from '../helpers/world.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const ADMIN: Environment = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

const title =
  serverUrl() === undefined ? 'skipped: PAWL_TEST_DATABASE_URL is not set, and only PostgreSQL has room for two' : 'two processes'

describe.skipIf(serverUrl() === undefined)(title, () => {
  describe('started at once on an empty database', () => {
    afterEach(endEverything)

    test.each([1, 2])('both serve, with one configured administrator (%i)', async () => {
      const { servers } = await startTwo(ADMIN, { isEmpty: true })
      for (const { url, output } of servers) {
        expectOk(await createBank(url, `admin:${ADMIN_PASSWORD}`).call('GET', '/admin/applications'))
        expect(output()).not.toContain('replaced')
      }
    })

    test.each([1, 2])('one of them shows the generated password, which both accept (%i)', async () => {
      const { servers } = await startTwo({}, { isEmpty: true })
      const shown = servers.flatMap(({ output }) =>
        [...output().matchAll(/^Administrator: admin, password: (\S+) /gm)].map(([, password]) => password),
      )
      expect(shown).toHaveLength(1)
      for (const { url } of servers) expectOk(await createBank(url, `admin:${shown[0]}`).call('GET', '/admin/users'))
    })
  })

  describe('races over both', () => {
    afterAll(endEverything)
    // What is under way at one process when the other has used the limit up goes beyond it, and the next right code is refused.
    const env = { ...ADMIN, PAWL_CODE_FAILURES_PER_MINUTE: '1000' }
    describeRaces('of two processes', async () => openSharedWorld(await startTwo(env)))
    describeRacesV4('of two processes, in 4.0', async () => openSharedWorld(await startTwo(env)))
  })

  describe('one changes, the other decides', () => {
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

  describe('200 operations that are approved, canceled, failed and expired at once', () => {
    afterAll(endEverything)

    test('have one winner each, and the audit chain verifies', async () => {
      const world = await openSharedWorld(await startTwo({ ...ADMIN, PAWL_MOBILE_READS_PER_MINUTE: '1000' }))
      for (const template of Object.values(TEMPLATES)) expectOk(await world.bank.call('POST', '/admin/templates', template))
      const bound = await Promise.all(Array.from({ length: 20 }, () => world.activePhone('3.3')))
      const ended = (await Promise.all(bound.map((one, i) => raceOperations(world, one, 10, i)))).flat()
      expect(ended).toHaveLength(200)
      expect(new Set(ended).size, 'different winners').toBeGreaterThan(1)
      const second = world.bank.as(world.bank.credential, world.urls[1])
      // The sealer comes round every few seconds.
      await expect
        .poll(async () => (await second.call('GET', '/admin/audit/verification')).json, { timeout: PATIENCE_MS, interval: 500 })
        .toMatchObject({ isIntact: true, chains: [{ unsealed: 0 }, { unsealed: 0 }] })
    }, 180_000)
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

const templateOf = (templateName: string, expiration: number) => ({
  templateName,
  operationType: 'login',
  dataTemplate: 'A2',
  signatureType: ['possession_knowledge'],
  maxFailureCount: 1,
  expiration,
  texts: { en: { title: 'Login', message: 'Confirm', attributes: [] } },
})
/** Of the first nobody is too late, on a busy machine neither. */
const TEMPLATES = { long: templateOf('long', 300), short: templateOf('one-second', 1) }

/** Lets everybody at one operation after the other, near its end; their statuses, each claimed by exactly its winner. */
async function raceOperations(world: World, { phone, userId }: Bound, rounds: number, offset: number): Promise<string[]> {
  const banks = world.urls.map((url) => world.bank.as(world.bank.credential, url))
  const [first = world.bank, second = world.bank] = offset % 2 === 0 ? banks : banks.toReversed()
  const statuses: string[] = []
  for (let round = 0; round < rounds; round++) {
    const start = [0, 400, 990, 1_000][(round + offset) % 4] ?? 0
    const { templateName: template } = start === 0 ? TEMPLATES.long : TEMPLATES.short
    const created = expectOk(await first.createOperation({ userId, template })).json
    const id = String(member(created, 'operationId'))
    // Right data in every second round; wrong data fails the operation with a right code.
    const request = phone.prepareAuthorize({ id, data: (round + offset) % 2 === 0 ? 'A2' : 'A1' })
    await sleep(Math.max(0, Number(member(created, 'timestampCreated')) + start - Date.now()))
    const [approval, cancel] = await Promise.all([phone.send(request, second.url), first.cancelOperation(id)])
    await expect.poll(async () => statusOf(second, id), { timeout: PATIENCE_MS, interval: 100 }).not.toBe('PENDING')
    const status = await statusOf(first, id)
    expect(approval.status === 200, `${status}, approval ${approval.text}`).toBe(status === 'APPROVED')
    expect(cancel.status === 200, `${status}, cancel ${cancel.text}`).toBe(status === 'CANCELED')
    expect(await statusOf(second, id)).toBe(status)
    statuses.push(status)
  }
  return statuses
}

const statusOf = async (bank: Bank, id: string): Promise<string> => String(member((await bank.readOperation(id)).json, 'status'))

interface Two {
  readonly installation: Installation
  readonly servers: readonly [PawlProcess, PawlProcess]
}

async function startTwo(env: Environment, { isEmpty = false } = {}): Promise<Two> {
  const installation = await createInstallation('postgresql', { isEmpty })
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
