// /registration and /registration/commit: states and changes (cloud §3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readQrCode } from '../../helpers/bank.ts'
import { expectError, expectRefused, MINUTE, SECOND, STATE } from '../../helpers/expectations.ts'
import { bytesOf, isActivationCode, isEcdsa, random } from '../../../phone/v3/crypto.ts'
import type { Bound, World } from '../../helpers/world.ts'
import { expectOk, registrationOf, startWorld } from '../../helpers/world.ts'

const OK = { status: 'OK' }
const DEVICE = { name: 'Test phone', platform: 'ios', deviceInfo: 'iPhone16,2' }

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

/** A user in each state, and the phone where there is one. */
const IN_STATE: Record<string, () => Promise<{ userId: string } & Partial<Bound>>> = {
  NONE: async () => ({ userId: world.newUser() }),
  CREATED: () => world.register(),
  PENDING_COMMIT: () => world.pendingPhone('3.3'),
  ACTIVE: () => world.activePhone('3.3'),
  BLOCKED: async () => {
    const bound = await world.activePhone('3.3')
    expectOk(await world.bank.change(bound.userId, 'BLOCK'))
    return bound
  },
  REMOVED: async () => {
    const bound = await world.activePhone('3.3')
    expectOk(await world.bank.remove(bound.userId))
    return bound
  },
}
const LIVE = ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED']
const stateOf = (name: string) => IN_STATE[name]?.() ?? Promise.reject(new Error(name))

describe('POST /registration', () => {
  test('answers with a code and its signature by the master key, and nothing else', async () => {
    const userId = world.newUser()
    const reply = expectOk(await world.bank.register(userId))
    expect(Object.keys(reply.json as object)).toEqual(['activationQrCodeData'])
    const { code, signature } = readQrCode(reply)
    expect(isActivationCode(code)).toBe(true)
    expect(isEcdsa(world.app.masterPublicKey, bytesOf(code), signature)).toBe(true)
  })

  test('gives every user another code', async () => {
    const codes = await Promise.all(Array.from({ length: 20 }, async () => (await world.register()).code))
    expect(new Set(codes).size).toBe(20)
  })

  test.each(LIVE)('refuses a user whose registration is %s, and leaves it alone', async (state) => {
    const { userId } = await stateOf(state)
    const before = (await world.bank.view(userId)).json
    expectError(await world.bank.register(userId), 400, 'ERROR_REGISTRATION')
    expect((await world.bank.view(userId)).json).toEqual(before)
  })

  test('takes a user again whose registration was removed', async () => {
    const { userId, phone } = await stateOf('REMOVED')
    const { code } = readQrCode(await world.bank.register(userId))
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await world.newPhone('3.3').activate(code)
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
    expect((await phone?.readStatus())?.state).toBe(STATE.REMOVED)
  })

  test.each(['CREATED', 'PENDING_COMMIT'])('takes a user again whose registration expired in %s', async (state) => {
    const { userId } = await stateOf(state)
    await world.advance(5 * MINUTE + SECOND)
    expectOk(await world.bank.register(userId))
    expect(await registrationOf(world, userId)).toBe('CREATED')
  })

  test.each([
    'Alice',
    'alice',
    ' alice',
    'alice ',
    'älice',
    'a\u0308lice',
    "a'; drop table",
    '用户',
    '%',
    'a/b?c=d&e#f',
    '📱'.repeat(127),
  ])('compares user ids byte for byte: %j', async (userId) => {
    expectOk(await world.bank.register(userId))
    expect(await registrationOf(world, userId)).toBe('CREATED')
    expectError(await world.bank.register(userId), 400, 'ERROR_REGISTRATION')
  })
})

describe('GET /registration', () => {
  test('shows exactly the members of each state', async () => {
    expect((await world.bank.view(world.newUser())).json).toEqual({ registration: 'NONE' })
    const { userId, code } = await world.register()
    expect((await world.bank.view(userId)).json).toEqual({
      registration: 'CREATED',
      activationQrCodeData: expect.stringMatching(new RegExp(`^${code}#`)),
    })
    const { fingerprint } = await world.newPhone('3.3').activate(code)
    const pending = { registration: 'PENDING_COMMIT', ...DEVICE, activationFingerprint: fingerprint }
    expect((await world.bank.view(userId)).json).toEqual(pending)
    expectOk(await world.bank.commit(userId))
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'ACTIVE', ...DEVICE })
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'BLOCKED', ...DEVICE })
    expectOk(await world.bank.remove(userId))
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'NONE' })
  })

  test('returns the QR text of the creation every time', async () => {
    const userId = world.newUser()
    const created = expectOk(await world.bank.register(userId)).json as object
    for (let i = 0; i < 3; i++) expect((await world.bank.view(userId)).json).toEqual({ registration: 'CREATED', ...created })
  })

  test.each(['CREATED', 'PENDING_COMMIT'])('shows an expired %s as NONE', async (state) => {
    const { userId } = await stateOf(state)
    await world.advance(5 * MINUTE - 10 * SECOND)
    expect(await registrationOf(world, userId)).toBe(state)
    await world.advance(11 * SECOND)
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'NONE' })
  })

  test('does not let the key exchange lengthen the time until the commit', async () => {
    const { userId, code } = await world.register()
    await world.advance(4 * MINUTE)
    await world.newPhone('3.3').activate(code)
    await world.advance(MINUTE + SECOND)
    expectError(await world.bank.commit(userId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect(await registrationOf(world, userId)).toBe('NONE')
  })

  test('keeps an active registration for good', async () => {
    const { userId, phone } = await world.activePhone('3.3')
    await world.advance(400 * 24 * 60 * MINUTE)
    expect(await registrationOf(world, userId)).toBe('ACTIVE')
    expectOk(await phone.send(phone.prepareValidation()))
  })
})

