// POST /pa/v3/activation/rename: signed over the plaintext, then encrypted (v3 §13).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  errorCode,
  expectError,
  expectRefused,
  expectUntouched,
  MINUTE,
  readCounters,
  STATE,
} from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import { b64, hasTimestamp, hasTemporaryKeys, newKeyPair, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withFlippedMember, withHeader, withMembers, withPair } from '../../../phone/header.ts'
import type { PhoneFactors } from '../../../phone/v3/state.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const HEADER = 'X-PowerAuth-Authorization'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const nameOf = async (userId: string): Promise<unknown> => member((await world.bank.view(userId)).json, 'name')

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/rename in %s', (version) => {
  test.each(['possession_knowledge', 'possession_biometry'] as const)('renames the activation by %s', async (factors) => {
    const { phone, userId } = await world.activePhone(version)
    const name = `Žluťoučký "${factors}" 📱`
    expect(await phone.exchange(await phone.prepareRename(name, { factors }))).toEqual({
      status: 'OK',
      responseObject: { activationId: phone.state.activationId, activationName: name },
    })
    expect(await nameOf(userId)).toBe(name)
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
  })

  test('takes the header of the signature for its encryption, whatever an encryption header says', async () => {
    const { phone, userId } = await world.activePhone(version)
    const request = await phone.prepareRename('by the signature')
    const foreign = `PowerAuth version="3.0", application_key="${b64(random(16))}", activation_id="${phone.state.activationId}"`
    expectOk(await phone.send(withHeader(request, 'X-PowerAuth-Encryption', foreign)))
    expect(await nameOf(userId)).toBe('by the signature')
  })

  test.each<[string, string]>([
    ['no name', '{}'],
    ['a null name', '{"activationName":null}'],
    ['an empty name', '{"activationName":""}'],
    ['a blank name', '{"activationName":" \\t "}'],
    ['a name that is not text', '{"activationName":7}'],
    ['a name with a zero character', '{"activationName":"a\\u0000b"}'],
    ['an array', '[]'],
    ['text that is not an object', '"name"'],
  ])('refuses %s as a structural error', async (_, plaintext) => {
    const { phone, userId } = await world.activePhone(version)
    expectError(await phone.send(await phone.prepareRename('', { plaintext })), 400, 'ERR_VALIDATION')
    expect(await nameOf(userId)).toBe('Test phone')
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
  })

  test.each(['{"activationName":', ''])('refuses the plaintext %j, which is not JSON', async (plaintext) => {
    const { phone, userId } = await world.activePhone(version)
    const reply = await phone.send(await phone.prepareRename('', { plaintext }))
    expect(reply.status).toBe(400)
    expect(['ERR_ENCRYPTION', 'ERR_VALIDATION']).toContain(errorCode(reply))
    expect(await nameOf(userId)).toBe('Test phone')
  })

  test.each(['possession', 'possession_knowledge_biometry', 'biometry'] as const satisfies PhoneFactors[])(
    'refuses the factors %s without looking at the signature',
    async (factors) => {
      const { phone, userId } = await world.activePhone(version)
      await expectUntouched(phone, async () => {
        expectRefused(await phone.send(await phone.prepareRename('nope', { factors })), 'signature')
      })
      expect(await nameOf(userId)).toBe('Test phone')
    },
  )

  test('counts a wrong signature and does not burn the envelope it came with', async () => {
    const { phone, userId } = await world.activePhone(version)
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('activation') : undefined
    const genuine = await phone.prepareRename('genuine', { temporaryKey })
    const wrong = phone.prepareSigned({
      path: genuine.path,
      resourceId: '/pa/activation/rename',
      body: genuine.body,
      signedBody: Buffer.from('{"activationName":"genuine"}'),
      wrongKeys: { knowledge: random(16) },
    })
    expectRefused(await phone.send(wrong), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 })
    await phone.exchange(genuine)
    expect(await nameOf(userId)).toBe('genuine')
  })

  test('does not take a signature over the envelope for one over the plaintext', async () => {
    const { phone } = await world.activePhone(version)
    const genuine = await phone.prepareRename('genuine')
    const overEnvelope = phone.prepareSigned({ path: genuine.path, resourceId: '/pa/activation/rename', body: genuine.body })
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(overEnvelope), 'signature')
    })
  })

  test('an altered envelope or header moves and burns nothing', async () => {
    const { phone, userId } = await world.activePhone(version)
    const request = await phone.prepareRename('genuine')
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withFlippedMember(request, 'mac')), 'encryption')
      expectRefused(await phone.send(withFlippedMember(request, 'encryptedData')), 'encryption')
      expectRefused(await phone.send(withMembers(request, { mac: undefined })), 'encryption')
    })
    expect(await nameOf(userId)).toBe('Test phone')
    await phone.exchange(request)
    expect(await nameOf(userId)).toBe('genuine')
  })

  test('refuses a used signature over a fresh envelope and a used envelope', async () => {
    const { phone, userId } = await world.activePhone(version)
    const first = await phone.prepareRename('same')
    await phone.exchange(first)
    const second = await phone.prepareRename('same')
    expectRefused(await phone.send(withHeader(second, HEADER, first.headers[HEADER])), 'signature')
    await phone.exchange(await phone.prepareRename('newer'))
    const replay = await phone.send(first)
    expect([400, 401]).toContain(replay.status)
    expect(['ERR_ENCRYPTION', 'ERR_AUTHENTICATION']).toContain(errorCode(replay))
    expect(await nameOf(userId)).toBe('newer')
  })

  test('refuses a missing or broken header', async () => {
    const { phone, userId } = await world.activePhone(version)
    const request = await phone.prepareRename('nope')
    await expectUntouched(phone, async () => {
      expectError(await phone.send(withHeader(request, HEADER, undefined)), 401, 'ERR_AUTHENTICATION')
      expectError(await phone.send(withPair(request, 'pa_nonce', 'AAAA')), 401, 'ERR_AUTHENTICATION')
      expectError(await phone.send(withPair(request, 'pa_version', '9.9')), 401, 'ERR_AUTHENTICATION')
    })
    expect(await nameOf(userId)).toBe('Test phone')
  })

  test('refuses a phone that is not active as not encrypted', async () => {
    const { phone, userId } = await world.activePhone(version)
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('activation') : undefined
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectRefused(await phone.send(await phone.prepareRename('nope', { temporaryKey })), 'encryption')
    expect(await nameOf(userId)).toBe('Test phone')
    expectOk(await world.bank.remove(userId))
    expectRefused(await phone.send(await phone.prepareRename('nope', { temporaryKey })), 'encryption')
  })

  test('sent twice at once renames once', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareRename('once')
    const replies = await Promise.all([phone.send(request), phone.send(request)])
    expect(replies.filter((reply) => reply.status === 200)).toHaveLength(1)
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, ctrByte: 1 })
  })
})

describe.each(PHONE_VERSIONS.filter(hasTimestamp))('POST /pa/v3/activation/rename in %s and time', (version) => {
  test('refuses envelopes outside the window, which move nothing', async () => {
    const { phone, userId } = await world.activePhone(version)
    const now = await phone.serverTime()
    await expectUntouched(phone, async () => {
      for (const timestamp of [now - 6 * MINUTE, now + 6 * MINUTE]) {
        expectRefused(await phone.send(await phone.prepareRename('nope', { timestamp })), 'encryption')
      }
    })
    expect(await nameOf(userId)).toBe('Test phone')
  })

  test('refuses an envelope for another key', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      const request = await phone.prepareRename('nope', { publicKey: newKeyPair().uncompressed })
      expectRefused(await phone.send(request), 'encryption')
    })
  })
})
