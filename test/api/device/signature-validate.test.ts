// GET, POST, PUT, DELETE /pa/v3/signature/validate: what a signature covers and accepts (v3 §10).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectRefused, expectUntouched, readCounters, STATE } from '../../helpers/expectations.ts'
import { b64, ctrDataHash, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { flipBit, withBody, withPair } from '../../../phone/header.ts'
import type { PhoneFactors } from '../../../phone/v3/state.ts'
import { keysOf } from '../../../phone/v3/state.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startServerWithWorld } from '../../helpers/world.ts'

const FACTORS = ['possession', 'possession_knowledge', 'possession_biometry'] as const satisfies PhoneFactors[]
const METHODS = ['GET', 'POST', 'PUT', 'DELETE']

let world: World
beforeAll(async () => {
  // As long as bodies may be at most.
  ;({ world } = await startServerWithWorld({ env: { PAWL_SIGNED_BODY_BYTES_MAX: '262144' } }))
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('/pa/v3/signature/validate in %s', (version) => {
  test.each(METHODS)('accepts %s with every factor combination, with and without query and body', async (method) => {
    const { phone } = await world.activePhone(version)
    const body = method === 'GET' ? {} : { body: '{"amount":"100","note":"příliš"}' }
    for (const factors of FACTORS) {
      for (const request of [{}, { query: 'who=John_Tramonta&when=now' }, body, { query: 'b=2&a=1', ...body }]) {
        const reply = expectOk(await phone.send(phone.prepareValidation({ method, factors, ...request })))
        expect(reply.json).toEqual({ status: 'OK' })
      }
    }
    const status = await phone.readStatus({ withChallenge: true })
    expect(status).toMatchObject({ state: STATE.ACTIVE, ctrByte: 12, failedAttempts: 0 })
    expect(b64(status.ctrDataHash)).toBe(b64(ctrDataHash(keysOf(phone.state), phone.state.ctrData)))
  })

  test.each([
    'b=2&a=1&a=0',
    'a=&b=1',
    '',
    'flag&a=1',
    'flag',
    'text=%C5%BElu%C5%A5%20k%C5%AF%C5%88&x=a%26b%3Dc',
    'plus=a+b&literal=a%2Bb',
    'percent=%2525',
    'star=*~-._%21%27%28%29',
    'A=1&a=2&_=3&Z=4',
    'equals=a=b=c',
    'emoji=%F0%9F%93%B1&%EF%BD%9E=x',
    '&&a=1&&',
    'json=%7B%22k%22%3A1%7D',
  ])('covers the query %j of a GET', async (query) => {
    const { phone } = await world.activePhone(version)
    expectOk(await phone.send(phone.prepareValidation({ method: 'GET', query })))
  })

  test.each<[string, Uint8Array | string]>([
    ['zero bytes', new Uint8Array([0, 1, 2, 0, 0])],
    ['bytes that are not UTF-8', new Uint8Array([0xff, 0xfe, 0x80, 0xc0])],
    ['a byte order mark', '\ufeff{}'],
    ['half of a JSON object', '{"a":'],
    ['duplicate members', '{"a":1,"a":2}'],
    ['__proto__', '{"__proto__":{"x":1}}'],
    ['100 kB', random(100_000)],
    ['exactly 256 KiB', random(262_144)],
  ])('never parses a body: %s', async (_, body) => {
    const { phone } = await world.activePhone(version)
    expectOk(await phone.send(phone.prepareValidation({ body })))
  })

  test.each([
    undefined,
    'application/octet-stream',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'x',
  ])('does not look at the content type %j', async (contentType) => {
    const { phone } = await world.activePhone(version)
    for (const method of ['POST', 'PUT', 'DELETE']) {
      expectOk(await phone.send(phone.prepareValidation({ method, body: 'a=1', contentType })))
    }
  })

  test('takes factor names in any case, pairs in any order and unknown pairs', async () => {
    const { phone } = await world.activePhone(version)
    const upper = withPair(phone.prepareValidation(), 'pa_signature_type', 'POSSESSION_KNOWLEDGE')
    expectOk(await phone.send(upper))
    const request = phone.prepareValidation()
    const value = request.headers['X-PowerAuth-Authorization'] ?? ''
    const pairs = value.replace('PowerAuth ', '').split(', ').reverse()
    const shuffled = `  PowerAuth pa_unknown="x",${pairs.join(',')}  `
    expectOk(await phone.send({ ...request, headers: { ...request.headers, 'X-PowerAuth-Authorization': shuffled } }))
  })

  test('takes the last value of a repeated pair', async () => {
    const { phone } = await world.activePhone(version)
    const request = phone.prepareValidation()
    const value = request.headers['X-PowerAuth-Authorization'] ?? ''
    const repeated = value.replace('PowerAuth ', 'PowerAuth pa_signature="AAAAAAAAAAAAAAAAAAAAAA==", ')
    expectOk(await phone.send({ ...request, headers: { ...request.headers, 'X-PowerAuth-Authorization': repeated } }))
  })
})

describe.each(PHONE_VERSIONS)('everything in the base string is bound in %s', (version) => {
  test('another factor combination fails, and is counted as a guess', async () => {
    const { phone } = await world.activePhone(version)
    const request = withPair(phone.prepareValidation(), 'pa_signature_type', 'possession_biometry')
    expectRefused(await phone.send(request), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 })
  })

  test('another nonce, body, query, method, resource or path parameter fails, and is no guess', async () => {
    const { phone } = await world.activePhone(version)
    const get = phone.prepareValidation({ method: 'GET', query: 'amount=100' })
    const attempts = [
      withPair(phone.prepareValidation(), 'pa_nonce', b64(random(16))),
      withBody(phone.prepareValidation({ body: '{"amount":"100"}' }), '{"amount":"900"}'),
      { ...get, path: get.path.replace('100', '900') },
      { ...phone.prepareValidation({ body: 'x' }), method: 'PUT' },
      { ...phone.prepareSigned({ path: '/pa/v3/signature/validate', resourceId: '/pa/token/create' }) },
    ]
    await expectUntouched(phone, async () => {
      for (const attempt of attempts) expectRefused(await phone.send(attempt), 'signature')
    })
  })

  test('a tampered signature does not burn the genuine one', async () => {
    const { phone } = await world.activePhone(version)
    const request = phone.prepareValidation({ body: 'x' })
    const signature = /pa_signature="([^"]*)"/.exec(request.headers['X-PowerAuth-Authorization'] ?? '')?.[1] ?? ''
    const turned = version === '3.0' ? signature.replace(/\d/, (digit) => String((Number(digit) + 1) % 10)) : flipBit(signature)
    expectRefused(await phone.send(withPair(request, 'pa_signature', turned)), 'signature')
    expectOk(await phone.send(request))
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
  })

  test('a signature of another phone fails, and counts for neither', async () => {
    const mine = await world.activePhone(version)
    const other = await world.activePhone(version)
    const request = withPair(mine.phone.prepareValidation(), 'pa_activation_id', other.phone.state.activationId)
    await expectUntouched(other.phone, async () => {
      await expectUntouched(mine.phone, async () => {
        expectRefused(await mine.phone.send(request), 'signature')
      })
    })
  })

  test('a signature in the form of another version fails, and is no guess', async () => {
    const { phone } = await world.activePhone(version)
    const declared = version === '3.0' ? '3.1' : '3.0'
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withPair(phone.prepareValidation(), 'pa_version', declared)), 'signature')
    })
  })
})

describe('/pa/v3/signature/validate', () => {
  test('lets one activation speak newer versions as time goes by, which share the counter', async () => {
    const { phone } = await world.activePhone('3.0')
    for (const version of ['3.0', '3.0', '3.1', '3.1', '3.2', '3.2', '3.3', '3.3'] as const) {
      expectOk(await phone.send(phone.speaking({ version }).prepareValidation()))
    }
    expect((await readCounters(phone)).ctrByte).toBe(8)
  })

  test('keeps the counter byte within a byte', async () => {
    const { phone } = await world.activePhone('3.3')
    for (let i = 0; i < 14; i++) {
      phone.skip(19)
      expectOk(await phone.send(phone.prepareValidation()))
    }
    expect((await readCounters(phone)).ctrByte).toBe((14 * 20) % 256)
  })
})
