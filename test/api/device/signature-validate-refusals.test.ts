// /pa/v3/signature/validate: counting, look-ahead, states and headers (v3 §5.2, §9.1, §10.2, §10.5, §16).
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { v3 } from '../../../src/protocol/v3/index.ts'
import { readApplication } from '../../helpers/bank.ts'
import { expectError, expectRefused, expectUntouched, HOUR, readCounters, STATE } from '../../helpers/expectations.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { ALL_PHONE_VERSIONS, PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withHeader, withPair } from '../../../phone/header.ts'
import type { PhoneFactors } from '../../../phone/v3/state.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, registrationOf, startWorld } from '../../helpers/world.ts'

const wrongKeys = { knowledge: random(16), biometry: random(16) }
const HEADER = 'X-PowerAuth-Authorization'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('failed signatures in %s', (version) => {
  test('are counted for two factors, and the fifth blocks for good', async () => {
    const { phone, userId } = await world.activePhone(version)
    for (let failed = 1; failed <= 5; failed++) {
      const factors = failed % 2 ? 'possession_knowledge' : 'possession_biometry'
      expectRefused(await phone.send(phone.prepareValidation({ factors, wrongKeys })), 'signature')
      const state = failed < 5 ? STATE.ACTIVE : STATE.BLOCKED
      expect(await readCounters(phone)).toEqual({ state, ctrByte: 0, failedAttempts: failed })
    }
    expect(await registrationOf(world, userId)).toBe('BLOCKED')
    await world.advance(400 * 24 * HOUR)
    for (const factors of ['possession', 'possession_knowledge'] as const) {
      expectRefused(await phone.send(phone.prepareValidation({ factors })), 'signature')
    }
    expect(await readCounters(phone)).toEqual({ state: STATE.BLOCKED, ctrByte: 0, failedAttempts: 5 })
  })

  test('start from zero again after an unblock, and the counter is where it was', async () => {
    const { phone, userId } = await world.activePhone(version)
    expectOk(await phone.send(phone.prepareValidation()))
    for (let i = 0; i < 5; i++) await phone.send(phone.prepareValidation({ wrongKeys }))
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('are forgotten after a success with two factors, not after one with possession', async () => {
    const { phone } = await world.activePhone(version)
    for (const factors of ['possession_knowledge', 'possession_biometry'] as const) {
      expectRefused(await phone.send(phone.prepareValidation({ wrongKeys })), 'signature')
      expectOk(await phone.send(phone.prepareValidation({ factors: 'possession' })))
      expect((await readCounters(phone)).failedAttempts).toBe(1)
      expectOk(await phone.send(phone.prepareValidation({ factors })))
      expect((await readCounters(phone)).failedAttempts).toBe(0)
    }
  })

  test('with possession are never counted', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      for (let i = 0; i < 7; i++) {
        const request = phone.prepareValidation({ factors: 'possession', wrongKeys: { possession: random(16) } })
        expectRefused(await phone.send(request), 'signature')
      }
    })
  })

  test('of a repeated or overtaken signature are not counted', async () => {
    const { phone } = await world.activePhone(version)
    const first = phone.prepareValidation()
    const second = phone.prepareValidation()
    expectOk(await phone.send(second))
    expectRefused(await phone.send(second), 'signature')
    expectRefused(await phone.send(first), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 2, failedAttempts: 0 })
  })

  test('under an unknown, unsupported or foreign application version can never be right, and are not counted', async () => {
    const { phone } = await world.activePhone(version)
    const foreign = readApplication(await world.bank.createApplication(world.newUser()))
    const path = `/admin/applications/${world.applicationId}/versions`
    expectOk(await world.bank.call('POST', path, { name: `off-${version}` }))
    const query = `id=${world.applicationId}&version=off-${version}`
    const off = readApplication(await world.bank.call('GET', `/admin/application?${query}`))
    expectOk(await world.bank.call('PATCH', `${path}/off-${version}`, { isSupported: false }))
    const unknown = { ...world.app, applicationKey: b64(random(16)) }
    await expectUntouched(phone, async () => {
      for (const app of [unknown, foreign, off]) {
        for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const) {
          expectRefused(await phone.send(phone.speaking({ app }).prepareValidation({ factors })), 'signature')
          expectRefused(await phone.send(phone.speaking({ app }).prepareValidation({ factors, wrongKeys })), 'signature')
        }
      }
    })
  })
})

describe.each(PHONE_VERSIONS)('a right signature in %s that is refused whatever it is', (version) => {
  test('is compared with a decoy: its time does not tell a thief of the possession key the right PIN', async () => {
    const { phone, userId } = await world.activePhone(version)
    const foreign = readApplication(await world.bank.createApplication(world.newUser()))
    const older = ALL_PHONE_VERSIONS.filter((other) => other < version).map((other) => phone.speaking({ version: other }))
    const compared = vi.spyOn(v3, 'verifyAuthenticationCode')
    const expectNoMatch = async (speaker: typeof phone): Promise<void> => {
      compared.mockClear()
      expectRefused(await speaker.send(speaker.prepareValidation()), 'signature')
      const found = compared.mock.results.map(({ value }) => value as unknown)
      expect(found).toEqual(found.map(() => ({ move: undefined, isPossessionRight: false })))
      expect(found).not.toEqual([])
    }
    try {
      // The second time the phone is remembered.
      for (let i = 0; i < 2; i += 1) {
        for (const speaker of [phone.speaking({ app: foreign }), ...older]) await expectNoMatch(speaker)
        expectOk(await phone.send(phone.prepareValidation()))
      }
      expectOk(await world.bank.change(userId, 'BLOCK'))
      // The process that remembers the phone hears of the block by the first code, whether it is right or not.
      expectRefused(await phone.send(phone.prepareValidation({ wrongKeys })), 'signature')
      await expectNoMatch(phone)
    } finally {
      compared.mockRestore()
    }
  })
})

