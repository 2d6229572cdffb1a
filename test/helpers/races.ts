// Declares races that a server must decide as if requests came one after the other (v3 §10.5). The addresses are a list,
// because the same races run against one process and against several on one database.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readApplication } from './bank.ts'
import { errorCode, readCounters, STATE } from './expectations.ts'
import { flood, repeat } from './flood.ts'
import type { HttpReply } from '../../phone/http.ts'
import { hasTimestamp, random } from '../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from './phone-versions.ts'
import { withHeader } from '../../phone/header.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import type { World } from './world.ts'
import { expectOk, registrationOf } from './world.ts'

/** Declares the races on a world that `open` starts. It is closed at the end. */
export function describeRaces(title: string, open: () => Promise<World>): void {
  describe(title, () => {
    let world: World
    beforeAll(async () => {
      world = await open()
    })
    afterAll(() => world.close())
    describe.each(PHONE_VERSIONS)('signatures in %s', (version) => signatureRaces(() => world, version))
    describe.each(PHONE_VERSIONS)('blocking in %s', (version) => blockRaces(() => world, version))
    describe.each(PHONE_VERSIONS)('what is good once in %s', (version) => singleUseRaces(() => world, version))
    describe.each(PHONE_VERSIONS)('activations in %s', (version) => activationRaces(() => world, version))
    describe('registrations', () => registrationRaces(() => world))
  })
}

type Version = (typeof PHONE_VERSIONS)[number]

function signatureRaces(world: () => World, version: Version): void {
  test('of 50 equal requests with two factors one passes, and the others count nothing', async () => {
    const { phone, userId } = await world().activePhone(version)
    const replies = await flood(world(), repeat(50, phone.prepareValidation({ body: 'pay' })))
    expect(tally(replies)).toEqual({ 200: 1, 401: 49 })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
    expect(await registrationOf(world(), userId)).toBe('ACTIVE')
  })

  test('of 50 equal requests with possession one passes and nothing is counted', async () => {
    const { phone } = await world().activePhone(version)
    const replies = await flood(world(), repeat(50, phone.prepareValidation({ body: 'pay', factors: 'possession' })))
    expect(tally(replies)).toEqual({ 200: 1, 401: 49 })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('50 different wrong codes count exactly to the maximum', async () => {
    const { phone } = await world().activePhone(version)
    const wrong = Array.from({ length: 50 }, () => phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    expect(tally(await flood(world(), wrong))).toEqual({ 401: 50 })
    expect(await readCounters(phone)).toEqual({ state: STATE.BLOCKED, ctrByte: 0, failedAttempts: 5 })
  })

  test('four wrong codes at once are four, and the activation stays usable', async () => {
    const { phone } = await world().activePhone(version)
    const wrong = Array.from({ length: 4 }, () => phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    expect(tally(await flood(world(), wrong))).toEqual({ 401: 4 })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 4 })
    expectOk(await phone.send(phone.prepareValidation()))
    // The phone was four steps ahead, one for each code it made.
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 5, failedAttempts: 0 })
  })

  test('phones do not disturb each other', async () => {
    const phones = await Promise.all(Array.from({ length: 8 }, () => world().activePhone(version)))
    const replies = await flood(
      world(),
      phones.map(({ phone }) => phone.prepareValidation({ body: 'x' })),
    )
    expect(tally(replies)).toEqual({ 200: 8 })
  })
}

