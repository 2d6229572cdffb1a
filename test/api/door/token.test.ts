// POST /verification/token: a bank has the token checked of a request that a phone sent to it (cloud §12.3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { headerName } from '../../../phone/header.ts'
import { b64, hasTimestamp, random } from '../../../phone/v3/crypto.ts'
import type { Bank } from '../../helpers/bank.ts'
import { callDoor, createCaller, PHONE_ADDRESS, readVerdict } from '../../helpers/door.ts'
import { expectError, MINUTE, readCounters, STATE } from '../../helpers/expectations.ts'
import { PHONE_VERSIONS, TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
beforeAll(async () => {
  v4 = await startWorldV4({ worksInBackground: false })
  bank = await createCaller(v4.world.bank, 'web-tier', 'verification', v4.world.applicationId)
})
afterAll(() => v4.close())

type More = Readonly<Record<string, unknown>>
const client = { address: PHONE_ADDRESS }
const newKey = (): string => Buffer.from(random(16)).toString('hex')
const verdictOf = async (token: string, more: More = {}, key?: string, caller = bank) =>
  readVerdict(await callDoor(caller, 'token', { token, client, ...more }, key))

/** A phone of 3.3 with a token, and header values that it writes with it. */
async function withToken(factors: 'possession' | 'possession_knowledge' | 'possession_biometry' = 'possession_knowledge') {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const token = await phone.createToken(factors)
  const write = async (age = 0, nonce?: Uint8Array) => valueOf(phone.tokenHeader(token, (await phone.serverTime()) - age, nonce))
  return { phone, userId, token, write }
}

const valueOf = (headers: Readonly<Record<string, string>>): string =>
  headers[headerName('PowerAuth', 'Token')] ?? headers[headerName('Svc', 'Token')] ?? ''

describe.each(PHONE_VERSIONS)('a token of %s', (version) => {
  test('is good once in either spelling, and its answer says whose it is', async () => {
    const { phone, userId } = await v4.world.activePhone(version)
    const token = await phone.createToken()
    for (const dialect of ['PowerAuth', 'Svc'] as const) {
      const value = valueOf(phone.speaking({ dialect }).tokenHeader(token, await phone.serverTime()))
      expect(await verdictOf(value)).toEqual({
        isValid: true,
        tokenId: token.id,
        activationId: phone.state.activationId,
        userId,
        state: 'ACTIVE',
        remainingAttempts: 5,
        factors: 'POSSESSION_KNOWLEDGE',
        protocolVersion: version,
        flags: [],
        applicationRoles: [],
      })
      expect(await verdictOf(value)).toMatchObject({ isValid: false, reason: 'USED', userId })
      expect(await verdictOf(value, { isRepeatable: true })).toMatchObject({ isValid: true })
    }
  })

  test('is of its time', async () => {
    const { phone } = await v4.world.activePhone(version)
    const token = await phone.createToken()
    const now = await phone.serverTime()
    const [within, beyond] = hasTimestamp(version) ? [4 * MINUTE, 6 * MINUTE] : [119 * MINUTE, 121 * MINUTE]
    for (const age of [within, -within])
      expect(await verdictOf(valueOf(phone.tokenHeader(token, now + age)))).toMatchObject({ isValid: true })
    for (const age of [beyond, -beyond])
      expect(await verdictOf(valueOf(phone.tokenHeader(token, now + age)))).toMatchObject({ isValid: false, reason: 'TIME' })
  })
})

test.each(TESTED_ALGORITHMS)('a token of 4.0 with %s is good once', async (algorithm) => {
  const { phone, userId } = await v4.activePhone(algorithm)
  const token = await phone.createToken('possession_biometry')
  const value = valueOf(phone.tokenHeader(token, await phone.serverTime()))
  expect(await verdictOf(value)).toMatchObject({ isValid: true, userId, factors: 'POSSESSION_BIOMETRY', protocolVersion: '4.0' })
  expect(await verdictOf(value)).toMatchObject({ isValid: false, reason: 'USED' })
})

test('one header is good once over pawl itself and the door', async () => {
  const { phone, token } = await withToken()
  const detail = await phone.prepareDetail(token)
  expectOk(await phone.send(detail))
  expect(await verdictOf(valueOf(detail.headers))).toMatchObject({ isValid: false, reason: 'USED' })
  const other = await phone.prepareDetail(token)
  expect(await verdictOf(valueOf(other.headers))).toMatchObject({ isValid: true })
  expect((await phone.send(other)).status).toBe(401)
})

describe('what the phone did wrong is a verdict that counts nothing and burns nothing', () => {
  test('a header that cannot be read, a wrong digest, and an unknown token', async () => {
    const { phone, userId, write } = await withToken()
    const value = await write()
    for (const text of ['x', 'PowerAuth x', value.replace('version="3.3"', 'version="9"')])
      expect(await verdictOf(text)).toEqual({ isValid: false, reason: 'HEADER_MALFORMED' })
    const wrong = value.replace(/token_digest="[^"]+"/, `token_digest="${b64(random(32))}"`)
    for (let i = 0; i < 10; i += 1)
      expect(await verdictOf(wrong)).toMatchObject({ isValid: false, reason: 'DIGEST_WRONG', userId })
    const unknown = value.replace(/token_id="[^"]+"/, 'token_id="3f2504e0-4f89-41d3-9a0c-0305e82c3301"')
    expect(await verdictOf(unknown)).toEqual({ isValid: false, reason: 'UNKNOWN' })
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
    expect(await verdictOf(value)).toMatchObject({ isValid: true })
  })

  test('a token of another application is unknown', async () => {
    const { write } = await withToken()
    expectOk(await v4.world.bank.createApplication('other-bank'))
    const stranger = await createCaller(v4.world.bank, 'stranger', 'integration', 'other-bank')
    const value = await write()
    expect(await verdictOf(value, {}, undefined, stranger)).toEqual({ isValid: false, reason: 'UNKNOWN' })
    expect(await verdictOf(value)).toMatchObject({ isValid: true })
  })

  test('a token of factors that are not enough', async () => {
    const { write } = await withToken('possession')
    const value = await write()
    expect(await verdictOf(value)).toMatchObject({ isValid: false, reason: 'FACTORS_NOT_ALLOWED', factors: 'POSSESSION' })
    expect(await verdictOf(value, { factors: ['POSSESSION'] })).toMatchObject({ isValid: true })
  })

  test('a phone that is blocked', async () => {
    const { userId, write } = await withToken()
    expectOk(await v4.world.bank.change(userId, 'BLOCK', { blockReason: 'LOST' }))
    const value = await write()
    expect(await verdictOf(value)).toMatchObject({ isValid: false, reason: 'STATE', state: 'BLOCKED', blockReason: 'LOST' })
    expectOk(await v4.world.bank.change(userId, 'UNBLOCK'))
    expect(await verdictOf(value)).toMatchObject({ isValid: true })
  })

  test('flags are compared last, and the header is used up', async () => {
    const { write } = await withToken()
    const value = await write()
    expect(await verdictOf(value, { requiredFlags: ['VIP'] })).toMatchObject({ isValid: false, reason: 'FLAGS', flags: [] })
    expect(await verdictOf(value)).toMatchObject({ isValid: false, reason: 'USED' })
  })
})

test('what the bank did wrong is an error that burns nothing', async () => {
  const { write } = await withToken()
  const value = await write()
  const [, nonce = ''] = /nonce="([^"]+)"/.exec(value) ?? []
  const wrong: More[] = [
    { token: undefined },
    { token: 'x'.repeat(4097) },
    { client: {} },
    { client: { address: 'x' } },
    { factors: ['KNOWLEDGE'] },
  ]
  for (const more of [...wrong, { isRepeatable: 'yes' }])
    expectError(await callDoor(bank, 'token', { token: value, client, ...more }), 400, 'ERROR_REQUEST')
  expectError(await callDoor(bank, 'token', { token: value, client }, `of-${nonce}`), 400, 'ERROR_REQUEST')
  expect(await verdictOf(value)).toMatchObject({ isValid: true })
})

test('a request whose answer was lost gets it when it comes again under its key', async () => {
  const { write, userId } = await withToken()
  const [value, key] = [await write(), newKey()]
  const first = await verdictOf(value, {}, key)
  expect(first).toMatchObject({ isValid: true, userId })
  expect(await verdictOf(value, {}, key)).toEqual(first)
  expect(await verdictOf(value, {}, newKey())).toMatchObject({ isValid: false, reason: 'USED' })
  const other = await write()
  expectError(await callDoor(bank, 'token', { token: other, client }, key), 400, 'ERROR_REQUEST')
  expect(await verdictOf(other)).toMatchObject({ isValid: true })
  const [third, thirdKey] = [await write(), newKey()]
  const together = await Promise.all(Array.from({ length: 20 }, async () => verdictOf(third, {}, thirdKey)))
  expect(new Set(together.map((verdict) => JSON.stringify(verdict))).size).toBe(1)
  expect(together[0]).toMatchObject({ isValid: true })
  // The minute is over, its window is not.
  await v4.world.advance(61_000)
  expect(await verdictOf(value, {}, key)).toMatchObject({ isValid: false, reason: 'USED' })
})
