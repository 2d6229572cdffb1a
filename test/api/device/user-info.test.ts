// POST /pa/v3/user/info, also served under /pa/v4: the endpoint that needs nothing but encryption (v3 §5.3, §6, §13).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectRefused, expectUntouched, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import { b64, hasNonce, hasTemporaryKeys, hasTimestamp, newKeyPair, random, unb64 } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withFlippedMember, withHeader, withMembers, withPair } from '../../../phone/header.ts'
import { unknownTemporaryKey } from '../../../phone/v3/virtual-phone.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const HEADER = 'X-PowerAuth-Encryption'
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('POST /pa/v3/user/info in %s', (version) => {
  test.each(['/pa/v3/user/info', '/pa/v4/user/info'])('tells who the user is at %s', async (path) => {
    const { phone, userId } = await world.activePhone(version)
    const now = Math.floor((await phone.serverTime()) / 1000)
    await expectUntouched(phone, async () => {
      const claims = await phone.exchange(await phone.prepareEncrypted(path))
      expect(claims).toMatchObject({ sub: userId, jti: expect.stringMatching(/^[0-9a-f-]{36}$/), iat: expect.any(Number) })
      expect(Number(claims.iat) - now).toBeGreaterThanOrEqual(0)
      expect(Number(claims.iat) - now).toBeLessThan(60)
    })
  })

  test('gives every answer an id of its own', async () => {
    const { phone } = await world.activePhone(version)
    const ids = [
      (await phone.exchange(await phone.prepareUserInfo())).jti,
      (await phone.exchange(await phone.prepareUserInfo())).jti,
    ]
    expect(ids[0]).not.toBe(ids[1])
  })

  test('answers uncompressed keys, and with the envelope members of the version', async () => {
    const { phone } = await world.activePhone(version, { compressed: false })
    const request = await phone.prepareUserInfo()
    const reply = expectOk(await phone.send(request))
    const members = hasTimestamp(version) ? ['encryptedData', 'mac', 'nonce', 'timestamp'] : ['encryptedData', 'mac']
    expect(Object.keys(reply.json as object).sort()).toEqual(members)
    if (hasTimestamp(version)) {
      expect(unb64(String(member(reply.json, 'nonce')))).toHaveLength(16)
      expect(Math.abs(Number(member(reply.json, 'timestamp')) - (await phone.serverTime()))).toBeLessThan(MINUTE)
    }
    request.open(reply)
  })

  test('refuses a request that arrived before from 3.2 on, and only then', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareUserInfo()
    await phone.exchange(request)
    if (hasTimestamp(version)) expectRefused(await phone.send(request), 'encryption')
    else await phone.exchange(request)
  })

  test('refuses altered members, which burn nothing', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareUserInfo()
    const other = newKeyPair()
    const altered = [
      withFlippedMember(request, 'mac'),
      withFlippedMember(request, 'encryptedData'),
      withMembers(request, { mac: b64(random(31)) }),
      withMembers(request, { mac: '' }),
      withMembers(request, { encryptedData: b64(random(15)) }),
      withMembers(request, { ephemeralPublicKey: b64(other.compressed) }),
      withMembers(request, { ephemeralPublicKey: b64(other.uncompressed.with(0, 6)) }),
      withMembers(request, { ephemeralPublicKey: b64(new Uint8Array(65).fill(1).with(0, 4)) }),
      withMembers(request, { ephemeralPublicKey: b64(new Uint8Array(1)) }),
      ...(hasNonce(version) ? [withFlippedMember(request, 'nonce'), withMembers(request, { nonce: b64(random(15)) })] : []),
      ...(hasTimestamp(version) ? [withMembers(request, { timestamp: (await phone.serverTime()) - SECOND })] : []),
    ]
    for (const attempt of altered) expectRefused(await phone.send(attempt), 'encryption')
    await phone.exchange(request)
  })

  test('refuses members that are missing, or that the version does not define', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareUserInfo()
    const names = ['ephemeralPublicKey', 'encryptedData', 'mac']
    for (const name of names) expectRefused(await phone.send(withMembers(request, { [name]: undefined })), 'encryption')
    const undefinedOnes = {
      nonce: hasNonce(version) ? undefined : b64(random(16)),
      timestamp: hasTimestamp(version) ? undefined : await phone.serverTime(),
      temporaryKeyId: hasTemporaryKeys(version) ? undefined : UNKNOWN_ID,
    }
    for (const [name, value] of Object.entries(undefinedOnes)) {
      expectRefused(await phone.send(withMembers(request, { [name]: value })), 'encryption')
    }
    await phone.exchange(request)
  })

  test('takes null for a member that the version does not define, and ignores unknown members', async () => {
    const { phone } = await world.activePhone(version)
    const nulls = {
      ...(!hasNonce(version) && { nonce: null }),
      ...(!hasTimestamp(version) && { timestamp: null }),
      ...(!hasTemporaryKeys(version) && { temporaryKeyId: null }),
    }
    await phone.exchange(withMembers(await phone.prepareUserInfo(), { ...nulls, unknown: { deep: [] } }))
  })

  test.each<[string, string, string | undefined]>([
    ['without version', 'version', undefined],
    ['with an unknown version', 'version', '9.9'],
    ['without application key', 'application_key', undefined],
    ['with an unknown application key', 'application_key', b64(random(16))],
    ['without activation id', 'activation_id', undefined],
    ['with an unknown activation id', 'activation_id', UNKNOWN_ID],
    ['with an activation id that is not a UUID', 'activation_id', 'x'],
  ])('refuses a header %s', async (_, key, value) => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareUserInfo()
    expectRefused(await phone.send(withPair(request, key, value)), 'encryption')
    await phone.exchange(request)
  })

  test('refuses a request without header, and one that another phone sealed', async () => {
    const mine = await world.activePhone(version)
    const other = await world.activePhone(version)
    const request = await mine.phone.prepareUserInfo()
    expectRefused(await mine.phone.send(withHeader(request, HEADER, undefined)), 'encryption')
    const foreign = withPair(request, 'activation_id', other.phone.state.activationId)
    expectRefused(await mine.phone.send(foreign), 'encryption')
    await mine.phone.exchange(request)
  })

  test('refuses plaintext that is not JSON', async () => {
    const { phone } = await world.activePhone(version)
    expectRefused(await phone.send(await phone.prepareUserInfo({ plaintext: '{"a":' })), 'encryption')
  })

  test('refuses a phone that is not active', async () => {
    const { phone, userId } = await world.pendingPhone(version)
    const pending = await phone.prepareUserInfo({ temporaryKey: unknownTemporaryKey(UNKNOWN_ID) })
    expectRefused(await phone.send(pending), 'encryption')
    expectOk(await world.bank.commit(userId))
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('activation') : undefined
    await phone.exchange(await phone.prepareUserInfo({ temporaryKey }))
    expectOk(await world.bank.change(userId, 'BLOCK'))
    const blocked = await phone.prepareUserInfo({ temporaryKey })
    expectRefused(await phone.send(blocked), 'encryption')
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    await phone.exchange(blocked)
    expectOk(await world.bank.remove(userId))
    expectRefused(await phone.send(await phone.prepareUserInfo({ temporaryKey })), 'encryption')
  })
})

