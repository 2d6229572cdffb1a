// The database is lost at each statement of a request in turn: the phone's activation is then one of 3.x or one of 4.0 that works, and
// what the phone does next, as the protocol tells it, succeeds (v4 §7.5, §8.5, §9.6, §9.12, §9.13, §10.3, §10.4).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { type FaultLine, type FaultPlace, startFaultyServer } from '../helpers/fault-line.ts'
import { isAccepted } from '../helpers/flood.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { openUpgradingPhone } from '../helpers/upgrading-phone.ts'
import { expectOk, openWorld, registrationOf } from '../helpers/world.ts'
import { openPhonesV4, type PhonesV4, type PhoneV4 } from '../helpers/world-v4.ts'

let v4: PhonesV4
let faults: FaultLine
let close: () => Promise<void>
beforeAll(async () => {
  const faulty = await startFaultyServer()
  const { server } = faulty
  faults = faulty.faults
  close = faulty.close
  const admin = `${server.admin.user}:${server.admin.password}`
  const { advance } = server.clock
  v4 = await openPhonesV4(await openWorld({ urls: [server.url], admin, advance, close: server.close }))
})
afterAll(() => close())

const ALGORITHM = 'EC_P384'
const PENDING_CONFIRMATION = 1

describe.each(['before', 'after'] as const)('the database is lost %s', (place) => {
  test('a statement of upgrade/start: 3.3 goes on, and the upgrade is started again', async () => {
    await atEachStatement(place, async (send, n) => {
      const upgrading = await openUpgradingPhone(v4, PHONE_ALGORITHMS[n % PHONE_ALGORITHMS.length] ?? ALGORITHM)
      const { old, phone } = upgrading
      const first = await upgrading.prepareStart({ enableBiometry: true })
      const reply = await send(first)
      if (reply.status === 200) first.open(reply)
      expectOk(await old.send(old.prepareValidation()))
      const second = upgrading.newAttempt()
      await second.exchange(await upgrading.prepareStart({ enableBiometry: true }, second))
      expect(await second.readStatus()).toMatchObject({ currentVersion: 3, flags: 10, distance: 0, isDeadlocked: false })
      // What the first start agreed on no longer counts.
      if (reply.status === 200) expect((await phone.send(phone.prepareUpgradeConfirm())).status).toBe(401)
      await second.exchange(second.prepareUpgradeConfirm())
      await expectWorking(second)
      expect((await old.send(old.prepareValidation())).status).toBe(401)
    })
  })

  test('a statement of upgrade/confirm: it is one of 3.3 or of 4.0, which the status of 4.0 tells', async () => {
    const versions = await atEachStatement(place, async (send, n) => {
      const upgrading = await openUpgradingPhone(v4, PHONE_ALGORITHMS[n % PHONE_ALGORITHMS.length] ?? ALGORITHM)
      const { old, phone } = upgrading
      await phone.exchange(await upgrading.prepareStart({ enableBiometry: true }))
      await send(phone.prepareUpgradeConfirm())
      const { currentVersion, isDeadlocked, distance = 0, flags } = await phone.readStatus()
      // A code that was not used up lets the phone be one step ahead.
      expect({ isDeadlocked, distance, flags }).toEqual({
        isDeadlocked: false,
        distance: 0,
        flags: currentVersion === 4 ? 8 : 10,
      })
      if (currentVersion === 3 && n % 2 === 0) {
        expectOk(await old.send(old.prepareValidation()))
        await phone.exchange(await upgrading.prepareStart({ enableBiometry: true }))
      }
      if (currentVersion === 3) await phone.exchange(phone.prepareUpgradeConfirm())
      await expectWorking(phone)
      expect((await old.send(old.prepareValidation())).status).toBe(401)
      return currentVersion
    })
    // Lost before the commit it is still one of 3.3; the last round lost nothing.
    expect([versions[0], versions.at(-1)]).toEqual([3, 4])
  })

  test('a statement of activation/create: the code is still good, or it was used as a whole', async () => {
    await atEachStatement(place, async (send) => {
      const { userId, code } = await v4.world.register()
      const phone = v4.newPhone(ALGORITHM)
      const request = await phone.prepareActivation(code)
      const reply = await send(request)
      if (reply.status === 200) request.open(reply)
      const state = await registrationOf(v4.world, userId)
      expect(state).toEqual(reply.status === 200 ? 'PENDING_COMMIT' : expect.stringMatching(/^(CREATED|PENDING_COMMIT)$/))
      if (state === 'CREATED') await phone.activate(code)
      else if (reply.status !== 200) {
        // The phone never had the keys: the bank starts over.
        expect((await phone.send(await phone.prepareActivation(code))).status).toBe(400)
        expectOk(await v4.world.bank.remove(userId))
        return
      }
      expectOk(await v4.world.bank.commit(userId))
      await phone.exchange(phone.prepareConfirm(true))
      await expectWorking(phone)
    })
  })

  test('a statement of activation/confirm: it waits for the confirmation, or it has it', async () => {
    await atEachStatement(place, async (send) => {
      const { userId, phone } = await v4.pendingPhone(ALGORITHM)
      await send(phone.prepareConfirm(true))
      const { flags } = await phone.readStatus()
      expect([PENDING_CONFIRMATION, 8]).toContain(flags)
      if (flags === PENDING_CONFIRMATION) await phone.exchange(phone.prepareConfirm(true))
      expectOk(await v4.world.bank.commit(userId))
      await expectWorking(phone)
    })
  })

  test('a statement of password/change: the old key is good until the granted one was used', async () => {
    const { phone } = await v4.activePhone(ALGORITHM)
    await atEachStatement(place, async (send, n) => {
      const old = phone.state.keys?.knowledge ?? new Uint8Array(32)
      const request = await phone.preparePasswordChange()
      const reply = await send(request)
      const granted = reply.status === 200 ? request.open(reply) : undefined
      const isGrantedFirst = n % 2 === 0
      if (granted && isGrantedFirst) phone.adopt({ knowledge: granted })
      await expectWorking(phone)
      if (granted) {
        expect(await isAccepted(phone, { knowledge: isGrantedFirst ? old : granted })).toBe(false)
        await expectWorking(phone)
      }
      // Whatever was lost, the change can be repeated.
      phone.adopt({ knowledge: await phone.exchange(await phone.preparePasswordChange()) })
      await expectWorking(phone)
    })
  })

  test('a statement of biometry/add: the key before is good, and the addition can be repeated', async () => {
    const { phone } = await v4.activePhone(ALGORITHM)
    await atEachStatement(place, async (send) => {
      const request = await phone.prepareBiometryAdd()
      const reply = await send(request)
      if (reply.status === 200) phone.adopt({ biometry: request.open(reply) })
      await expectWorking(phone)
      phone.adopt({ biometry: await phone.exchange(await phone.prepareBiometryAdd()) })
      await expectWorking(phone)
    })
  })

  test('a statement of biometry/remove: it is on with its key, or off', async () => {
    const { phone } = await v4.activePhone(ALGORITHM)
    await atEachStatement(place, async (send) => {
      const reply = await send(phone.prepareBiometryRemove())
      const { flags } = await phone.readStatus()
      if (reply.status === 200) expect(flags).toBe(0)
      expect((await phone.send(phone.prepareValidation({ factors: 'possession_biometry' }))).status).toBe(flags === 8 ? 200 : 401)
      phone.adopt({ biometry: await phone.exchange(await phone.prepareBiometryAdd()) })
      await expectWorking(phone)
    })
  })
})

