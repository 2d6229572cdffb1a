// The doors over processes (cloud §12): a code passes once, a request that comes again under its key is answered what it was answered the first
// time, and a process that is killed has forgotten nothing of it.
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { withPair } from '../../phone/header.ts'
import type { HttpRequest } from '../../phone/http.ts'
import { random } from '../../phone/v3/crypto.ts'
import { serverUrl } from '../helpers/app.ts'
import type { Bank } from '../helpers/bank.ts'
import { createCaller, RESOURCE, verdictOf } from '../helpers/door.ts'
import { readCounters, STATE } from '../helpers/expectations.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Environment,
  type Installation,
  type PawlProcess,
  startPawl,
} from '../helpers/process.ts'
import { expectOk, openWorld, type World } from '../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../helpers/world-v4.ts'

const ADMIN: Environment = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
const at = { path: '/bank/transfer', resourceId: RESOURCE }
const body = '{"amount":1}'
const newKey = (): string => Buffer.from(random(16)).toString('hex')

const openOn = (servers: readonly PawlProcess[]): Promise<World> =>
  openWorld({
    urls: servers.map(({ url }) => url),
    admin: `admin:${ADMIN_PASSWORD}`,
    advance: () => {
      throw new Error('the clock of a process is not to be moved')
    },
    close: async () => undefined,
  })

describe('a process that is killed', () => {
  afterEach(endEverything)

  test('gives each request the verdict of the first time, whether or not its answer arrived, and moves its counter once', async () => {
    const installation = await createInstallation(DATABASE_KIND)
    const server = await startPawl(installation.env, ADMIN)
    const world = await openOn([server])
    const bank = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
    const wrong = { wrongKeys: { knowledge: random(16) } }
    const bound = await Promise.all(Array.from({ length: 12 }, () => world.activePhone('3.3')))
    const asked = bound.map(({ phone }, i) => ({
      phone,
      isRight: i % 3 > 0,
      request: phone.prepareSigned({ ...at, body, ...(i % 3 === 0 && wrong) }),
      key: newKey(),
    }))
    const [answered, ...others] = asked
    if (answered === undefined) throw new TypeError('nobody asked')
    const first = await verdictOf(bank, answered.request, {}, answered.key)
    // The answers of the others are under way, or not even their statements.
    const lost = others.map(async ({ request, key }) => {
      const verdict = await verdictOf(bank, request, {}, key).catch(() => undefined)
      if (verdict !== undefined) server.send('SIGKILL')
      return verdict
    })
    const before = [first, ...(await Promise.all(lost))]
    expect(await server.ended).toMatchObject({ signal: 'SIGKILL' })

    const again = await startPawl(installation.env, ADMIN)
    const later = bank.as(bank.credential, again.url)
    for (const [i, { phone, isRight, request, key }] of asked.entries()) {
      const verdict = await verdictOf(later, request, {}, key)
      expect(verdict).toEqual(before[i] ?? verdict)
      expect(verdict).toMatchObject({ isValid: isRight, remainingAttempts: isRight ? 5 : 4 })
      expect(await verdictOf(later, request, {}, key)).toEqual(verdict)
      expect(await phone.readStatus({ withChallenge: true, url: again.url })).toMatchObject({
        state: STATE.ACTIVE,
        ctrByte: isRight ? 1 : 0,
        failedAttempts: isRight ? 0 : 1,
      })
    }
  })
})

const title = serverUrl() === undefined ? 'skipped: PAWL_TEST_DATABASE_URL is not set' : 'two processes'