describe.each(PHONE_VERSIONS.filter(hasTimestamp))('the time of an envelope in %s', (version) => {
  test('may be off by 300 seconds either way', async () => {
    const { phone } = await world.activePhone(version)
    for (const offset of [-5 * MINUTE - 15 * SECOND, 5 * MINUTE + 15 * SECOND]) {
      const timestamp = (await phone.serverTime()) + offset
      expectRefused(await phone.send(await phone.prepareUserInfo({ timestamp })), 'encryption')
    }
    for (const offset of [-5 * MINUTE + 15 * SECOND, 5 * MINUTE - 15 * SECOND]) {
      await phone.exchange(await phone.prepareUserInfo({ timestamp: (await phone.serverTime()) + offset }))
    }
  })

  test('from the edge of the future cannot come back before it has passed', async () => {
    const { phone } = await world.activePhone(version)
    const timestamp = (await phone.serverTime()) + 5 * MINUTE - 15 * SECOND
    const early = await phone.prepareUserInfo({ timestamp })
    await phone.exchange(early)
    await world.advance(4 * MINUTE)
    expectRefused(await phone.send(early), 'encryption')
    await world.advance(5 * MINUTE)
    expectRefused(await phone.send(early), 'encryption')
    await world.advance(5 * MINUTE)
    expectRefused(await phone.send(early), 'encryption')
  })
})

describe('the nonce of a 3.1 envelope', () => {
  test('is not under the MAC, and garbles the plaintext when it is altered', async () => {
    const { phone } = await world.activePhone('3.1')
    const request = await phone.prepareUserInfo({ plaintext: JSON.stringify({ padding: 'x'.repeat(64) }) })
    expectRefused(await phone.send(withFlippedMember(request, 'nonce')), 'encryption')
    await phone.exchange(request)
  })
})
