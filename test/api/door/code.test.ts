// POST /verification/code: a bank has the code checked of a request that a phone sent to it (cloud §12.2).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flipBit, withBody, withHeader, withPair } from '../../../phone/header.ts'
import type { HttpRequest } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { type Bank, readApplication } from '../../helpers/bank.ts'
import { createCaller, headerOf, RESOURCE, toDoor, verdictOf } from '../../helpers/door.ts'
import { readCounters, STATE } from '../../helpers/expectations.ts'
import { PHONE_VERSIONS, TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
beforeAll(async () => {
  v4 = await startWorldV4()
  bank = await createCaller(v4.world.bank, 'web-tier', 'verification', v4.world.applicationId)
})
afterAll(() => v4.close())

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const QUERIES = ['', 'a=1&b=2', 'b=2&a=1', 'q=%C5%99eka+x&e=', 'pct=100%25', 'amp=1%262', 'flag&a=1', '?a=1', 'twice=%2541']
const at = { path: '/bank/transfer', resourceId: RESOURCE }
const wrongPin = { wrongKeys: { knowledge: random(32) } }

describe.each(PHONE_VERSIONS)('a phone of %s', (version) => {
  test('has its code accepted for every method and every query of GET, once', async () => {
    const { phone, userId } = await v4.world.activePhone(version)
    for (const method of METHODS) {
      const request = phone.prepareSigned({ ...at, method, query: 'x=1', body: method === 'GET' ? '' : '{"amount": 1}' })
      expect(await verdictOf(bank, request)).toEqual({
        isValid: true,
        covered: method === 'GET' ? 'QUERY' : 'BODY',
        activationId: phone.state.activationId,
        userId,
        state: 'ACTIVE',
        remainingAttempts: 5,
        factors: 'POSSESSION_KNOWLEDGE',
        protocolVersion: version,
        flags: [],
        applicationVersion: 'default',
        applicationRoles: [],
      })
      expect(await verdictOf(bank, request)).toMatchObject({ isValid: false, reason: 'CODE_WRONG', remainingAttempts: 5 })
    }
    for (const query of QUERIES) {
      const request = phone.prepareSigned({ ...at, method: 'GET', query })
      expect([query, await verdictOf(bank, request)]).toMatchObject([query, { isValid: true, covered: 'QUERY' }])
    }
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 0 })
  })

  test('is read in either spelling of the header', async () => {
    const { phone } = await v4.world.activePhone(version)
    const svc = phone.speaking({ dialect: 'Svc' }).prepareSigned({ ...at, body: 'x' })
    expect(headerOf(svc, 'Authorization')).toMatch(/^Svc /)
    expect(await verdictOf(bank, svc)).toMatchObject({ isValid: true })
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({ isValid: true })
  })

  test('is one pipeline with pawl itself: what passed there does not pass here, and the other way round', async () => {
    const { phone } = await v4.world.activePhone(version)
    const first = phone.prepareSigned({ ...at, body: 'x' })
    expectOk(await phone.send(phone.prepareValidation()))
    expect(await verdictOf(bank, first)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({ isValid: true })
    expectOk(await phone.send(phone.prepareValidation()))
  })
})