/**
 * Runs `act` with the first statement of its request lost, then with the second, until a request has no more of them; `act` sends one
 * request by `send`, which is answered 503 when it needed the lost statement.
 */
async function atEachStatement<T>(
  place: FaultPlace,
  act: (send: (request: Prepared<unknown>) => Promise<HttpReply>, n: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  for (let n = 1; n < 30; n += 1) {
    let isOver = false
    const send = async (request: Prepared<unknown>): Promise<HttpReply> => {
      const phone = v4.newPhone(ALGORITHM)
      faults.arm(n, place)
      const reply = await phone.send(request)
      isOver = !faults.disarm()
      expect(isOver ? [200] : [200, 503], `statement ${n}: ${reply.text}`).toContain(reply.status)
      return reply
    }
    results.push(await act(send, n))
    if (isOver) return results
  }
  throw new Error('a request with more than 30 statements')
}

/** Every factor is good, and the counter of the server is where that of the phone is. */
async function expectWorking(phone: PhoneV4): Promise<void> {
  await phone.exchange(phone.prepareValidation())
  await phone.exchange(phone.prepareValidation({ factors: 'possession_biometry' }))
  expect(await phone.readStatus()).toMatchObject({
    state: 3,
    currentVersion: 4,
    failedAttempts: 0,
    distance: 0,
    isDeadlocked: false,
  })
}
