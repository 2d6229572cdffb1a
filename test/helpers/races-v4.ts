// Declares races of protocol 4.0 that a server must decide as if requests came one after the other (v4 §7.4, §7.5, §9). As in races.ts, the
// addresses are a list.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectInStep, flood, isAccepted, repeat, sendFifty, unblock } from './flood.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { declareUpgradeRaces } from './upgrade-races.ts'
import { expectOk, registrationOf, type World } from './world.ts'
import { openPhonesV4, type PhonesV4, type PhoneV4 } from './world-v4.ts'

/** Declares the races on a world that `open` starts. It is closed at the end. */
export function describeRacesV4(title: string, open: () => Promise<World>): void {
  describe(title, () => {
    let v4: PhonesV4
    beforeAll(async () => {
      v4 = await openPhonesV4(await open())
    })
    afterAll(() => v4.close())
    describe('50 equal requests at once', () => equalRequests(() => v4))
    describe('answers that are lost', () => lostAnswers(() => v4))
    describe('changes of keys at once', () => keyRaces(() => v4))
    describe('phone and bank at once', () => bankRaces(() => v4))
    describe('upgrades', () => declareUpgradeRaces(() => v4))
  })
}

const ALGORITHM = 'EC_P384'
const ROUNDS = 2

function equalRequests(v4: () => PhonesV4): void {
  test.each(Object.entries(AUTHENTICATED))('%s: one is granted, and the counter moves once', async (_, { prepare, check }) => {
    const bound = await v4().activePhone(ALGORITHM)
    const request = await prepare(bound.phone)
    const answer = await sendFifty(v4().world, request)
    await unblock(v4().world, bound.userId)
    await check?.(bound.phone, answer)
    await expectInStep(v4().world, bound)
  })

  test.each(Object.entries(ENCRYPTED))('%s: one is opened', async (_, prepare) => {
    const bound = await v4().activePhone(ALGORITHM)
    await sendFifty(v4().world, await prepare(bound.phone))
    await expectInStep(v4().world, bound)
  })

  test('activation/create: one is granted, and its phone is the activated one', async () => {
    const { userId, code } = await v4().world.register()
    const phone = v4().newPhone(ALGORITHM)
    await sendFifty(v4().world, await phone.prepareActivation(code))
    expectOk(await v4().world.bank.commit(userId))
    await expectInStep(v4().world, { userId, phone })
  })

  test('activation/create: of phones that race for one code one wins', async () => {
    const { userId, code } = await v4().world.register()
    const phones = Array.from({ length: 4 }, () => v4().newPhone(ALGORITHM))
    const requests = await Promise.all(phones.map((phone) => phone.prepareActivation(code)))
    const replies = await flood(v4().world, requests)
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400])
    const winner = replies.findIndex(({ status }) => status === 200)
    requests.forEach((request, i) => i === winner && replies[i] && request.open(replies[i]))
    expectOk(await v4().world.bank.commit(userId))
    await expectInStep(v4().world, { userId, phone: phones[winner] as PhoneV4 })
  })

  test.each(['PENDING_COMMIT', 'ACTIVE'])('activation/confirm in %s: one is granted', async (state) => {
    const bound = await v4().pendingPhone(ALGORITHM)
    if (state === 'ACTIVE') expectOk(await v4().world.bank.commit(bound.userId))
    await sendFifty(v4().world, bound.phone.prepareConfirm(true))
    if (state !== 'ACTIVE') expectOk(await v4().world.bank.commit(bound.userId))
    await expectInStep(v4().world, bound)
    expect(await bound.phone.readStatus()).toMatchObject({ flags: 8 })
  })

  test('activation/remove: one is granted', async () => {
    const { userId, phone } = await v4().activePhone(ALGORITHM)
    await sendFifty(v4().world, phone.prepareRemove())
    expect(await registrationOf(v4().world, userId)).toBe('NONE')
    expect(await phone.readStatus()).toMatchObject({ state: 5, distance: 0 })
  })

  test.each(Object.entries(SEALED))('%s: an envelope is opened once, however many right codes cover it', async (_, prepare) => {
    const bound = await v4().activePhone(ALGORITHM)
    const { phone } = bound
    const envelope = { temporaryKey: await phone.fetchTemporaryKey('activation'), timestamp: await phone.serverTime() }
    const options = { ...envelope, nonce: random(24) }
    const requests = await Promise.all(Array.from({ length: 4 }, () => prepare(phone, options)))
    const replies = await flood(v4().world, requests)
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    await unblock(v4().world, bound.userId)
    await phone.exchange(phone.prepareValidation())
    expect(await phone.readStatus()).toMatchObject({ isDeadlocked: false, distance: 0 })
  })

  test('wrong codes that are all different count exactly to the maximum', async () => {
    const bound = await v4().activePhone(ALGORITHM)
    const wrong = () => bound.phone.prepareValidation({ wrongKeys: { knowledge: random(32) } })
    const four = await flood(v4().world, Array.from({ length: 4 }, wrong))
    expect(four.map(({ status }) => status)).toEqual(repeat(4, 401))
    expect(await bound.phone.readStatus()).toMatchObject({ state: 3, failedAttempts: 4 })
    await flood(v4().world, Array.from({ length: 20 }, wrong))
    expect(await bound.phone.readStatus()).toMatchObject({ state: 4, failedAttempts: 5, ctrByte: 1 })
  })
}