describe.each(PHONE_VERSIONS)('the look-ahead in %s', (version) => {
  test('accepts 19 lost signatures and refuses 20', async () => {
    const { phone } = await world.activePhone(version)
    phone.skip(5)
    expectOk(await phone.send(phone.prepareValidation()))
    expect((await readCounters(phone)).ctrByte).toBe(6)
    phone.skip(19)
    expectOk(await phone.send(phone.prepareValidation()))
    expect((await readCounters(phone)).ctrByte).toBe(26)
    phone.skip(20)
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 26, failedAttempts: 0 })
  })
})

describe.each(PHONE_VERSIONS)('a signature in %s', (version) => {
  test('is worth nothing before the commit and after the removal', async () => {
    const { phone, userId } = await world.pendingPhone(version)
    for (const factors of ['possession', 'possession_knowledge'] as const) {
      expectRefused(await phone.send(phone.prepareValidation({ factors })), 'signature')
    }
    expect(await readCounters(phone)).toEqual({ state: STATE.PENDING_COMMIT, ctrByte: 0, failedAttempts: 0 })
    expectOk(await world.bank.commit(userId))
    expectOk(await phone.send(phone.prepareValidation()))
    expectOk(await world.bank.remove(userId))
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    })
  })

  test('is worth nothing while the bank blocks, and counts nothing then', async () => {
    const { phone, userId } = await world.activePhone(version)
    expectOk(await world.bank.change(userId, 'BLOCK'))
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(phone.prepareValidation()), 'signature')
      expectRefused(await phone.send(phone.prepareValidation({ wrongKeys })), 'signature')
    })
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test.each(['knowledge', 'biometry', 'possession_knowledge_biometry'] as const satisfies PhoneFactors[])(
    'with the factors %s is refused and not looked at',
    async (factors) => {
      const { phone } = await world.activePhone(version)
      await expectUntouched(phone, async () => {
        expectRefused(await phone.send(phone.prepareValidation({ factors })), 'signature')
        expectRefused(await phone.send(phone.prepareValidation({ factors, wrongKeys })), 'signature')
      })
      expectOk(await phone.send(phone.prepareValidation()))
    },
  )

  test('of an activation nobody knows is refused like any other', async () => {
    const { phone } = await world.activePhone(version)
    const request = withPair(phone.prepareValidation(), 'pa_activation_id', '00000000-0000-4000-8000-000000000000')
    expectRefused(await phone.send(request), 'signature')
  })
})

describe.each(PHONE_VERSIONS)('a broken authorization header in %s', (version) => {
  test.each<[string, string, string | undefined]>([
    ['without activation id', 'pa_activation_id', undefined],
    ['with an activation id that is not a UUID', 'pa_activation_id', 'x'],
    ['without application key', 'pa_application_key', undefined],
    ['with an application key of 15 bytes', 'pa_application_key', b64(random(15))],
    ['without nonce', 'pa_nonce', undefined],
    ['with a nonce of 3 bytes', 'pa_nonce', 'AAAA'],
    ['with a nonce of 17 bytes', 'pa_nonce', b64(random(17))],
    ['with a nonce that is not Base64', 'pa_nonce', '!!!!!!!!!!!!!!!!!!!!!!=='],
    ['without signature', 'pa_signature', undefined],
    ['with an empty signature', 'pa_signature', ''],
    ['with a signature of seven digits', 'pa_signature', '1234567'],
    ['with a signature of 15 bytes', 'pa_signature', b64(random(15))],
    ['without version', 'pa_version', undefined],
    ['with an unknown version', 'pa_version', '9.9'],
    ['with a version before 3.0', 'pa_version', '2.1'],
  ])('%s is refused and counts nothing', async (_, key, value) => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withPair(phone.prepareValidation(), key, value)), 'signature')
    })
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test.each<[string, (value: string) => string | undefined]>([
    ['none', () => undefined],
    ['an empty value', () => ''],
    ['the scheme alone', () => 'PowerAuth'],
    ['another scheme', () => 'Basic dXNlcjpwYXNz'],
    ['the scheme in lower case', (value) => value.replace('PowerAuth', 'powerauth')],
    ['unquoted values', (value) => value.replaceAll('"', '')],
    ['blanks around the equals signs', (value) => value.replaceAll('="', ' = "')],
  ])('%s is refused and counts nothing', async (_, spoil) => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      const request = phone.prepareValidation()
      expectRefused(await phone.send(withHeader(request, HEADER, spoil(request.headers[HEADER] ?? ''))), 'signature')
    })
  })

  test('with an unknown factor combination or version is refused and counts nothing', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectError(await phone.send(withPair(phone.prepareValidation(), 'pa_signature_type', 'luck')), 401, 'ERR_AUTHENTICATION')
      expectError(await phone.send(withPair(phone.prepareValidation(), 'pa_version', '4.0')), 401, 'ERR_AUTHENTICATION')
    })
  })
})
