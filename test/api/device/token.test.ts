// POST /pa/v3/token/create and /pa/v3/token/remove (v3 §11.1, §11.4).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, expectRefused, expectUntouched, MINUTE, readCounters, STATE } from '../../helpers/expectations.ts'
import { b64, hasTemporaryKeys, hasTimestamp, newKeyPair, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import type { EnvelopeJson } from '../../../phone/v3/envelope.ts'
import { withBody, withHeader, withPair } from '../../../phone/header.ts'
import type { PhoneFactors } from '../../../phone/v3/state.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const FACTORS = ['possession', 'possession_knowledge', 'possession_biometry'] as const satisfies PhoneFactors[]
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const HEADER = 'X-PowerAuth-Authorization'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('POST /pa/v3/token/create in %s', (version) => {
  test.each(FACTORS)('gives a token for %s and moves the counter once', async (factors) => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken(factors)
    expect(token.id).toMatch(UUID_V4)
    expect(token.secret).toHaveLength(16)
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('gives as many tokens as are asked for, all of them good', async () => {
    const { phone } = await world.activePhone(version)
    const tokens = [await phone.createToken(), await phone.createToken('possession_biometry'), await phone.createToken()]
    expect(new Set(tokens.map((token) => token.id)).size).toBe(3)
    expect(new Set(tokens.map((token) => b64(token.secret))).size).toBe(3)
    for (const token of tokens) await phone.exchange(await phone.prepareDetail(token))
  })

  test('takes an empty plaintext and uncompressed keys', async () => {
    const { phone } = await world.activePhone(version)
    await phone.exchange(await phone.prepareTokenCreate({ plaintext: '' }))
    const uncompressed = phone.speaking({ compressed: false })
    await uncompressed.exchange(await uncompressed.prepareTokenCreate())
  })

  test('counts a wrong signature and does not burn the envelope it came with', async () => {
    const { phone } = await world.activePhone(version)
    const genuine = await phone.prepareTokenCreate()
    const wrong = phone.prepareSigned({
      path: genuine.path,
      resourceId: '/pa/token/create',
      body: genuine.body,
      wrongKeys: { knowledge: random(16) },
    })
    expectRefused(await phone.send(wrong), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 })
    await phone.exchange(genuine)
  })

  test('covers the envelope as sent', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareTokenCreate()
    const spaced = withBody(request, JSON.stringify(JSON.parse(Buffer.from(request.body).toString()), null, 1))
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(spaced), 'signature')
      expectRefused(await phone.send(withPair(request, 'pa_nonce', b64(random(16)))), 'signature')
    })
    await phone.exchange(request)
  })

  test('refuses the same request again', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareTokenCreate()
    await phone.exchange(request)
    const replay = await phone.send(request)
    expectError(replay, 401, 'ERR_AUTHENTICATION')
  })

  test.each(['possession_knowledge_biometry', 'knowledge'] as const)('refuses the factors %s untouched', async (factors) => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(await phone.prepareTokenCreate({ factors })), 'signature')
    })
  })

  test('refuses a missing or broken header untouched', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareTokenCreate()
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withHeader(request, HEADER, undefined)), 'signature')
      expectRefused(await phone.send(withPair(request, 'pa_signature_type', undefined)), 'signature')
      expectRefused(await phone.send(withPair(request, 'pa_version', '9.9')), 'signature')
    })
    await phone.exchange(request)
  })

  test('refuses a phone that is not active', async () => {
    const { phone, userId } = await world.activePhone(version)
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('activation') : undefined
    expectOk(await world.bank.change(userId, 'BLOCK'))
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(await phone.prepareTokenCreate({ temporaryKey })), 'signature')
    })
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    await phone.exchange(await phone.prepareTokenCreate({ temporaryKey }))
    expectOk(await world.bank.remove(userId))
    expectRefused(await phone.send(await phone.prepareTokenCreate({ temporaryKey })), 'signature')
  })
})

describe.each(PHONE_VERSIONS)('POST /pa/v3/token/create in %s, a well-signed body', (version) => {
  const signedBody = async (body: string) => {
    const { phone } = await world.activePhone(version)
    return phone.send(phone.prepareSigned({ path: '/pa/v3/token/create', resourceId: '/pa/token/create', body }))
  }

  test.each(['', 'null', '{}'])('that is %j is no request', async (body) => {
    expectRefused(await signedBody(body), 'request')
  })

  test('that is not JSON is a structural error, unless the signature is wrong', async () => {
    expectError(await signedBody('{"ephemeralPublicKey":'), 400, 'ERR_VALIDATION')
    const { phone } = await world.activePhone(version)
    const endpoint = { path: '/pa/v3/token/create', resourceId: '/pa/token/create', body: '{"a":' }
    const wrong = phone.prepareSigned({ ...endpoint, wrongKeys: { knowledge: random(16) } })
    expectRefused(await phone.send(wrong), 'signature')
  })

  test.each<[string, (envelope: EnvelopeJson) => EnvelopeJson]>([
    ['ephemeral key', ({ ephemeralPublicKey: _, ...rest }) => rest],
    ['data', ({ encryptedData: _, ...rest }) => rest],
    ['MAC', ({ mac: _, ...rest }) => rest],
  ])('without %s is no request', async (_, alterEnvelope) => {
    const { phone } = await world.activePhone(version)
    expectRefused(await phone.send(await phone.prepareTokenCreate({ alterEnvelope })), 'request')
  })

  test('with a wrong MAC or for another key fails as a token', async () => {
    const { phone } = await world.activePhone(version)
    const alterEnvelope = (envelope: EnvelopeJson) => ({ ...envelope, mac: b64(random(32)) })
    expectRefused(await phone.send(await phone.prepareTokenCreate({ alterEnvelope })), 'token')
    const { uncompressed: publicKey } = newKeyPair()
    expectRefused(await phone.send(await phone.prepareTokenCreate({ publicKey })), 'token')
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
  })

  test.runIf(hasTimestamp(version))('outside the time window fails as a token', async () => {
    const { phone } = await world.activePhone(version)
    const now = await phone.serverTime()
    for (const timestamp of [now - 6 * MINUTE, now + 6 * MINUTE]) {
      expectRefused(await phone.send(await phone.prepareTokenCreate({ timestamp })), 'token')
    }
  })
})