function lostAnswers(v4: () => PhonesV4): void {
  test('password/change: both keys are good until the new one is used, then only the new one', async () => {
    const { phone } = await v4().activePhone(ALGORITHM)
    const old = knowledgeOf(phone)
    const knowledge = await phone.exchange(await phone.preparePasswordChange())
    // A code of possession alone decides nothing.
    await phone.exchange(phone.prepareValidation({ factors: 'possession' }))
    expect([await isAccepted(phone, { knowledge }), await isAccepted(phone, { knowledge: old })]).toEqual([true, false])
    expect(await isAccepted(phone, { knowledge })).toBe(true)
  })

  test('password/change: once the old key was used the new one is forgotten, and the change can be repeated', async () => {
    const { phone } = await v4().activePhone(ALGORITHM)
    const old = knowledgeOf(phone)
    const lost = await phone.exchange(await phone.preparePasswordChange())
    expect([await isAccepted(phone, { knowledge: old }), await isAccepted(phone, { knowledge: lost })]).toEqual([true, false])
    // Both answers are lost; the code of the second change is made with the old key.
    const first = await phone.exchange(await phone.preparePasswordChange())
    const second = await phone.exchange(await phone.preparePasswordChange())
    expect([await isAccepted(phone, { knowledge: first }), await isAccepted(phone, { knowledge: second })]).toEqual([false, true])
    expect(await isAccepted(phone, { knowledge: old })).toBe(false)
    expect(await phone.readStatus()).toMatchObject({ state: 3, failedAttempts: 1, isDeadlocked: false })
  })

  test('biometry/add: both keys are good until one of them is used, then only that one', async () => {
    const { phone } = await v4().activePhone(ALGORITHM)
    const old = phone.state.keys?.biometry ?? random(32)
    const forgotten = await phone.exchange(await phone.prepareBiometryAdd())
    expect([await isAccepted(phone, { biometry: old }), await isAccepted(phone, { biometry: forgotten })]).toEqual([true, false])
    const biometry = await phone.exchange(await phone.prepareBiometryAdd())
    // A code with the other factor decides nothing.
    await phone.exchange(phone.prepareValidation())
    expect([await isAccepted(phone, { biometry }), await isAccepted(phone, { biometry: old })]).toEqual([true, false])
    expect(await isAccepted(phone, { biometry })).toBe(true)
  })

  test('biometry/add after biometry/remove: only the new key is good', async () => {
    const { phone } = await v4().activePhone(ALGORITHM)
    const old = phone.state.keys?.biometry ?? random(32)
    await phone.exchange(phone.prepareBiometryRemove())
    expect(await isAccepted(phone, { biometry: old })).toBe(false)
    const lost = await phone.exchange(await phone.prepareBiometryAdd())
    const biometry = await phone.exchange(await phone.prepareBiometryAdd())
    expect([await isAccepted(phone, { biometry: old }), await isAccepted(phone, { biometry })]).toEqual([false, true])
    expect([await isAccepted(phone, { biometry: lost }), await isAccepted(phone, { biometry })]).toEqual([false, true])
  })

  test('biometry/remove and activation/confirm: sent again they harm nothing', async () => {
    const { userId, phone } = await v4().pendingPhone(ALGORITHM)
    expectOk(await v4().world.bank.commit(userId))
    await phone.send(phone.prepareConfirm(true))
    expect((await phone.send(phone.prepareConfirm(true))).status).toBe(400)
    await phone.exchange(phone.prepareBiometryRemove())
    await phone.exchange(phone.prepareBiometryRemove())
    expect(await phone.readStatus()).toMatchObject({ state: 3, flags: 0, failedAttempts: 0, distance: 0, isDeadlocked: false })
  })
}

