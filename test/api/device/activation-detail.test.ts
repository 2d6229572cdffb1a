// POST /pa/v3/activation/detail: the token-authenticated, encrypted endpoint (v3 §11.2, §11.3, §13, §14).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCode, expectRefused, expectUntouched, HOUR, MINUTE, readCounters, SECOND } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { b64, hasTemporaryKeys, hasTimestamp, newKeyPair, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withFlippedMember, withHeader, withPair } from '../../../phone/header.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const TOKEN = 'X-PowerAuth-Token'
const ENCRYPTION = 'X-PowerAuth-Encryption'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

/** The page leaves open whether token or encryption is looked at first. */
function expectEitherRefusal(reply: HttpReply): void {
  expect([400, 401], reply.text).toContain(reply.status)
  expect(errorCode(reply)).toBe(reply.status === 400 ? 'ERR_ENCRYPTION' : 'ERR_AUTHENTICATION')
}

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/detail in %s', (version) => {
  test.each(['possession_knowledge', 'possession_biometry'] as const)(
    'shows the activation to a token of %s',
    async (factors) => {
      const { phone } = await world.activePhone(version)
      const token = await phone.createToken(factors)
      const detail = { activationId: phone.state.activationId, activationName: 'Test phone' }
      await expectUntouched(phone, async () => {
        for (const plaintext of ['{}', '', '{"unknown":1}']) {
          const answer = await phone.exchange(await phone.prepareDetail(token, { plaintext }))
          expect(answer).toEqual({ status: 'OK', responseObject: detail })
        }
      })
    },
  )

  test('refuses a token of possession alone', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken('possession')
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(await phone.prepareDetail(token)), 'signature')
    })
  })

  test('shows the new name after a rename', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    await phone.exchange(await phone.prepareRename('Renamed'))
    const answer = await phone.exchange(await phone.prepareDetail(token))
    expect(answer).toMatchObject({ responseObject: { activationName: 'Renamed' } })
  })

  test('takes a token header once, also over another envelope', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const first = await phone.prepareDetail(token)
    await phone.exchange(first)
    const second = await phone.prepareDetail(token)
    expectRefused(await phone.send(withHeader(second, TOKEN, first.headers[TOKEN])), 'signature')
    await phone.exchange(second)
  })

  test(`takes an envelope ${hasTimestamp(version) ? 'once' : 'as often as it comes'}`, async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const first = await phone.prepareDetail(token)
    await phone.exchange(first)
    const fresh = phone.tokenHeader(token, await phone.serverTime())
    const again = { ...first, headers: { ...first.headers, ...fresh } }
    if (!hasTimestamp(version)) {
      expectOk(await phone.send(again))
      return
    }
    expectRefused(await phone.send(again), 'encryption')
    // The header that came with it is not used up.
    const next = await phone.prepareDetail(token)
    await phone.exchange({ ...next, headers: { ...next.headers, ...fresh } })
  })

  test('a wrong digest does not burn the nonce of the token, a wrong token not that of the envelope', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const request = await phone.prepareDetail(token)
    expectRefused(await phone.send(withPair(request, 'token_digest', b64(random(32)))), 'signature')
    const forged = phone.tokenHeader({ ...token, secret: random(16) }, await phone.serverTime())
    const unknown = { ...request, headers: { ...request.headers, ...forged } }
    expectRefused(await phone.send(unknown), 'signature')
    await phone.exchange(request)
  })

  test('an altered envelope burns neither', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const request = await phone.prepareDetail(token)
    expectRefused(await phone.send(withFlippedMember(request, 'mac')), 'encryption')
    expectRefused(await phone.send(withFlippedMember(request, 'encryptedData')), 'encryption')
    await phone.exchange(request)
  })

  test('refuses a request that lacks one of its headers', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const request = await phone.prepareDetail(token)
    expectRefused(await phone.send(withHeader(request, TOKEN, undefined)), 'signature')
    expectRefused(await phone.send(withHeader(request, ENCRYPTION, undefined)), 'encryption')
    await phone.exchange(request)
  })

  test('refuses a token and an envelope of two activations', async () => {
    const mine = await world.activePhone(version)
    const other = await world.activePhone(version)
    const token = await mine.phone.createToken()
    const request = await other.phone.prepareDetail(token)
    expectEitherRefusal(await other.phone.send(request))
    await mine.phone.exchange(await mine.phone.prepareDetail(token))
  })

  test('refuses a blocked phone, and takes its token again after the unblock', async () => {
    const { phone, userId } = await world.activePhone(version)
    const token = await phone.createToken()
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectEitherRefusal(await phone.send(await phone.prepareDetail(token)))
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    await phone.exchange(await phone.prepareDetail(token))
    const late = await phone.prepareDetail(token)
    expectOk(await world.bank.remove(userId))
    expectEitherRefusal(await phone.send(late))
  })

  test('sent twice at once is answered once', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareDetail(await phone.createToken())
    const replies = await Promise.all([phone.send(request), phone.send(request)])
    expect(replies.filter((reply) => reply.status === 200)).toHaveLength(1)
  })
})