describe.skipIf(serverUrl() === undefined)(title, () => {
  let world: World
  let v4: PhonesV4
  let banks: readonly Bank[]
  let installation: Installation
  beforeAll(async () => {
    installation = await createInstallation('postgresql')
    const env = { ...ADMIN, PAWL_CODE_FAILURES_PER_MINUTE: '1000' }
    const servers = [await startPawl(installation.env, env), await startPawl(installation.env, env)]
    world = await openOn(servers)
    v4 = await openPhonesV4(world)
    const bank = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
    banks = servers.map(({ url }) => bank.as(bank.credential, url))
  })
  afterAll(endEverything)

  /** The same request many times at once, to one process after the other. */
  const manyTimes = (times: number, request: HttpRequest, keyOf: () => string | undefined) =>
    Promise.all(Array.from({ length: times }, (_, i) => verdictOf(banks[i % banks.length] as Bank, request, {}, keyOf())))
  const countRight = (verdicts: readonly Readonly<Record<string, unknown>>[]): number =>
    verdicts.filter(({ isValid }) => isValid === true).length
  const distinct = (verdicts: readonly unknown[]): readonly unknown[] => [
    ...new Set(verdicts.map((verdict) => JSON.stringify(verdict))),
  ]

  test.each(['3.3', '4.0'] as const)(
    'one code of %s that comes fifty times is right once, and counts nothing',
    async (version) => {
      const { phone } = version === '3.3' ? await world.activePhone(version) : await v4.activePhone('EC_P384')
      const request = phone.prepareSigned({ ...at, body })
      expect(countRight(await manyTimes(50, request, () => undefined))).toBe(1)
      expect(countRight(await manyTimes(4, request, () => undefined))).toBe(0)
      expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0 })
      expect(await verdictOf(banks[1] as Bank, phone.prepareSigned({ ...at, body }))).toMatchObject({ isValid: true })
    },
  )

  test('flags that are changed elsewhere, by the other process or by SQL, are in the next verdict of a process that remembers', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const [first, second] = banks as readonly [Bank, Bank]
    const flagsOf = async (bank: Bank) => (await verdictOf(bank, phone.prepareSigned({ ...at, body })))['flags']
    const admin = world.bank.as(world.bank.credential, second.url)
    const client = new Client({ connectionString: installation.adminUrl ?? '' })
    await client.connect()
    try {
      for (const flags of [['VIP'], [], ['VIP', 'GOLD']]) {
        await flagsOf(first)
        expectOk(await admin.call('PUT', `/admin/activations/${activationId}/flags`, { flags }))
        expect(await flagsOf(first)).toEqual(flags)
        await client.query(`update activation set flags = 'BY_SQL' where activation_id = $1`, [activationId])
        expect(await flagsOf(first)).toEqual(['BY_SQL'])
        expect(await flagsOf(second)).toEqual(['BY_SQL'])
        expect(await flagsOf(first)).toEqual(['BY_SQL'])
      }
    } finally {
      await client.end()
    }
  })

  test.each(['3.3', '4.0'] as const)('one key of %s that comes twenty times has twenty times one verdict', async (version) => {
    const { phone } = version === '3.3' ? await world.activePhone(version) : await v4.activePhone('EC_P384')
    const request = phone.prepareSigned({ ...at, body })
    const key = newKey()
    const verdicts = await manyTimes(20, request, () => key)
    expect(distinct(verdicts)).toHaveLength(1)
    expect(verdicts[0]).toMatchObject({ isValid: true, remainingAttempts: 5 })
    // Under keys of their own it is one acceptance.
    const other = phone.prepareSigned({ ...at, body })
    expect(countRight(await manyTimes(20, other, newKey))).toBe(1)
    expect(await verdictOf(banks[0] as Bank, phone.prepareSigned({ ...at, body }))).toMatchObject({ isValid: true })
  })

  test('a wrong code that comes twenty times under one key is counted once', async () => {
    const { phone } = await world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body, wrongKeys: { knowledge: random(16) } })
    const key = newKey()
    const verdicts = await manyTimes(20, request, () => key)
    expect(distinct(verdicts)).toHaveLength(1)
    expect(verdicts[0]).toMatchObject({ isValid: false, reason: 'CODE_WRONG', remainingAttempts: 4 })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 })
  })

  test('without a key the answer to a request that comes again is false, and nothing is counted', async () => {
    const { phone } = await world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body })
    expect(await verdictOf(banks[0] as Bank, request)).toMatchObject({ isValid: true })
    for (const bank of banks) expect(await verdictOf(bank, request)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
  })

  test('one key with two requests at once is the key of one of them, and the other changes nothing', async () => {
    for (let round = 0; round < 5; round += 1) {
      const bound = await Promise.all([world.activePhone('3.3'), world.activePhone('3.3')])
      const requests = bound.map(({ phone }) => phone.prepareSigned({ ...at, body }))
      const key = newKey()
      const outcomes = await Promise.all(
        requests.map((request, i) => verdictOf(banks[i] as Bank, request, {}, key).catch(String)),
      )
      const refused = outcomes.filter((outcome) => typeof outcome === 'string')
      expect(refused).toEqual([expect.stringContaining('HTTP 400')])
      const counters = await Promise.all(bound.map(({ phone }) => readCounters(phone)))
      expect(counters.map(({ ctrByte }) => ctrByte).toSorted()).toEqual([0, 1])
    }
  })

  test('a hundred codes of a stranger leave the activation ACTIVE, with nothing counted', async () => {
    const { phone } = await world.activePhone('3.3')
    const genuine = phone.prepareSigned({ ...at, body })
    const forged = Array.from({ length: 100 }, () => withPair(genuine, 'pa_nonce', Buffer.from(random(16)).toString('base64')))
    const verdicts = await Promise.all(forged.map((request, i) => verdictOf(banks[i % 2] as Bank, request)))
    expect(new Set(verdicts.map(({ reason }) => reason))).toEqual(new Set(['CODE_WRONG']))
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 0 })
    expect(await verdictOf(banks[0] as Bank, genuine)).toMatchObject({ isValid: true })
  })
})