function keyRaces(v4: () => PhonesV4): void {
  test('of password changes the last one that was granted is good, and no other', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const bound = await v4().activePhone(ALGORITHM)
      const { phone } = bound
      const requests = [await phone.preparePasswordChange(), await phone.preparePasswordChange()]
      const replies = await flood(v4().world, round % 2 === 0 ? requests : requests.toReversed())
      const granted = (round % 2 === 0 ? replies : replies.toReversed()).map((reply, i) =>
        reply.status === 200 ? requests[i]?.open(reply) : undefined,
      )
      const last = granted.findLast((key) => key !== undefined)
      expect(last).toBeDefined()
      const superseded = granted.filter((key) => key !== undefined).filter((key) => key !== last)
      for (const key of superseded) expect(await isAccepted(phone, { knowledge: key })).toBe(false)
      phone.adopt({ knowledge: last ?? random(32) })
      // Codes with a replaced key have moved the phone ahead; the next accepted code brings phone and server together.
      if (superseded.length > 0) await phone.exchange(phone.prepareValidation())
      await expectInStep(v4().world, bound)
    }
  })

  test('a password change and the first use of the key before: one of them is granted, and what it left is good', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { phone } = await v4().activePhone(ALGORITHM)
      const next = await phone.exchange(await phone.preparePasswordChange())
      const change = await phone.preparePasswordChange()
      const use = phone.prepareValidation({ wrongKeys: { knowledge: next } })
      const [first, second] = round % 2 === 0 ? [change, use] : [use, change]
      const replies = await flood(v4().world, [first, second])
      const [changed, used] = round % 2 === 0 ? replies : replies.toReversed()
      expect([changed?.status, used?.status].toSorted()).toEqual([200, 401])
      phone.adopt({ knowledge: changed?.status === 200 ? change.open(changed) : next })
      await phone.exchange(phone.prepareValidation())
      expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, distance: 0, isDeadlocked: false })
    }
  })

  test('biometry added and removed: on with the key that was granted, or off', async () => {
    for (const isOn of [true, false]) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const { phone } = await v4().activePhone(ALGORITHM, { enableBiometry: isOn })
        const add = await phone.prepareBiometryAdd()
        const [added, removed] = await flood(v4().world, [add, phone.prepareBiometryRemove()])
        expect([added?.status, removed?.status]).toContain(200)
        // The code of the removal came after that of the addition, so a granted removal stays in effect.
        const isEnabled = removed?.status !== 200
        expect(await phone.readStatus()).toMatchObject({ flags: isEnabled ? 8 : 0 })
        const biometry = added?.status === 200 ? add.open(added) : random(32)
        expect(await isAccepted(phone, { biometry })).toBe(isEnabled)
        await phone.exchange(phone.prepareValidation())
      }
    }
  })

  test('a password and biometry changed at once: what was granted is good', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const bound = await v4().activePhone(ALGORITHM)
      const { phone } = bound
      const [change, add] = [await phone.preparePasswordChange(), await phone.prepareBiometryAdd()]
      const [changed, added] = await flood(v4().world, [change, add])
      expect([changed?.status, added?.status]).toContain(200)
      if (added?.status === 200) expect(await isAccepted(phone, { biometry: add.open(added) })).toBe(true)
      // The code of biometry/add was made with the old key, after the change. If it was granted, the old key stays.
      const knowledge = changed?.status === 200 ? change.open(changed) : random(32)
      if (added?.status !== 200) expect(await isAccepted(phone, { knowledge })).toBe(true)
    }
  })
}

function bankRaces(v4: () => PhonesV4): void {
  test('a confirmation and the commit are both granted', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const bound = await v4().pendingPhone(ALGORITHM)
      const [confirmed, committed] = await Promise.all([
        bound.phone.send(bound.phone.prepareConfirm(true)),
        v4().world.bank.commit(bound.userId),
      ])
      expect([confirmed.status, committed.status]).toEqual([200, 200])
      expect(await bound.phone.readStatus()).toMatchObject({ state: 3, flags: 8 })
      await expectInStep(v4().world, bound)
    }
  })

  test('a confirmation and the removal: the removal is granted', async () => {
    const { userId, phone } = await v4().pendingPhone(ALGORITHM)
    const confirm = phone.prepareConfirm(true)
    const [confirmed] = await Promise.all([phone.send(confirm), v4().world.bank.remove(userId).then(expectOk)])
    expect([200, 400, 401]).toContain(confirmed.status)
    expect(await phone.readStatus()).toMatchObject({ state: 5, isDeadlocked: false })
  })

  test('no code passes after the block was answered', async () => {
    const { userId, phone } = await v4().activePhone(ALGORITHM)
    const requests = Array.from({ length: 19 }, () => phone.prepareValidation({ factors: 'possession' }))
    const early = flood(v4().world, requests.slice(0, 10))
    expectOk(await v4().world.bank.change(userId, 'BLOCK'))
    const { ctrByte } = await phone.readStatus()
    const late = await flood(v4().world, requests.slice(10))
    await early
    expect(late.map(({ status }) => status)).toEqual(repeat(9, 401))
    expect(await phone.readStatus()).toMatchObject({ state: 4, ctrByte })
  })

  test.each(['BLOCK', 'REMOVE'] as const)('a password change and %s: what was granted is good', async (change) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const bound = await v4().activePhone(ALGORITHM)
      const { phone, userId } = bound
      const request = await phone.preparePasswordChange()
      const { bank } = v4().world
      const changed = Promise.all([phone.send(request), change === 'BLOCK' ? bank.change(userId, change) : bank.remove(userId)])
      const [reply] = await changed
      if (change === 'REMOVE') {
        expect(await phone.readStatus()).toMatchObject({ state: 5 })
        continue
      }
      await unblock(v4().world, userId)
      if (reply.status === 200) phone.adopt({ knowledge: request.open(reply) })
      await phone.exchange(phone.prepareValidation())
    }
  })
}

