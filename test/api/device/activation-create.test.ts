// POST /pa/v3/activation/create: the key exchange and what it leaves behind (v3 §4, §8).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readApplication, readQrCode } from '../../helpers/bank.ts'
import { expectRefused, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import {
  bytesOf,
  hasTemporaryKeys,
  hasTimestamp,
  isActivationCode,
  isEcdsa,
  newKeyPair,
  unb64,
} from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withFlippedMember } from '../../../phone/header.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, registrationOf, startWorld } from '../../helpers/world.ts'

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/create in %s', (version) => {
  test.each([
    ['compressed', true],
    ['uncompressed', false],
  ])('activates a phone that sends %s keys', async (_, compressed) => {
    const { userId, code, signature } = await world.register()
    expect(isActivationCode(code)).toBe(true)
    expect(isEcdsa(world.app.masterPublicKey, bytesOf(code), signature)).toBe(true)
    const phone = world.newPhone(version, { compressed })
    const result = await phone.activate(code)
    expect(result.activationId).toMatch(UUID_V4)
    expect(phone.state.ctrData).toHaveLength(16)
    expect(phone.state.serverPublicKey).toHaveLength(65)
    expect(expectOk(await world.bank.view(userId)).json).toEqual({
      registration: 'PENDING_COMMIT',
      name: 'Test phone',
      platform: 'ios',
      deviceInfo: 'iPhone16,2',
      activationFingerprint: result.fingerprint,
    })
    expect(await readCounters(phone)).toEqual({ state: STATE.PENDING_COMMIT, ctrByte: 0, failedAttempts: 0 })
    expectOk(await world.bank.commit(userId))
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('answers with the members of both layers and no others', async () => {
    const { code } = await world.register()
    const { layer1, layer2 } = await world.newPhone(version).activate(code)
    expect(Object.keys(layer2)).toEqual(['activationId', 'serverPublicKey', 'ctrData'])
    const { activationData, customAttributes, userInfo, ...rest } = layer1
    expect(activationData).toBeTypeOf('object')
    expect(customAttributes).toEqual({})
    expect(userInfo === undefined || typeof userInfo === 'object').toBe(true)
    expect(rest).toEqual({})
  })

  test('returns custom attributes and ignores members it does not know', async () => {
    const { code } = await world.register()
    const customAttributes = { source: 'test', nested: { list: [1, true, null] } }
    const layer1 = { customAttributes, identityAttributes: { code, unknown: 'x' }, unknown: 1 }
    const result = await world.newPhone(version).activate(code, { layer1, layer2: { unknown: {} } })
    expect(result.layer1.customAttributes).toEqual(customAttributes)
  })

  test('stores name, platform in lower case and device text, with defaults for absent ones', async () => {
    const { userId, code } = await world.register()
    const described = { activationName: 'Žluťoučký 📱', platform: 'ANDROID', deviceInfo: 'Pixel "9"', extras: '{"a":1}' }
    await world.newPhone(version).activate(code, { layer2: described })
    expect((await world.bank.view(userId)).json).toMatchObject({
      name: 'Žluťoučký 📱',
      platform: 'android',
      deviceInfo: 'Pixel "9"',
    })
    const other = await world.register()
    const absent = { activationName: undefined, platform: undefined, deviceInfo: undefined }
    await world.newPhone(version).activate(other.code, { layer2: absent })
    expect((await world.bank.view(other.userId)).json).toMatchObject({ name: '', platform: 'unknown', deviceInfo: '' })
  })

  test('does not commit by itself because a phone sends an OTP nobody asked for', async () => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    await phone.activate(code, { layer2: { activationOtp: '12345' } })
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
  })
})

