// Declares races of upgrades (v4 §10): the phone's other requests go on, starts and confirmations come at once, the bank makes changes. At any
// time an activation is either of 3.x or of 4.0, and only the keys of one whole start become its keys.
import { describe, expect, test } from 'vitest'
import { expectInStep, flood, repeat, sendFifty, unblock } from './flood.ts'
import { member } from '../../phone/http.ts'
import { openUpgradingPhone, type UpgradingPhone } from './upgrading-phone.ts'
import type { PhonesV4, PhoneV4 } from './world-v4.ts'
import { expectOk } from './world.ts'
import { TESTED_ALGORITHMS } from './phone-versions.ts'

/** Declares the races, on one address or several. */
export function declareUpgradeRaces(v4: () => PhonesV4): void {
  test.each(TESTED_ALGORITHMS)('to %s while the other requests of the phone go on', async (algorithm) => {
    const upgrading = await openUpgradingPhone(v4(), algorithm)
    const { old, phone, userId } = upgrading
    const token = await old.createToken()
    let stage: 'signing' | 'reading' | 'confirming' | 'over' = 'signing'
    const signed = repeatUntil(
      () => stage !== 'signing',
      async () => [await send(v4(), old.prepareValidation()), await send(v4(), await old.prepareTokenCreate())],
    )
    const read = repeatUntil(
      () => stage === 'over',
      async () => {
        // Requests that need keys of 3.x are refused once the upgrade is confirmed.
        const isBefore = () => stage === 'signing' || stage === 'reading'
        const answers = [() => old.prepareDetail(token), () => old.prepareUserInfo()].map((prepare) =>
          prepare().then(
            (request) => send(v4(), request),
            (error: unknown) => (isBefore() ? String(error) : 400),
          ),
        )
        return (await Promise.all(answers)).filter((status) => isBefore() || (status !== 400 && status !== 401))
      },
    )
    for (let i = 0; i < 3; i += 1) {
      const { status } = await phone.send(await upgrading.prepareStart({ enableBiometry: true }), urlAt(v4(), i))
      // Codes of one phone that are sent at once may overtake each other. No other failure is allowed.
      expect([200, 401]).toContain(status)
    }
    stage = 'reading'
    expect((await signed).filter((status) => status !== 200 && status !== 401)).toEqual([])
    await unblock(v4().world, userId)
    expectOk(await old.send(old.prepareValidation()))
    // A phone that has signed with 3.x since its last start repeats start (v4 §10.4).
    await phone.exchange(await upgrading.prepareStart({ enableBiometry: true }))
    expect(await phone.readStatus()).toMatchObject({ currentVersion: 3, flags: 10, distance: 0, isDeadlocked: false })
    const statuses = repeatUntil(
      () => stage === 'over',
      async () => [(await phone.readStatus()).currentVersion],
    )
    stage = 'confirming'
    await phone.exchange(phone.prepareUpgradeConfirm())
    stage = 'over'
    const versions = await statuses
    expect(versions, 'never unreadable, never back').toEqual(versions.toSorted())
    expect((await read).filter((status) => status !== 200)).toEqual([])
    await expectInStep(v4().world, { userId, phone })
    expect((await old.send(old.prepareValidation())).status).toBe(401)
    // A token of 3.x stays valid, also with a header of 4.0.
    await phone.exchange(await phone.prepareDetail(await phone.createToken('possession_biometry')))
    await phone.exchange(await phone.prepareDetail({ ...token, factors: 'possession_knowledge' }))
  })

  describe('starts', () => {
    test('50 equal ones at once: one is granted and can be confirmed', async () => {
      const upgrading = await openUpgradingPhone(v4(), 'EC_P384')
      const { old, phone, userId } = upgrading
      await sendFifty(v4().world, await upgrading.prepareStart())
      await unblock(v4().world, userId)
      expectOk(await old.send(old.prepareValidation()))
      await phone.exchange(await upgrading.prepareStart())
      await sendFifty(v4().world, phone.prepareUpgradeConfirm())
      await expectInStep(v4().world, { userId, phone })
    })

    test('four different ones at once: the last one that was granted is the one that can be confirmed, and it is whole', async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const upgrading = await openUpgradingPhone(v4(), 'EC_P384')
        const phones = [upgrading.phone, upgrading.newAttempt(), upgrading.newAttempt(), upgrading.newAttempt()]
        const starts: Awaited<ReturnType<UpgradingPhone['prepareStart']>>[] = []
        for (const phone of phones) starts.push(await upgrading.prepareStart({}, phone))
        const order = round % 2 === 0 ? [0, 1, 2, 3] : [3, 1, 2, 0]
        const replies = await flood(
          v4().world,
          order.flatMap((i) => starts[i] ?? []),
        )
        const granted = phones.filter((_, i) => {
          const reply = replies[order.indexOf(i)]
          if (reply?.status !== 200) return false
          starts[i]?.open(reply)
          return true
        })
        await expectLastIsWhole(v4(), upgrading, granted)
      }
    })

    test('with codes of 3.3 at once: all of them are good, and the upgrade is as well', async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const upgrading = await openUpgradingPhone(v4(), 'EC_P384')
        const { old, phone, userId } = upgrading
        const start = await upgrading.prepareStart()
        const codes = Array.from({ length: 6 }, () => old.prepareValidation({ factors: 'possession' }))
        const [started, ...validated] = await flood(v4().world, [start, ...codes])
        expect(validated.filter(({ status }) => status !== 200 && status !== 401)).toEqual([])
        // If later codes have overtaken the start, it was refused, and is repeated.
        if (started?.status !== 200) await phone.exchange(await upgrading.prepareStart())
        else start.open(started)
        await phone.exchange(phone.prepareUpgradeConfirm())
        await phone.exchange(phone.prepareValidation())
        await unblock(v4().world, userId)
      }
    })
  })

  describe('a confirmation', () => {
    test('and another start at once: one of them is granted, and its keys are good', async () => {
      for (let round = 0; round < ROUNDS * 2; round += 1) {
        const upgrading = await openUpgradingPhone(v4(), 'EC_P384')
        const { phone, userId } = upgrading
        await phone.exchange(await upgrading.prepareStart())
        const other = upgrading.newAttempt()
        const [confirm, start] = [phone.prepareUpgradeConfirm(), await upgrading.prepareStart({}, other)]
        const replies = await flood(v4().world, round % 2 === 0 ? [confirm, start] : [start, confirm])
        const [confirmed, started] = round % 2 === 0 ? replies : replies.toReversed()
        expect([confirmed?.status, started?.status].filter((status) => status === 200)).toHaveLength(1)
        if (started?.status === 200) {
          start.open(started)
          await other.exchange(other.prepareUpgradeConfirm())
          await expectInStep(v4().world, { userId, phone: other })
          expect((await phone.send(phone.prepareValidation({ factors: 'possession' }))).status).toBe(401)
        } else await expectInStep(v4().world, { userId, phone })
      }
    })

    test('and a code of 3.3 at once: the activation is of 3.3 or of 4.0, never of both', async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const upgrading = await openUpgradingPhone(v4(), 'EC_P384')
        const { old, phone, userId } = upgrading
        await phone.exchange(await upgrading.prepareStart())
        const codes = Array.from({ length: 4 }, () => old.prepareValidation())
        const [confirmed] = await flood(v4().world, [phone.prepareUpgradeConfirm(), ...codes])
        expect(confirmed?.status).toBe(200)
        expect((await old.send(old.prepareValidation())).status).toBe(401)
        await unblock(v4().world, userId)
        await phone.exchange(phone.prepareValidation())
      }
    })

    test.each(['BLOCK', 'REMOVE'] as const)('and %s at once: as if one came after the other', async (change) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const upgrading = await openUpgradingPhone(v4(), 'EC_P384_ML_L3')
        const { old, phone, userId } = upgrading
        await phone.exchange(await upgrading.prepareStart())
        const { bank } = v4().world
        const [confirmed, changed] = await Promise.all([
          phone.send(phone.prepareUpgradeConfirm()),
          change === 'BLOCK' ? bank.change(userId, change) : bank.remove(userId),
        ])
        expectOk(changed)
        expect([200, 401]).toContain(confirmed.status)
        const isUpgraded = confirmed.status === 200
        if (change === 'REMOVE') {
          const status = isUpgraded ? phone.readStatus() : old.readStatus()
          expect((await status).state).toBe(5)
          if (!isUpgraded) await expect(phone.readStatus()).rejects.toThrow('ERR_TEMPORARY_KEY')
          expect((await phone.send(phone.prepareUpgradeConfirm())).status).toBe(401)
          continue
        }
        await unblock(v4().world, userId)
        if (!isUpgraded) await phone.exchange(phone.prepareUpgradeConfirm())
        await phone.exchange(phone.prepareValidation())
      }
    })

    test('whose answer was lost is found by the status of 4.0', async () => {
      const upgrading = await openUpgradingPhone(v4(), 'EC_P384_ML_L5')
      const { phone, userId } = upgrading
      await phone.exchange(await upgrading.prepareStart())
      await phone.send(phone.prepareUpgradeConfirm())
      expect(await phone.readStatus()).toMatchObject({ currentVersion: 4, flags: 0, distance: 0, isDeadlocked: false })
      const again = await phone.send(phone.prepareUpgradeConfirm())
      expect([again.status, member(again.json, 'responseObject', 'code')]).toEqual([400, 'ERR_UPGRADE'])
      await expectInStep(v4().world, { userId, phone })
    })
  })
}