describe.each(TESTED_ALGORITHMS)('a phone of 4.0 with %s', (algorithm) => {
  test('has the body covered where there is one, else the query, whatever the method', async () => {
    const { phone, userId } = await v4.activePhone(algorithm)
    for (const method of METHODS) {
      const withBoth = phone.prepareSigned({ ...at, method, query: 'x=1', body: '{"amount": 1}' })
      expect(await verdictOf(bank, { ...withBoth, path: '/bank/transfer?x=2' })).toMatchObject({
        isValid: true,
        covered: 'BODY',
        userId,
        protocolVersion: '4.0',
      })
    }
    for (const query of QUERIES.slice(1)) {
      const request = phone.prepareSigned({ ...at, method: 'PUT', query })
      expect([query, await verdictOf(bank, request)]).toMatchObject([query, { isValid: true, covered: 'QUERY' }])
      expect(await verdictOf(bank, request)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    }
  })
})

describe('what the phone, or somebody on the way, did wrong is a verdict', () => {
  test('a changed body, method, resource or nonce is a wrong code that counts nothing', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const spoiled: readonly (readonly [HttpRequest, Record<string, unknown>])[] = [
      [withBody(request, 'y'), {}],
      [request, { method: 'PUT' }],
      [request, { resourceId: '/transfers' }],
      [withPair(request, 'pa_nonce', Buffer.from(random(16)).toString('base64')), {}],
      [withBody(request, ''), {}],
    ]
    for (const [changed, more] of spoiled)
      expect(await verdictOf(bank, changed, more)).toMatchObject({ isValid: false, reason: 'CODE_WRONG', remainingAttempts: 5 })
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
  })

  test('a header that cannot be read is malformed, whatever else is sent', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const name = 'X-PowerAuth-Authorization'
    const [value = ''] = [request.headers[name]]
    for (const text of ['x', 'Bearer abc', value.replace('PowerAuth ', ''), value.replace('pa_version="3.3"', 'pa_version="9"')])
      expect(await verdictOf(bank, withHeader(request, name, text))).toEqual({ isValid: false, reason: 'HEADER_MALFORMED' })
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
  })

  test('other factors than those that are enough are refused before anything is read', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x', factors: 'possession' })
    const refused = { isValid: false, reason: 'FACTORS_NOT_ALLOWED', covered: 'BODY' }
    expect(await verdictOf(bank, request)).toEqual(refused)
    expect(await verdictOf(bank, request, { factors: ['POSSESSION_BIOMETRY'] })).toEqual(refused)
    expect(await verdictOf(bank, request, { factors: ['POSSESSION'] })).toMatchObject({ isValid: true, factors: 'POSSESSION' })
  })

  test('wrong PINs are counted, and the last one blocks', async () => {
    const { phone, userId } = await v4.world.activePhone('3.3')
    for (let left = 4; left > 0; left -= 1)
      expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x', ...wrongPin }))).toMatchObject({
        isValid: false,
        reason: 'CODE_WRONG',
        remainingAttempts: left,
        state: 'ACTIVE',
      })
    const last = await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x', ...wrongPin }))
    expect(last).toMatchObject({
      reason: 'CODE_WRONG',
      remainingAttempts: 0,
      state: 'BLOCKED',
      blockReason: 'MAX_FAILED_ATTEMPTS',
    })
    const blocked = await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))
    expect(blocked).toMatchObject({ isValid: false, reason: 'STATE', state: 'BLOCKED', blockReason: 'MAX_FAILED_ATTEMPTS' })
    expectOk(await v4.world.bank.change(userId, 'UNBLOCK'))
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({
      isValid: true,
      remainingAttempts: 5,
    })
  })

  test('a phone that was blocked by the bank, that waits, or that is removed has a state', async () => {
    const { phone, userId } = await v4.world.activePhone('3.3')
    expectOk(await v4.world.bank.change(userId, 'BLOCK', { blockReason: 'LOST' }))
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({
      reason: 'STATE',
      blockReason: 'LOST',
    })
    expectOk(await v4.world.bank.remove(userId))
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({ reason: 'STATE', state: 'REMOVED' })
    const pending = await v4.world.pendingPhone('3.3')
    expect(await verdictOf(bank, pending.phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({
      reason: 'STATE',
      state: 'PENDING_COMMIT',
    })
  })

  test('flags are compared after the code, which is used up by it and counts nothing', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const setFlags = async (...flags: string[]) =>
      expectOk(await v4.world.bank.call('PUT', `/admin/activations/${phone.state.activationId}/flags`, { flags }))
    const sign = () => phone.prepareSigned({ ...at, body: 'x' })
    await setFlags('VERIFICATION_PENDING', 'VIP')
    const request = sign()
    expect(await verdictOf(bank, request)).toMatchObject({
      isValid: false,
      reason: 'FLAGS',
      flags: ['VERIFICATION_PENDING', 'VIP'],
      remainingAttempts: 5,
    })
    expect(await verdictOf(bank, request, { refusedFlags: [] })).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await verdictOf(bank, sign(), { refusedFlags: [], requiredFlags: ['VIP'] })).toMatchObject({ isValid: true })
    expect(await verdictOf(bank, sign(), { refusedFlags: [], requiredFlags: ['VIP', 'GOLD'] })).toMatchObject({ reason: 'FLAGS' })
    expect(await verdictOf(bank, sign(), { refusedFlags: ['VIP'] })).toMatchObject({ reason: 'FLAGS' })
    await setFlags()
    expect(await verdictOf(bank, sign())).toMatchObject({ isValid: true, flags: [] })
  })

  test('biometry that is off, and a version that is left behind, are said', async () => {
    const { phone } = await v4.activePhone('EC_P384', { enableBiometry: false })
    const biometric = phone.prepareSigned({ ...at, body: 'x', factors: 'possession_biometry' })
    expect(await verdictOf(bank, biometric)).toMatchObject({ isValid: false, reason: 'BIOMETRY_OFF', remainingAttempts: 5 })
    const old = await v4.world.activePhone('3.3')
    expect(await verdictOf(bank, old.phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({ isValid: true })
    const older = old.phone.speaking({ version: '3.0' }).prepareSigned({ ...at, body: 'x' })
    expect(await verdictOf(bank, older)).toMatchObject({ isValid: false, reason: 'PROTOCOL_TOO_LOW', remainingAttempts: 5 })
  })

  test('a version of the app that is switched off is said', async () => {
    const { bank: admin, applicationId } = v4.world
    const versions = `/admin/applications/${applicationId}/versions`
    expectOk(await admin.call('POST', versions, { name: 'off' }))
    const app = readApplication(await admin.call('GET', `/admin/application?id=${applicationId}&version=off`))
    expectOk(await admin.call('PATCH', `${versions}/off`, { isSupported: false }))
    const { phone } = await v4.world.activePhone('3.3')
    const options = { app }
    const request = phone.speaking(options).prepareSigned({ ...at, body: 'x' })
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: false, reason: 'VERSION_OFF', applicationVersion: 'off' })
  })
})