describe('POST /registration/commit', () => {
  test('makes a pending registration active', async () => {
    const { userId, phone } = await world.pendingPhone('3.3')
    const reply = expectOk(await world.bank.commit(userId, { externalUserId: 'operator-1', unknown: true }))
    expect(reply.json).toEqual(OK)
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test.each(['NONE', 'CREATED', 'ACTIVE', 'BLOCKED', 'REMOVED'])('finds nothing to commit in %s', async (state) => {
    const { userId } = await stateOf(state)
    const before = (await world.bank.view(userId)).json
    expectError(await world.bank.commit(userId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect((await world.bank.view(userId)).json).toEqual(before)
  })
})

describe('PUT /registration', () => {
  const ALLOWED: Record<string, string[]> = {
    CREATED: ['REMOVE'],
    PENDING_COMMIT: ['REMOVE'],
    ACTIVE: ['BLOCK', 'REMOVE'],
    BLOCKED: ['UNBLOCK', 'REMOVE'],
  }
  const RESULT: Record<string, string> = { BLOCK: 'BLOCKED', UNBLOCK: 'ACTIVE', REMOVE: 'NONE' }
  const matrix = LIVE.flatMap((state) => ['BLOCK', 'UNBLOCK', 'REMOVE'].map((change) => [change, state] as const))

  test.each(matrix)('%s in %s does what the contract says', async (change, state) => {
    const { userId } = await stateOf(state)
    const before = (await world.bank.view(userId)).json
    const reply = await world.bank.change(userId, change)
    if (ALLOWED[state]?.includes(change)) {
      expect(expectOk(reply).json).toEqual(OK)
      expect(await registrationOf(world, userId)).toBe(RESULT[change])
    } else {
      expectError(reply, 400, 'ERROR_REGISTRATION_CHANGE')
      expect((await world.bank.view(userId)).json).toEqual(before)
    }
  })

  test.each(['NONE', 'REMOVED'])('finds no registration in %s', async (state) => {
    const { userId } = await stateOf(state)
    for (const change of ['BLOCK', 'UNBLOCK', 'REMOVE']) {
      expectError(await world.bank.change(userId, change), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    }
  })

  test.each(['CREATED', 'PENDING_COMMIT'])('finds no registration in an expired %s', async (state) => {
    const { userId } = await stateOf(state)
    await world.advance(5 * MINUTE + SECOND)
    expectError(await world.bank.change(userId, 'REMOVE'), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })

  test('takes a reason, an external user and members it does not know', async () => {
    const { userId } = await world.activePhone('3.3')
    const more = { blockReason: 'LOST_PHONE', externalUserId: 'operator-1', unknown: [] }
    expectOk(await world.bank.change(userId, 'BLOCK', more))
    expectOk(await world.bank.change(userId, 'UNBLOCK', more))
    expectOk(await world.bank.change(userId, 'REMOVE', more))
  })

  test('unblocking forgets the failed attempts that blocked', async () => {
    const { userId, phone } = await world.activePhone('3.3')
    for (let i = 0; i < 5; i++) await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    expect(await registrationOf(world, userId)).toBe('BLOCKED')
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expect(await phone.readStatus()).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
  })

  test('removing ends the phone', async () => {
    const { userId, phone } = await world.activePhone('3.3')
    expectOk(await world.bank.change(userId, 'REMOVE'))
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    expect((await phone.readStatus()).state).toBe(STATE.REMOVED)
  })
})

describe('DELETE /registration', () => {
  test.each(LIVE)('removes a registration that is %s', async (state) => {
    const { userId } = await stateOf(state)
    expect(expectOk(await world.bank.remove(userId)).json).toEqual(OK)
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'NONE' })
    expectError(await world.bank.remove(userId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })

  test('finds no registration of a user nobody knows', async () => {
    expectError(await world.bank.remove(world.newUser()), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })
})