describe.each(PHONE_VERSIONS)('the life of an activation code in %s', (version) => {
  test('a code is good once', async () => {
    const { userId, code } = await world.register()
    const first = await world.newPhone(version).activate(code)
    const late = world.newPhone(version)
    expectRefused(await late.send(await late.prepareActivation(code)), 'activation')
    expect(await world.bank.view(userId).then((reply) => member(reply.json, 'activationFingerprint'))).toBe(first.fingerprint)
    expectOk(await world.bank.commit(userId))
    expectRefused(await late.send(await late.prepareActivation(code)), 'activation')
    expect(await registrationOf(world, userId)).toBe('ACTIVE')
  })

  test('a request sent twice activates once', async () => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    await phone.exchange(request)
    expectRefused(await phone.send(request), hasTimestamp(version) ? 'encryption' : 'activation')
    expectOk(await world.bank.commit(userId))
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('a code nobody issued is refused', async () => {
    const phone = world.newPhone(version)
    expectRefused(await phone.send(await phone.prepareActivation('AAAAA-AAAAA-AAAAA-AAAAA')), 'activation')
  })

  test('a code expires after five minutes', async () => {
    const { userId, code } = await world.register()
    await world.advance(5 * MINUTE + SECOND)
    const phone = world.newPhone(version)
    expectRefused(await phone.send(await phone.prepareActivation(code)), 'activation')
    expect(await registrationOf(world, userId)).toBe('NONE')
  })

  test('a code is good until shortly before five minutes have passed', async () => {
    const { userId, code } = await world.register()
    await world.advance(5 * MINUTE - 10 * SECOND)
    await world.newPhone(version).activate(code)
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  })

  test('a code dies with its registration', async () => {
    const { userId, code } = await world.register()
    expectOk(await world.bank.remove(userId))
    const phone = world.newPhone(version)
    expectRefused(await phone.send(await phone.prepareActivation(code)), 'activation')
  })

  test('a code of one application is unknown in another', async () => {
    const { userId, code } = await world.register()
    const foreign = readApplication(await world.bank.createApplication(world.newUser()))
    const phone = world.newPhone(version, { app: foreign })
    expectRefused(await phone.send(await phone.prepareActivation(code)), 'activation')
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await world.newPhone(version).activate(code)
  })

  test('the registration shows the same QR text until the phone comes', async () => {
    const userId = world.newUser()
    const created = await world.bank.register(userId)
    const { code } = readQrCode(created)
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'CREATED', ...(created.json as object) })
    await world.newPhone(version).activate(code)
  })
})

describe.each(PHONE_VERSIONS)('a refused activation leaves the genuine one alone in %s', (version) => {
  test('an altered envelope of either layer', async () => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    expectRefused(await phone.send(withFlippedMember(request, 'mac')), 'encryption')
    expectRefused(await phone.send(withFlippedMember(request, 'encryptedData')), 'encryption')
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await phone.exchange(request)
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  })

  test('a phone of an application that no longer admits protocol 3', async () => {
    const admit = (isProtocol3Admitted: boolean) =>
      world.bank.call('PATCH', `/admin/applications/${world.applicationId}`, { isProtocol3Admitted })
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    expectOk(await admit(false))
    expectRefused(await phone.send(await phone.prepareActivation(code)), 'activation')
    expectOk(await admit(true))
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await phone.activate(code)
  })

  test('a request encrypted for another master key', async () => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    const { uncompressed: publicKey } = newKeyPair()
    expectRefused(await phone.send(await phone.prepareActivation(code, { publicKey })), 'encryption')
    const { uncompressed: innerPublicKey } = newKeyPair()
    expectRefused(await phone.send(await phone.prepareActivation(code, { innerPublicKey })), 'encryption')
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await phone.activate(code)
  })

  test('an invalid device key removes the registration', async () => {
    const offCurve = new Uint8Array(65).fill(1).with(0, 4)
    for (const point of [offCurve, new Uint8Array(33).with(0, 5), new Uint8Array(1), unb64('AAAA')]) {
      const { userId, code } = await world.register()
      const phone = world.newPhone(version)
      const layer2 = { devicePublicKey: Buffer.from(point).toString('base64') }
      expectRefused(await phone.send(await phone.prepareActivation(code, { layer2 })), 'activation')
      expect(await registrationOf(world, userId)).toBe('NONE')
    }
  })

  test.runIf(hasTemporaryKeys(version))('a phone refuses a temporary key that another master key signed', async () => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version, { app: { ...world.app, masterPublicKey: newKeyPair().uncompressed } })
    await expect(phone.activate(code)).rejects.toThrow()
    expect(await registrationOf(world, userId)).toBe('CREATED')
  })
})