describe('what is not of the application of the credential is unknown', () => {
  const UNKNOWN = { isValid: false, reason: 'UNKNOWN', covered: 'BODY' }

  test('a foreign activation, a foreign key, and what there is not', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    expectOk(await v4.world.bank.createApplication('other-bank'))
    const stranger = await createCaller(v4.world.bank, 'stranger', 'integration', 'other-bank')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expect(await verdictOf(stranger, request)).toEqual(UNKNOWN)
    const { json } = expectOk(await v4.world.bank.call('GET', '/admin/application?id=other-bank'))
    const foreignKey = (json as { responseObject: { appKey: string } }).responseObject.appKey
    expect(await verdictOf(bank, withPair(request, 'pa_application_key', foreignKey))).toEqual(UNKNOWN)
    expect(await verdictOf(bank, withPair(request, 'pa_application_key', flipBit(foreignKey)))).toEqual(UNKNOWN)
    const nobody = withPair(request, 'pa_activation_id', '3f2504e0-4f89-41d3-9a0c-0305e82c3301')
    expect(await verdictOf(bank, nobody)).toEqual(UNKNOWN)
    // Nothing of it moved or counted.
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 0 })
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
  })

  test('a hundred codes of a stranger leave the activation ACTIVE, with nothing counted', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const genuine = phone.prepareSigned({ ...at, body: 'x' })
    const reasons = new Set<unknown>()
    for (let i = 0; i < 100; i += 1) {
      const nonce = Buffer.from(random(16)).toString('base64')
      const address = `198.51.100.${i}`
      reasons.add((await verdictOf(bank, withPair(genuine, 'pa_nonce', nonce), { client: { address } }))['reason'])
    }
    expect([...reasons]).toEqual(['CODE_WRONG'])
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 0 })
    expect(await verdictOf(bank, genuine)).toMatchObject({ isValid: true, remainingAttempts: 5 })
  })

  test('too many wrong codes of one address hold up that address alone, and never the credential', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const genuine = phone.prepareSigned({ ...at, body: 'x' })
    const garbage = () => withPair(genuine, 'pa_nonce', Buffer.from(random(16)).toString('base64'))
    const from = (address: string) => ({ client: { address } })
    let last: unknown
    for (let i = 0; i < 61; i += 1) last = (await verdictOf(bank, garbage(), from('192.0.2.9')))['reason']
    expect(last).toBe('TOO_MANY_FAILURES')
    expect(await verdictOf(bank, genuine, from('192.0.2.9'))).toEqual({
      isValid: false,
      reason: 'TOO_MANY_FAILURES',
      covered: 'BODY',
    })
    expect(await verdictOf(bank, genuine, from('192.0.2.10'))).toMatchObject({ isValid: true })
  })
})

test('the body of a request is limited as online, and 384 KiB of JSON hold it', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const long = phone.prepareSigned({ ...at, body: Buffer.alloc(128 * 1024, 'x') })
  expect(await verdictOf(bank, long, { query: 'q'.repeat(16 * 1024) })).toMatchObject({ isValid: true, covered: 'BODY' })
  expect(toDoor(long)).toMatchObject({ resourceId: RESOURCE })
})