/** Confirms the last of the attempts of one phone (oldest first), and expects that earlier ones no longer count. */
async function expectLastIsWhole(v4: PhonesV4, { old, userId }: UpgradingPhone, granted: readonly PhoneV4[]): Promise<void> {
  const last = granted.at(-1)
  expect(last).toBeDefined()
  if (last === undefined) return
  for (const phone of granted) {
    if (phone !== last) expect((await phone.send(phone.prepareUpgradeConfirm())).status).toBe(401)
  }
  await unblock(v4.world, userId)
  // Its own secret, counter, server keys and fingerprint belong together.
  expect(await last.readStatus()).toMatchObject({ currentVersion: 3, distance: 0 })
  await last.exchange(last.prepareUpgradeConfirm())
  await last.exchange(last.prepareValidation())
  last.state.counter = (await last.readStatus()).ctrByte
  await expectInStep(v4.world, { userId, phone: last })
  expect((await old.send(old.prepareValidation())).status).toBe(401)
}

let turn = 0
const urlAt = ({ world }: PhonesV4, i: number): string => world.urls[i % world.urls.length] ?? world.url
const send = async (v4: PhonesV4, request: Parameters<PhoneV4['send']>[0]): Promise<number> => {
  turn += 1
  return (await flood({ ...v4.world, urls: [urlAt(v4, turn)] }, repeat(1, request)))[0]?.status ?? 0
}

/** Runs `work` again and again, at least once, and returns the results of all runs. */
async function repeatUntil<T>(isOver: () => boolean, work: () => Promise<T[]>): Promise<T[]> {
  const results: T[] = []
  do results.push(...(await work()))
  while (!isOver() && results.length < 1_000)
  return results
}

const ROUNDS = 2
