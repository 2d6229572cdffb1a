// POST /pa/v3/activation/create: every way to be refused (v3 §5.3, §6.5, §6.6, §8.4, §8.6, §14).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readApplication } from '../../helpers/bank.ts'
import { errorCode, expectError, expectRefused, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { b64, hasNonce, hasTemporaryKeys, hasTimestamp, newKeyPair, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withBody, withHeader, withMembers, withPair } from '../../../phone/header.ts'
import type { ActivationOptions } from '../../../phone/v3/virtual-phone.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, registrationOf, startWorld } from '../../helpers/world.ts'

const STAMPED = PHONE_VERSIONS.filter(hasTimestamp)
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/create in %s refuses as not encrypted', (version) => {
  test.each<[string, string, string | undefined]>([
    ['no version', 'version', undefined],
    ['a version nobody knows', 'version', '9.9'],
    ['a version of another path', 'version', '4.0'],
    ['no application key', 'application_key', undefined],
    ['an unknown application key', 'application_key', b64(random(16))],
    ['an application key of 15 bytes', 'application_key', b64(random(15))],
  ])('a header with %s', async (_, key, value) => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    expectRefused(await phone.send(withPair(request, key, value)), 'encryption')
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await phone.exchange(request)
  })

  test.each<[string, string | undefined]>([
    ['no header', undefined],
    ['an empty header', ''],
    ['another scheme', 'Basic dXNlcjpwYXNz'],
    ['a scheme without pairs', 'PowerAuth'],
  ])('a request with %s', async (_, value) => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    expectRefused(await phone.send(withHeader(request, 'X-PowerAuth-Encryption', value)), 'encryption')
    await phone.exchange(request)
  })

  test('an activation id in the header of an application scope', async () => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    const header = `${request.headers['X-PowerAuth-Encryption']}, activation_id="${UNKNOWN_ID}"`
    expectRefused(await phone.send(withHeader(request, 'X-PowerAuth-Encryption', header)), 'encryption')
  })

  test.each(['ephemeralPublicKey', 'encryptedData', 'mac'])('an envelope without %s', async (name) => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    for (const value of [undefined, null, 7, '', '?']) {
      expectRefused(await phone.send(withMembers(request, { [name]: value })), 'encryption')
    }
    await phone.exchange(request)
  })

  test('an envelope with more or fewer members than the version defines', async () => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    const spoiled = [
      { nonce: hasNonce(version) ? undefined : b64(random(16)) },
      { timestamp: hasTimestamp(version) ? undefined : await phone.serverTime() },
      { temporaryKeyId: hasTemporaryKeys(version) ? undefined : UNKNOWN_ID },
    ]
    for (const members of spoiled) expectRefused(await phone.send(withMembers(request, members)), 'encryption')
    await phone.exchange(request)
  })

  test('an application version that was switched off', async () => {
    const name = `v${version}`
    const path = `/admin/applications/${world.applicationId}/versions`
    expectOk(await world.bank.call('POST', path, { name }))
    const app = readApplication(await world.bank.call('GET', `/admin/application?id=${world.applicationId}&version=${name}`))
    const { userId, code } = await world.register()
    const phone = world.newPhone(version, { app })
    const request = await phone.prepareActivation(code)
    expectOk(await world.bank.call('PATCH', `${path}/${name}`, { isSupported: false }))
    expectRefused(await phone.send(request), 'encryption')
    expect(await registrationOf(world, userId)).toBe('CREATED')
    expectOk(await world.bank.call('PATCH', `${path}/${name}`, { isSupported: true }))
    await phone.exchange(request)
  })
})

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/create in %s refuses what is inside', (version) => {
  const refusalOf = async (request: ActivationOptions) => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    const reply = await phone.send(await phone.prepareActivation(code, request))
    expect(await registrationOf(world, userId)).toBe('CREATED')
    await phone.activate(code)
    return reply
  }

  test.each<[string, ActivationOptions]>([
    ['no type', { layer1: { type: undefined } }],
    ['an unknown type', { layer1: { type: 'MAGIC' } }],
    ['the type RECOVERY', { layer1: { type: 'RECOVERY', identityAttributes: { recoveryCode: 'x', puk: '1' } } }],
    ['a type in lower case', { layer1: { type: 'code' } }],
    ['a type under its old name', { layer1: { type: undefined, activationType: 'CODE' } }],
    ['no identity attributes', { layer1: { identityAttributes: undefined } }],
    ['empty identity attributes', { layer1: { identityAttributes: {} } }],
    ['identity attributes without a code', { layer1: { identityAttributes: { name: 'x' } } }],
    ['identity attributes that are not a map', { layer1: { identityAttributes: 'x' } }],
    ['custom attributes that are not a map', { layer1: { customAttributes: 'x' } }],
    ['no activation data', { layer1: { activationData: undefined } }],
    ['activation data that are not an object', { layer1: { activationData: 'x' } }],
    ['no device key', { layer2: { devicePublicKey: undefined } }],
    ['a blank device key', { layer2: { devicePublicKey: ' ' } }],
    ['a device key that is not text', { layer2: { devicePublicKey: 7 } }],
    ['a name that is not text', { layer2: { activationName: 7 } }],
    ['a name with a zero character', { layer2: { activationName: 'a\u0000b' } }],
    ['a platform that is not text', { layer2: { platform: {} } }],
  ])('%s as a structural error', async (_, request) => {
    expectError(await refusalOf(request), 400, 'ERR_VALIDATION')
  })

  test.each(['DIRECT', 'CUSTOM'])('the type %s, for which there is no provider', async (type) => {
    expectRefused(await refusalOf({ layer1: { type, identityAttributes: { login: 'x' } } }), 'activation')
  })

  test('an inner envelope whose MAC is wrong', async () => {
    expectRefused(await refusalOf({ alterInner: (envelope) => ({ ...envelope, mac: b64(random(32)) }) }), 'encryption')
  })

  test('an inner envelope that lacks a member', async () => {
    const reply = await refusalOf({ alterInner: ({ mac, ...envelope }) => (mac ? envelope : {}) })
    expect(reply.status).toBe(400)
    expect(['ERR_ENCRYPTION', 'ERR_VALIDATION']).toContain(errorCode(reply))
  })

  test.each(['lower', 'aaaaa-aaaaa-aaaaa-aaaaa', 'AAAAAAAAAAAAAAAAAAAA', 'AAAAA-BBBBB-CCCCC-DDDDD', '', ' ', 'a\u0000b'])(
    'the code %j',
    async (code) => {
      const reply = await refusalOf({ layer1: { identityAttributes: { code } } })
      expect(reply.status).toBe(400)
      expect(['ERR_ACTIVATION', 'ERR_VALIDATION']).toContain(errorCode(reply))
    },
  )
})