describe.each(PHONE_VERSIONS)('POST /pa/v3/token/remove in %s', (version) => {
  test.each(FACTORS)('removes by %s a token made by another combination', async (factors) => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken(factors === 'possession_knowledge' ? 'possession_biometry' : 'possession_knowledge')
    const kept = await phone.createToken()
    const reply = expectOk(await phone.send(phone.prepareTokenRemove(token.id, { factors })))
    expect(reply.json).toEqual({ status: 'OK', responseObject: { tokenId: token.id } })
    expectRefused(await phone.send(await phone.prepareDetail(token)), 'signature')
    await phone.exchange(await phone.prepareDetail(kept))
    expect((await readCounters(phone)).ctrByte).toBe(3)
  })

  test('answers the same when there is nothing to remove', async () => {
    const { phone } = await world.activePhone(version)
    for (const tokenId of ['00000000-0000-4000-8000-000000000000', 'x']) {
      const reply = expectOk(await phone.send(phone.prepareTokenRemove(tokenId)))
      expect(reply.json).toEqual({ status: 'OK', responseObject: { tokenId } })
    }
  })

  test('leaves the tokens of other phones alone', async () => {
    const mine = await world.activePhone(version)
    const other = await world.activePhone(version)
    const token = await mine.phone.createToken()
    expectOk(await other.phone.send(other.phone.prepareTokenRemove(token.id)))
    await mine.phone.exchange(await mine.phone.prepareDetail(token))
  })

  test.each<[string, string]>([
    ['no request object', '{}'],
    ['no token id', '{"requestObject":{}}'],
    ['a null token id', '{"requestObject":{"tokenId":null}}'],
    ['an empty token id', '{"requestObject":{"tokenId":""}}'],
    ['a blank token id', '{"requestObject":{"tokenId":"  "}}'],
    ['a token id that is not text', '{"requestObject":{"tokenId":7}}'],
    ['half of a JSON object', '{"requestObject":'],
    ['nothing', ''],
  ])('refuses %s as a structural error, unless the signature is wrong', async (_, body) => {
    const { phone } = await world.activePhone(version)
    expectError(await phone.send(phone.prepareTokenRemove('', { body })), 400, 'ERR_VALIDATION')
    const wrong = phone.prepareTokenRemove('', { body, wrongKeys: { knowledge: random(16) } })
    expectRefused(await phone.send(wrong), 'signature')
    expect((await readCounters(phone)).failedAttempts).toBe(1)
  })

  test('does not fail on a token id that no database takes', async () => {
    const { phone } = await world.activePhone(version)
    expectError(await phone.send(phone.prepareTokenRemove('a\u0000b')), 400, 'ERR_VALIDATION')
  })

  test('removes nothing when it is not signed, wrongly signed, or signed with other factors', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withHeader(phone.prepareTokenRemove(token.id), HEADER, undefined)), 'signature')
      const factors = 'possession_knowledge_biometry'
      expectRefused(await phone.send(phone.prepareTokenRemove(token.id, { factors })), 'signature')
    })
    const wrong = phone.prepareTokenRemove(token.id, { wrongKeys: { knowledge: random(16) } })
    expectRefused(await phone.send(wrong), 'signature')
    const other = JSON.stringify({ requestObject: { tokenId: token.id } })
    expectRefused(await phone.send(withBody(phone.prepareTokenRemove('x'), other)), 'signature')
    expect((await readCounters(phone)).failedAttempts).toBe(1)
    await phone.exchange(await phone.prepareDetail(token))
  })

  test('refuses a used signature and a phone that is not active', async () => {
    const { phone, userId } = await world.activePhone(version)
    const token = await phone.createToken()
    const used = phone.prepareTokenRemove('x')
    expectOk(await phone.send(used))
    expectRefused(await phone.send(used), 'signature')
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectRefused(await phone.send(phone.prepareTokenRemove(token.id)), 'signature')
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    await phone.exchange(await phone.prepareDetail(token))
  })
})