describe.each(PHONE_VERSIONS)('a token header in %s', (version) => {
  test.each<[string, string, string | undefined]>([
    ['without token id', 'token_id', undefined],
    ['with a token id that is not a UUID', 'token_id', 'x'],
    ['with a token id nobody issued', 'token_id', '00000000-0000-4000-8000-000000000000'],
    ['without digest', 'token_digest', undefined],
    ['with a digest of 31 bytes', 'token_digest', b64(random(31))],
    ['without nonce', 'nonce', undefined],
    ['with a nonce of 15 bytes', 'nonce', b64(random(15))],
    ['with another nonce', 'nonce', b64(random(16))],
    ['without timestamp', 'timestamp', undefined],
    ['with a timestamp that is not a number', 'timestamp', 'now'],
    ['with a negative timestamp', 'timestamp', '-1735689600000'],
    ['with a timestamp of 8 digits', 'timestamp', '12345678'],
    ['with a timestamp of 16 digits', 'timestamp', '1735689600000000'],
    ['with an unknown version', 'version', '9.9'],
  ])('%s is refused and burns nothing', async (_, key, value) => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareDetail(await phone.createToken())
    const spoiled = withPair({ ...request, headers: { [TOKEN]: request.headers[TOKEN] ?? '' } }, key, value)
    const headers = { ...request.headers, [TOKEN]: spoiled.headers[TOKEN] ?? '' }
    expectRefused(await phone.send({ ...request, headers }), 'signature')
    await phone.exchange(request)
  })

  test('is good only within its time window', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const window = hasTimestamp(version) ? 5 * MINUTE : 2 * HOUR
    for (const offset of [-window - 15 * SECOND, window + 15 * SECOND]) {
      const tokenTimestamp = (await phone.serverTime()) + offset
      expectRefused(await phone.send(await phone.prepareDetail(token, { tokenTimestamp })), 'signature')
    }
    for (const offset of [-window + 15 * SECOND, window - 15 * SECOND]) {
      const tokenTimestamp = (await phone.serverTime()) + offset
      await phone.exchange(await phone.prepareDetail(token, { tokenTimestamp }))
    }
  })

  test('from the edge of the future cannot come back before its time has passed', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const window = hasTimestamp(version) ? 5 * MINUTE : 2 * HOUR
    const first = await phone.prepareDetail(token, { tokenTimestamp: (await phone.serverTime()) + window - 15 * SECOND })
    await phone.exchange(first)
    await world.advance(2 * window - MINUTE)
    const later = await phone.prepareDetail(token)
    expectRefused(await phone.send(withHeader(later, TOKEN, first.headers[TOKEN])), 'signature')
    await phone.exchange(later)
  })

  test('of a removed token is refused', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    expectOk(await phone.send(phone.prepareTokenRemove(token.id)))
    expectRefused(await phone.send(await phone.prepareDetail(token)), 'signature')
    expect((await readCounters(phone)).failedAttempts).toBe(0)
  })
})

describe.each(PHONE_VERSIONS.filter(hasTimestamp))('the envelope of a detail in %s', (version) => {
  test('is good only within its time window', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    for (const offset of [-5 * MINUTE - 15 * SECOND, 5 * MINUTE + 15 * SECOND]) {
      const timestamp = (await phone.serverTime()) + offset
      expectRefused(await phone.send(await phone.prepareDetail(token, { timestamp })), 'encryption')
    }
  })

  test('for another key is refused', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const { uncompressed: publicKey } = newKeyPair()
    expectRefused(await phone.send(await phone.prepareDetail(token, { publicKey })), 'encryption')
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('application') : undefined
    if (temporaryKey) expectRefused(await phone.send(await phone.prepareDetail(token, { temporaryKey })), 'encryption')
  })
})