interface Authenticated {
  readonly prepare: (phone: PhoneV4) => Promise<Prepared<unknown>> | Prepared<unknown>
  /** Checks the effect of the request that was granted. */
  readonly check?: (phone: PhoneV4, answer: unknown) => unknown
}

const AUTHENTICATED: Record<string, Authenticated> = {
  'auth/validate': { prepare: (phone) => phone.prepareValidation({ body: 'pay' }) },
  'auth/validate with possession': { prepare: (phone) => phone.prepareValidation({ factors: 'possession' }) },
  'token/create': {
    prepare: (phone) => phone.prepareTokenCreate(),
    check: async (phone) => phone.exchange(await phone.prepareDetail(tokenOf(phone))),
  },
  'token/remove': {
    prepare: async (phone) => phone.prepareTokenRemove((await phone.createToken()).id),
    check: async (phone) => expect((await phone.send(await phone.prepareDetail(tokenOf(phone)))).status).toBe(401),
  },
  'vault/unlock': {
    prepare: (phone) => phone.prepareVaultUnlock('KDK_APP_VAULT_2FA'),
    check: (phone, key) => expect(Buffer.from(key as Uint8Array)).toEqual(Buffer.from(phone.state.keys?.kdkAppVault2fa ?? [])),
  },
  'activation/rename': {
    prepare: (phone) => phone.prepareRename('renamed'),
    check: async (phone) => {
      const detail = await phone.exchange(await phone.prepareDetail(await phone.createToken()))
      expect(detail).toMatchObject({ responseObject: { activationName: 'renamed' } })
    },
  },
  'password/change': {
    prepare: (phone) => phone.preparePasswordChange(),
    check: (phone, knowledge) => phone.adopt({ knowledge: knowledge as Uint8Array }),
  },
  'biometry/add': {
    prepare: (phone) => phone.prepareBiometryAdd(),
    check: async (phone, biometry) => expect(await isAccepted(phone, { biometry: biometry as Uint8Array })).toBe(true),
  },
  'biometry/remove': {
    prepare: (phone) => phone.prepareBiometryRemove(),
    check: async (phone) => expect(await phone.readStatus()).toMatchObject({ flags: 0 }),
  },
}

const ENCRYPTED: Record<string, (phone: PhoneV4) => Promise<Prepared<unknown>>> = {
  'activation/status': (phone) => phone.prepareEncrypted('/pa/v4/activation/status', 'activation'),
  'activation/detail': async (phone) => phone.prepareDetail(await phone.createToken()),
  'user/info': (phone) => phone.prepareUserInfo(),
  'config/application': (phone) => phone.prepareConfiguration('application'),
  'config/activation': (phone) => phone.prepareConfiguration('activation'),
}

type Sealed = Parameters<PhoneV4['preparePasswordChange']>[0]
const SEALED: Record<string, (phone: PhoneV4, options: Sealed) => Promise<Prepared<unknown>>> = {
  'token/create': (phone, options) => phone.prepareTokenCreate(options),
  'vault/unlock': (phone, options) => phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', options),
  'activation/rename': (phone, options) => phone.prepareRename('renamed', options),
  'password/change': (phone, options) => phone.preparePasswordChange(options),
  'biometry/add': (phone, options) => phone.prepareBiometryAdd(options),
}

const knowledgeOf = (phone: PhoneV4): Uint8Array => phone.state.keys?.knowledge ?? random(32)
const tokenOf = (phone: PhoneV4) => phone.state.tokens.at(-1) ?? { id: '', secret: random(32), factors: 'possession' as const }