describe.each(STAMPED)('POST /pa/v3/activation/create in %s and time', (version) => {
  test.each([
    ['too old', -5 * MINUTE - 10 * SECOND],
    ['from the future', 5 * MINUTE + 10 * SECOND],
  ])('refuses an outer or inner envelope that is %s', async (_, offset) => {
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    const now = await phone.serverTime()
    const outer = await phone.prepareActivation(code, { timestamp: now + offset, innerTimestamp: now })
    expectRefused(await phone.send(outer), 'encryption')
    const inner = await phone.prepareActivation(code, { timestamp: now, innerTimestamp: now + offset })
    expectRefused(await phone.send(inner), 'encryption')
    expect(await registrationOf(world, userId)).toBe('CREATED')
  })

  test.each([
    ['almost too old', -5 * MINUTE + 15 * SECOND],
    ['almost too far ahead', 5 * MINUTE - 15 * SECOND],
  ])('accepts an envelope that is %s', async (_, offset) => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    await phone.activate(code, { timestamp: (await phone.serverTime()) + offset })
  })

  test.each([1.5, -1, '1735689600000', 1e300, true])('does not fail on the timestamp %j', async (timestamp) => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    const request = withMembers(await phone.prepareActivation(code), { timestamp })
    expectRefused(await phone.send(request), 'encryption')
  })

  test('does not take the inner envelope of one request in another', async () => {
    const first = await world.register()
    const second = await world.register()
    const phone = world.newPhone(version)
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('application') : undefined
    let used: unknown
    const keep = (envelope: unknown) => {
      used = envelope
      return envelope
    }
    await phone.exchange(await phone.prepareActivation(first.code, { temporaryKey, alterInner: keep }))
    const thief = world.newPhone(version)
    const request = await thief.prepareActivation(second.code, { temporaryKey, alterInner: () => used })
    expectRefused(await thief.send(request), 'encryption')
    expect(await registrationOf(world, second.userId)).toBe('CREATED')
  })
})

describe('POST /pa/v3/activation/create and temporary keys', () => {
  test('refuses an expired one', async () => {
    const phone = world.newPhone('3.3')
    const temporaryKey = await phone.fetchTemporaryKey('application')
    await world.advance(5 * MINUTE + SECOND)
    const { code } = await world.register()
    expectRefused(await phone.send(await phone.prepareActivation(code, { temporaryKey })), 'encryption')
    await phone.activate(code)
  })

  test('refuses one nobody issued and one of an activation', async () => {
    const { code } = await world.register()
    const phone = world.newPhone('3.3')
    const { phone: other } = await world.activePhone('3.3')
    const unknown = { id: UNKNOWN_ID, publicKey: newKeyPair().uncompressed, expiresAt: 0 }
    for (const temporaryKey of [unknown, await other.fetchTemporaryKey('activation')]) {
      expectRefused(await phone.send(await phone.prepareActivation(code, { temporaryKey })), 'encryption')
    }
    await phone.activate(code)
  })

  test.each(PHONE_VERSIONS)('refuses in %s a body that is JSON but no envelope', async (version) => {
    const { code } = await world.register()
    const phone = world.newPhone(version)
    const request = await phone.prepareActivation(code)
    for (const body of ['null', '[]', '"text"', '7', '{}', 'true']) {
      const reply = await phone.send(withBody(request, body))
      expect(reply.status).toBe(400)
      expect(['ERR_ENCRYPTION', 'ERR_VALIDATION']).toContain(errorCode(reply))
    }
    await phone.exchange(request)
  })
})