function blockRaces(world: () => World, version: Version): void {
  test('no code passes after the block was answered', async () => {
    const { phone, userId } = await world().activePhone(version)
    const requests = Array.from({ length: 19 }, () => phone.prepareValidation({ factors: 'possession' }))
    const early = flood(world(), requests.slice(0, 10))
    expectOk(await world().bank.change(userId, 'BLOCK'))
    const atBlock = await readCounters(phone)
    const late = await flood(world(), requests.slice(10))
    await early
    expect(atBlock.state).toBe(STATE.BLOCKED)
    expect(tally(late)).toEqual({ 401: 9 })
    expect(await readCounters(phone)).toEqual(atBlock)
  })

  test('a block that comes among wrong codes stays a block', async () => {
    const { phone, userId } = await world().activePhone(version)
    const wrong = Array.from({ length: 10 }, () => phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    const [replies, block] = await Promise.all([flood(world(), wrong), world().bank.change(userId, 'BLOCK')])
    expect(tally(replies)).toEqual({ 401: 10 })
    // If the codes have blocked the activation first, the bank's change is refused.
    expect(block.status === 200 || errorCode(block) === 'ERROR_REGISTRATION_CHANGE').toBe(true)
    const { state, failedAttempts } = await readCounters(phone)
    expect(state).toBe(STATE.BLOCKED)
    expect(failedAttempts).toBeLessThanOrEqual(5)
  })

  test('of two equal changes at once one is refused', async () => {
    const { userId } = await world().activePhone(version)
    for (const change of ['BLOCK', 'UNBLOCK'] as const) {
      const replies = await Promise.all(banks(world()).map((bank) => bank.change(userId, change)))
      expect(tally(replies)).toEqual({ 200: 1, 400: 1 })
      expect(codes(replies)).toEqual(['ERROR_REGISTRATION_CHANGE'])
    }
  })

  test('no code passes after the removal was answered', async () => {
    const { phone, userId } = await world().activePhone(version)
    const requests = Array.from({ length: 10 }, () => phone.prepareValidation({ factors: 'possession' }))
    const early = flood(world(), requests.slice(0, 5))
    expectOk(await world().bank.remove(userId))
    const atRemoval = await readCounters(phone)
    expect(tally(await flood(world(), requests.slice(5)))).toEqual({ 401: 5 })
    await early
    expect(await readCounters(phone)).toEqual({ ...atRemoval, state: STATE.REMOVED })
  })
}

function singleUseRaces(world: () => World, version: Version): void {
  test('a token header is accepted once, however many envelopes it comes with', async () => {
    const { phone } = await world().activePhone(version)
    const token = await phone.createToken()
    const first = await phone.prepareDetail(token)
    const requests = await Promise.all(
      Array.from({ length: 10 }, async () =>
        withHeader(await phone.prepareDetail(token), 'X-PowerAuth-Token', first.headers['X-PowerAuth-Token']),
      ),
    )
    expect(tally(await flood(world(), requests))).toEqual({ 200: 1, 401: 9 })
  })

  test.runIf(hasTimestamp(version))('an envelope is opened once', async () => {
    const { phone } = await world().activePhone(version)
    const replies = await flood(world(), repeat(20, await phone.prepareUserInfo()))
    expect(tally(replies)).toEqual({ 200: 1, 400: 19 })
  })

  test('a signed and encrypted request is served once', async () => {
    const { phone } = await world().activePhone(version)
    for (const request of [await phone.prepareTokenCreate({ factors: 'possession' }), await phone.prepareRename('once')]) {
      const replies = await flood(world(), repeat(4, request as Prepared<unknown>))
      expect(replies.filter((reply) => reply.status === 200)).toHaveLength(1)
    }
    expect((await readCounters(phone)).ctrByte).toBe(2)
  })
}

function activationRaces(world: () => World, version: Version): void {
  test('of phones that race for one code one wins', async () => {
    const { userId, code } = await world().register()
    const phones = Array.from({ length: 4 }, () => world().newPhone(version))
    const requests = await Promise.all(phones.map((phone) => phone.prepareActivation(code)))
    const replies = await flood(world(), requests)
    expect(tally(replies)).toEqual({ 200: 1, 400: 3 })
    expect(codes(replies)).toEqual(['ERR_ACTIVATION', 'ERR_ACTIVATION', 'ERR_ACTIVATION'])
    const winner = replies.findIndex((reply) => reply.status === 200)
    const result = requests[winner]?.open(replies[winner] as HttpReply)
    const view = expectOk(await world().bank.view(userId)).json
    expect(view).toMatchObject({ registration: 'PENDING_COMMIT', activationFingerprint: result?.fingerprint })
    expectOk(await world().bank.commit(userId))
    expectOk(
      await (phones[winner] as (typeof phones)[number]).send((phones[winner] as (typeof phones)[number]).prepareValidation()),
    )
  })

  test('one request sent many times activates once', async () => {
    const { userId, code } = await world().register()
    const phone = world().newPhone(version)
    const request = await phone.prepareActivation(code)
    const replies = await flood(world(), repeat(5, request))
    expect(tally(replies)).toEqual({ 200: 1, 400: 4 })
    request.open(replies.find((reply) => reply.status === 200) as HttpReply)
    expectOk(await world().bank.commit(userId))
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('a phone that races with the removal of its registration wins or loses as a whole', async () => {
    const { userId, code } = await world().register()
    const phone = world().newPhone(version)
    const request = await phone.prepareActivation(code)
    const [activation, removal] = await Promise.all([phone.send(request), world().bank.remove(userId)])
    expectOk(removal)
    expect(await registrationOf(world(), userId)).toBe('NONE')
    if (activation.status === 200) {
      request.open(activation)
      expect((await readCounters(phone)).state).toBe(STATE.REMOVED)
    } else expect(errorCode(activation)).toBe('ERR_ACTIVATION')
  })
}

function registrationRaces(world: () => World): void {
  test('of two registrations of a user one is refused', async () => {
    for (let round = 0; round < 5; round++) {
      const userId = world().newUser()
      const replies = await Promise.all(banks(world()).map((bank) => bank.register(userId)))
      expect(tally(replies)).toEqual({ 200: 1, 400: 1 })
      expect(codes(replies)).toEqual(['ERROR_REGISTRATION'])
      const winner = replies.find((reply) => reply.status === 200)
      expect((await world().bank.view(userId)).json).toEqual({ registration: 'CREATED', ...(winner?.json as object) })
    }
  })

  test('of two registrations after an expired one, one is refused', async () => {
    const { userId } = await world().register()
    await world().advance(301_000)
    const replies = await Promise.all(banks(world()).map((bank) => bank.register(userId)))
    expect(tally(replies)).toEqual({ 200: 1, 400: 1 })
    expect(codes(replies)).toEqual(['ERROR_REGISTRATION'])
  })

  test('of two commits one is refused', async () => {
    const { userId } = await world().pendingPhone('3.3')
    const replies = await Promise.all(banks(world()).map((bank) => bank.commit(userId)))
    expect(tally(replies)).toEqual({ 200: 1, 400: 1 })
    expect(codes(replies)).toEqual(['ERROR_REGISTRATION_NOT_FOUND'])
    expect(await registrationOf(world(), userId)).toBe('ACTIVE')
  })

  test('of two removals one is refused', async () => {
    const { userId } = await world().activePhone('3.3')
    const replies = await Promise.all(banks(world()).map((bank) => bank.remove(userId)))
    expect(tally(replies)).toEqual({ 200: 1, 400: 1 })
    expect(codes(replies)).toEqual(['ERROR_REGISTRATION_NOT_FOUND'])
  })

  test('of two applications with one id one is refused', async () => {
    const id = world().newUser()
    const replies = await Promise.all(banks(world()).map((bank) => bank.createApplication(id)))
    expect(tally(replies)).toEqual({ 200: 1, 400: 1 })
    expect(codes(replies)).toEqual(['ERROR_ADMIN'])
    const [winner] = replies.filter((reply) => reply.status === 200)
    const read = await world().bank.call('GET', `/admin/application?id=${id}`)
    expect(readApplication(read)).toEqual(readApplication(winner as HttpReply))
  })
}

/** Two clients of the bank, on two addresses if there are two. */
const banks = (world: World) => [world.bank, world.bank.as(world.bank.credential, world.urls.at(-1) ?? world.url)]

/** The number of answers by status. */
function tally(replies: readonly HttpReply[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** The error codes of the refusals. */
const codes = (replies: readonly HttpReply[]): unknown[] =>
  replies.filter((reply) => reply.status !== 200).map((reply) => errorCode(reply))
