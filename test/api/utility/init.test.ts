// GET /app/init and /app/init/public-key: order of checks, what is signed, what is published (utility §1, §2, §3, §6).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { createCertificate } from '../../helpers/certificates.ts'
import { member } from '../../../phone/http.ts'
import { random, unb64 } from '../../../phone/v3/crypto.ts'
import { get, getInit, isGenuine, newChallenge, type UtilityReply } from '../../../phone/utility.ts'
import { expectOk } from '../../helpers/world.ts'

const DAY = 86_400_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

let server: TestServer
let bank: Bank
let publicKey: string
beforeAll(async () => {
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  const created = expectOk(await bank.call('POST', '/admin/apps', { name: 'app', displayName: 'The App' }))
  publicKey = String(member(created.json, 'publicKey'))
})
afterAll(() => server.close())

const now = (): number => server.context.platform.now()
const fingerprintOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
const pin = async (app: string, domain: string, expires: number, fingerprint = fingerprintOf(random(32))): Promise<string> => {
  const body = { domain, fingerprint, expires }
  expectOk(await bank.call('POST', `/admin/apps/${app}/certificates/fingerprint`, body))
  return fingerprint
}
const createApp = async (name: string): Promise<string> =>
  String(member(expectOk(await bank.call('POST', '/admin/apps', { name })).json, 'publicKey'))

function expectRefusal(reply: UtilityReply, status: number, code: string): void {
  expect({ status: reply.status, code: member(reply.json, 'code') }, reply.text).toEqual({ status, code })
  expect(Object.keys(reply.json as object)).toEqual(['id', 'code', 'message'])
  expect(member(reply.json, 'id')).toMatch(UUID)
  expect(String(member(reply.json, 'message')).length).toBeGreaterThan(0)
  expect(reply.headers['content-type']).toBe('application/json')
  expect(reply.headers['cache-control']).toBe('no-store')
}

describe('GET /app/init', () => {
  test('answers with exactly the documented members and headers, signed', async () => {
    await createApp('shape')
    const later = Math.floor(now() / 1000) + 1000
    const fingerprint = await pin('shape', 'api.bank.example', later)
    const challenge = newChallenge()
    const before = Math.floor(now() / 1000)
    const reply = await getInit(server.url, 'shape', { challenge })
    const timestamp = Number(member(reply.json, 'timestamp'))
    expect(reply.text).toBe(
      JSON.stringify({ timestamp, fingerprints: [{ name: 'api.bank.example', fingerprint, expires: later }] }),
    )
    expect(timestamp).toBeGreaterThanOrEqual(before)
    expect(timestamp).toBeLessThanOrEqual(before + 10)
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe('application/json')
    expect(reply.headers['cache-control']).toBe('no-store')
    const key = String(member((await get(server.url, '/app/init/public-key?appName=shape')).json, 'publicKey'))
    expect(isGenuine(key, challenge, reply)).toBe(true)
  })

  test('signs an empty list', async () => {
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'app', { challenge })
    expect(member(reply.json, 'fingerprints')).toEqual([])
    expect(isGenuine(publicKey, challenge, reply)).toBe(true)
  })

  test('a changed byte, another challenge, another key or a missing signature is noticed', async () => {
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'app', { challenge })
    for (let i = 0; i < reply.body.length; i++) {
      const body = Buffer.from(reply.body)
      body[i] = (body[i] ?? 0) ^ 1
      expect(isGenuine(publicKey, challenge, { ...reply, body })).toBe(false)
    }
    expect(isGenuine(publicKey, newChallenge(), reply)).toBe(false)
    expect(isGenuine(publicKey, challenge, { ...reply, headers: {} })).toBe(false)
    expect(isGenuine(await createApp('another'), challenge, reply)).toBe(false)
    const master = String(
      member((await bank.call('GET', '/admin/application?id=app')).json, 'responseObject', 'masterServerPublicKey'),
    )
    expect(isGenuine(master, challenge, reply)).toBe(false)
  })

  test('the body is sent as it was signed, whatever coding the client would take', async () => {
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'app', { challenge, headers: { 'Accept-Encoding': 'gzip, deflate, br' } })
    expect(reply.headers['content-encoding']).toBeUndefined()
    expect(reply.headers['content-length']).toBe(String(reply.body.length))
    expect(isGenuine(publicKey, challenge, reply)).toBe(true)
  })

  test('entries are sorted by domain and expiry, several for one domain, 32 bytes each, times in seconds', async () => {
    const key = await createApp('sorted')
    const start = Math.floor(now() / 1000)
    await pin('sorted', 'www.bank.example', start + 900)
    await pin('sorted', 'api.bank.example', start + 2000)
    await pin('sorted', 'api.bank.example', start + 1000)
    await pin('sorted', 'BÜCHER.example', start + 500)
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'sorted', { challenge })
    expect(isGenuine(key, challenge, reply)).toBe(true)
    const entries = member(reply.json, 'fingerprints') as { name: string; fingerprint: string; expires: number }[]
    expect(entries.map(({ name, expires }) => [name, expires - start])).toEqual([
      ['BÜCHER.example', 500],
      ['api.bank.example', 1000],
      ['api.bank.example', 2000],
      ['www.bank.example', 900],
    ])
    for (const { fingerprint } of entries) {
      expect(fingerprint).toHaveLength(44)
      expect(unb64(fingerprint)).toHaveLength(32)
    }
  })

  test('the name of an application may be any text', async () => {
    const name = 'Ähre/1?x=y&z#f 📱+'
    const created = expectOk(await bank.call('POST', '/admin/apps', { name }))
    const challenge = newChallenge()
    const reply = await getInit(server.url, name, { challenge })
    expect(isGenuine(String(member(created.json, 'publicKey')), challenge, reply)).toBe(true)
  })

  test.each([15, 1025])('refuses a challenge of %i characters, 16, 24 and 1024 are good', async (length) => {
    expectRefusal(await getInit(server.url, 'app', { challenge: 'x'.repeat(length) }), 403, 'INSUFFICIENT_CHALLENGE')
    for (const good of [16, 24, 1024]) {
      const challenge = `"${'~ '.repeat(good / 2 - 1)}"`
      const reply = await getInit(server.url, 'app', { challenge })
      expect(reply.status).toBe(200)
      expect(isGenuine(publicKey, challenge, reply)).toBe(true)
    }
  })

  test('white space around the challenge belongs to the header, not to the challenge', async () => {
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'app', { challenge: `  ${challenge} \t` })
    expect(isGenuine(publicKey, challenge, reply)).toBe(true)
  })

  test.each<[string, string[]]>([
    ['missing', []],
    ['empty', ['']],
    ['blank', [' '.repeat(20)]],
    ['with a tabulator', ['0123456789\tabcdef']],
    ['beyond ASCII', ['0123456789abcdeé']],
    ['with the mark that ends it in the signed text', ['0123456789&abcdef']],
  ])('refuses a challenge that is %s, and says nothing of the application', async (_, challenge) => {
    for (const query of [
      '?appName=app',
      '?appName=nobody',
      '',
      '?appName=a&appName=b',
      '?appName=%ff',
      '?appName=app&platform=x',
    ]) {
      const reply = await get(server.url, `/app/init${query}`, { 'X-Cert-Pinning-Challenge': challenge })
      expectRefusal(reply, 403, 'INSUFFICIENT_CHALLENGE')
      expect(reply.headers['x-cert-pinning-signature']).toBeUndefined()
    }
  })

  test('gives no signature that is also one over the challenge of an app and a body that somebody made up', async () => {
    const challenge = newChallenge()
    // A lenient reader of JSON takes what stands behind it for a comment.
    const madeUp = `{"timestamp":1767225600,"fingerprints":[{"name":"api.bank.example","fingerprint":"AA==","expires":4102444800}]}//`
    const reply = await getInit(server.url, 'app', { challenge: `${challenge}&${madeUp}` })
    const body = Buffer.concat([Buffer.from(`${madeUp}&`), reply.body])
    expect(isGenuine(publicKey, challenge, { ...reply, body })).toBe(false)
  })

  test('refuses several challenges', async () => {
    const challenges = [newChallenge(), newChallenge()]
    expectRefusal(
      await get(server.url, '/app/init?appName=app', { 'X-Cert-Pinning-Challenge': challenges }),
      400,
      'ERROR_REQUEST',
    )
  })

  test('leaves expired certificates out, which administrators still see', async () => {
    await createApp('expiring')
    await pin('expiring', 'api.bank.example', Math.floor(now() / 1000) + 20 * 86_400)
    const lasting = await pin('expiring', 'api.bank.example', Math.floor(now() / 1000) + 400 * 86_400)
    server.clock.advance(30 * DAY)
    const reply = await getInit(server.url, 'expiring')
    expect(member(reply.json, 'fingerprints')).toEqual([expect.objectContaining({ fingerprint: lasting })])
    const detail = expectOk(await bank.call('GET', '/admin/apps/expiring'))
    const [domain] = member(detail.json, 'domains') as { certificates: { isExpired: boolean }[] }[]
    expect(domain?.certificates.map(({ isExpired }) => isExpired)).toEqual([true, false])
  })

  test('a change is seen at once, one by another process within two seconds', async () => {
    await createApp('changing')
    const countEntries = async () => (member((await getInit(server.url, 'changing')).json, 'fingerprints') as []).length
    expect(await countEntries()).toBe(0)
    await pin('changing', 'api.bank.example', Math.floor(now() / 1000) + 1000)
    expect(await countEntries()).toBe(1)
    await sql`delete from pinned_certificate where application_id = 'changing'`.execute(server.context.db)
    server.clock.advance(2_000)
    expect(await countEntries()).toBe(0)
  })

  test('an application of an earlier release gets one key, whoever asks first', async () => {
    await createApp('early')
    await sql`delete from pinning_key_pair where application_id = 'early'`.execute(server.context.db)
    server.clock.advance(2_000)
    const replies = await Promise.all(
      Array.from({ length: 4 }, async () => {
        // Every reader is a process of its own: nothing is remembered.
        server.context.pinning.forget()
        return get(server.url, '/app/init/public-key?appName=early')
      }),
    )
    const keys = new Set(replies.map(({ json }) => member(json, 'publicKey')))
    expect(keys.size).toBe(1)
    server.context.pinning.forget()
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'early', { challenge })
    expect(isGenuine(String([...keys][0]), challenge, reply)).toBe(true)
  })
})

describe('errors', () => {
  const QUERIES = [
    '',
    '?appName=',
    '?appName=%20',
    '?appName',
    '?appname=app',
    '?appName=app&appName=app',
    '?appName[]=app',
    '?appName=%00',
    '?appName=a%0Ab',
    `?appName=${'x'.repeat(256)}`,
    '?appName=%ff',
    '?appName=%',
    '?appName=app&x=%E0%A4%A',
  ]

  test.each(QUERIES)('the query %j is refused by both endpoints, unsigned', async (query) => {
    for (const path of ['/app/init', '/app/init/public-key']) {
      const reply = await get(server.url, path + query, { 'X-Cert-Pinning-Challenge': newChallenge() })
      expectRefusal(reply, 400, 'ERROR_REQUEST')
      expect(reply.headers['x-cert-pinning-signature']).toBeUndefined()
    }
  })

  test.each(['nobody', 'APP', 'app ', 'app%ED%95%9C', '__proto__', 'constructor'])(
    'nobody knows the application %j',
    async (name) => {
      for (const path of ['/app/init', '/app/init/public-key']) {
        const reply = await get(server.url, `${path}?appName=${name.replaceAll(' ', '%20')}`, {
          'X-Cert-Pinning-Challenge': newChallenge(),
        })
        expectRefusal(reply, 404, 'PUBLIC_KEY_NOT_FOUND')
      }
    },
  )

  test('each has an id of its own, which stands in the log', async () => {
    const ids = new Set<string>()
    for (const query of ['?appName=nobody', '?appName=nobody', '']) {
      const reply = await getInitRaw(query)
      ids.add(String(member(reply.json, 'id')))
    }
    expect(ids.size).toBe(3)
    const lines = server.log().split('\n')
    for (const id of ids) {
      const line = lines.filter((text) => text.includes(`"errorId":"${id}"`))
      expect(line).toHaveLength(1)
      expect(JSON.parse(String(line[0]))).toMatchObject({ errorId: id, msg: 'mobile utility request refused' })
    }
  })

  test('have 60 lines of one source in a minute', async () => {
    const countLines = () => server.log().split('mobile utility request refused').length - 1
    server.clock.advance(120_000)
    const before = countLines()
    // All at once: one after the other, they would take more than the minute on a busy machine.
    const hundred = Array.from({ length: 100 }, (_, i) => i)
    const refused = await Promise.all(hundred.map((i) => getInitRaw(`?appName=nobody-${i}`)))
    expect(refused.map(({ status }) => status)).toEqual(hundred.map(() => 404))
    expect(countLines() - before).toBe(60)
    server.clock.advance(60_000)
    await getInitRaw('/elsewhere')
    expect(countLines() - before).toBe(61)
    // So has what is refused before it has a route.
    const unreadable = await Promise.all(hundred.map(() => get(server.url, '/app/%')))
    expect(unreadable.map(({ status }) => status)).toEqual(hundred.map(() => 400))
    expect(countLines() - before).toBe(120)
  })

  test('are signed once challenge and application are known', async () => {
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'app', { challenge, more: '&platform=WINDOWS' })
    expectRefusal(reply, 400, 'ERROR_REQUEST')
    expect(isGenuine(publicKey, challenge, reply)).toBe(true)
    expect(isGenuine(publicKey, newChallenge(), reply)).toBe(false)
  })

  test('an unknown path or method below /app has this form too', async () => {
    const unknown = [
      ['GET', '/app'],
      ['GET', '/app/'],
      ['GET', '/app/init/'],
      ['GET', '/app/nope'],
      ['POST', '/app/init?appName=app'],
      ['PUT', '/app/init/public-key?appName=app'],
      ['DELETE', '/app/init'],
    ] as const
    for (const [method, path] of unknown) {
      expectRefusal(await get(server.url, path, { 'X-Cert-Pinning-Challenge': newChallenge() }, method), 404, 'ERROR_NOT_FOUND')
    }
  })

  test.each(['/app/%', '/app/init%ff'])('a path that does not decode, %s, has this form too', async (path) => {
    expectRefusal(await get(server.url, path), 400, 'ERROR_REQUEST')
  })

  test('a failure of our own is a 500 without internals, with its id in the log', async () => {
    const { db, pinning } = server.context
    await sql`alter table pinned_certificate rename to pinned_certificate_away`.execute(db)
    pinning.forget()
    let reply: UtilityReply
    try {
      reply = await getInit(server.url, 'app')
    } finally {
      await sql`alter table pinned_certificate_away rename to pinned_certificate`.execute(db)
    }
    expectRefusal(reply, 500, 'ERROR_GENERIC')
    expect(reply.text).not.toContain('pinned_certificate')
    expect(server.log()).toContain(String(member(reply.json, 'id')))
    // The failure is not remembered.
    expect((await getInit(server.url, 'app')).status).toBe(200)
  })

  const getInitRaw = (query: string) => get(server.url, `/app/init${query}`, { 'X-Cert-Pinning-Challenge': newChallenge() })
})

describe('GET /app/init/public-key', () => {
  test('gives the uncompressed point, for a few minutes', async () => {
    const reply = await get(server.url, '/app/init/public-key?appName=app')
    expect(reply.text).toBe(JSON.stringify({ publicKey }))
    expect(reply.status).toBe(200)
    expect(reply.headers['cache-control']).toBe('public, max-age=300')
    const point = unb64(publicKey)
    expect([point.length, point[0]]).toEqual([65, 4])
    const detail = expectOk(await bank.call('GET', '/admin/apps/app'))
    expect(member(detail.json, 'publicKey')).toBe(publicKey)
  })

  test('an application of /admin/application has a key of its own too, which no table shows', async () => {
    expectOk(await bank.createApplication('contract'))
    const { rows } = await sql<{ privateKey: Buffer; publicKey: Buffer }>`
      select private_key as "privateKey", public_key as "publicKey" from pinning_key_pair where application_id = 'contract'`.execute(
      server.context.db,
    )
    const shown = String(member((await get(server.url, '/app/init/public-key?appName=contract')).json, 'publicKey'))
    expect(rows.map((row) => row.publicKey.toString('base64'))).toEqual([shown])
    // PKCS#8 starts with a SEQUENCE and holds the public point; a sealed record does neither.
    expect(rows[0]?.privateKey[0]).not.toBe(0x30)
    expect(rows[0]?.privateKey.includes(Buffer.from(shown, 'base64'))).toBe(false)
    const master = member(
      (await bank.call('GET', '/admin/application?id=contract')).json,
      'responseObject',
      'masterServerPublicKey',
    )
    expect(shown).not.toBe(master)
  })
})

describe('the version check', () => {
  const versions = '/admin/apps/versioned/versions'
  const IOS = '&osVersion=17.4.1&platform=IOS'
  const ask = async (more: string, language?: string) => {
    const headers: Record<string, string> = language === undefined ? {} : { 'Accept-Language': language }
    const reply = await getInit(server.url, 'versioned', { more, headers })
    expect(reply.status, reply.text).toBe(200)
    return member(reply.json, 'verifyVersionResult')
  }

  beforeAll(async () => {
    await createApp('versioned')
    const rules = [
      { platform: 'IOS', suggestedVersion: '3.10.0', requiredVersion: '3.2.0', messageKey: 'update' },
      { platform: 'IOS', majorOsVersion: 15, requiredVersion: '4.0.0', messageKey: 'silent' },
      { platform: 'ANDROID', majorOsVersion: 34, suggestedVersion: '2.0.0-rc.1' },
    ]
    for (const rule of rules) expectOk(await bank.call('POST', versions, rule))
    const texts = { en: 'Please update', cs: 'Aktualizujte prosím', de: 'Bitte aktualisieren Sie', tl: 'Mag-update po' }
    for (const [language, text] of Object.entries(texts)) {
      expectOk(await bank.call('POST', '/admin/texts', { messageKey: 'update', language, text }))
    }
  })

  test.each([
    ['3.1.99', 'FORCED'],
    ['3.2.0', 'SUGGESTED'],
    ['3.9.9', 'SUGGESTED'],
    ['3.10.0', 'NOT_REQUIRED'],
    ['3.10.0-beta', 'NOT_REQUIRED'],
    ['10.0.0', 'NOT_REQUIRED'],
    ['999999999.0.0', 'NOT_REQUIRED'],
  ])('compares %s by numbers: %s', async (version, update) => {
    expect(await ask(`&appVersion=${version}${IOS}`)).toEqual({
      update,
      ...(update !== 'NOT_REQUIRED' && { message: 'Please update' }),
    })
  })

  test('the rule for the version of the operating system goes before the one for all others', async () => {
    expect(await ask('&appVersion=3.99.0&osVersion=15.0&platform=IOS')).toEqual({ update: 'FORCED' })
    expect(await ask('&appVersion=3.99.0&osVersion=16&platform=IOS')).toEqual({ update: 'NOT_REQUIRED' })
    expect(await ask('&appVersion=1.0.0&osVersion=34&platform=ANDROID')).toEqual({ update: 'SUGGESTED' })
    expect(await ask('&appVersion=1.0.0&osVersion=33&platform=ANDROID')).toEqual({ update: 'NOT_REQUIRED' })
  })

  test.each([
    ['cs-CZ,cs;q=0.9,en;q=0.8', 'Aktualizujte prosím'],
    ['fr, de;q=0.4, cs;q=0.5', 'Aktualizujte prosím'],
    ['de;q=0, cs', 'Aktualizujte prosím'],
    ['DE', 'Bitte aktualisieren Sie'],
    ['fil-PH,fil;q=0.9,en;q=0.8', 'Mag-update po'],
    ['fr', 'Please update'],
    ['*', 'Please update'],
    ['', 'Please update'],
    [';;,,q=,-,de;q=2,cs;x,1', 'Please update'],
  ])('for Accept-Language %j the message is %j', async (language, message) => {
    expect(await ask(`&appVersion=1.0.0${IOS}`, language)).toEqual({ update: 'FORCED', message })
  })

  test('a text beyond ASCII is signed as the bytes that are sent', async () => {
    const challenge = newChallenge()
    const reply = await getInit(server.url, 'versioned', {
      challenge,
      more: `&appVersion=1.0.0${IOS}`,
      headers: { 'Accept-Language': 'cs' },
    })
    const key = String(member((await get(server.url, '/app/init/public-key?appName=versioned')).json, 'publicKey'))
    expect(reply.body.includes(Buffer.from('prosím'))).toBe(true)
    expect(isGenuine(key, challenge, reply)).toBe(true)
  })

  test.each(['', '&appVersion=1.0.0', '&appVersion=1.0.0&osVersion=17', '&osVersion=17&platform=IOS'])(
    'is left out when the app sends only %j',
    async (more) => {
      expect(await ask(more)).toBeUndefined()
    },
  )

  test.each([
    `&appVersion=1.0${IOS}`,
    `&appVersion=${IOS}`,
    `&appVersion=v1.0.0${IOS}`,
    `&appVersion=1.0.0&appVersion=2.0.0${IOS}`,
    `&appVersion=1234567890.0.0${IOS}`,
    '&appVersion=1.0.0&osVersion=x&platform=IOS',
    '&appVersion=1.0.0&osVersion=17&platform=ios',
    '&platform=',
  ])('refuses %j', async (more) => {
    expectRefusal(await getInit(server.url, 'versioned', { more }), 400, 'ERROR_REQUEST')
  })
})

test('a certificate from a file is published with the end it has', async () => {
  await createApp('files')
  const certificate = createCertificate(['DNS:api.bank.example'], { days: 365 })
  expectOk(await bank.call('POST', '/admin/apps/files/certificates/pem', { domain: 'api.bank.example', pem: certificate.pem }))
  expect(member((await getInit(server.url, 'files')).json, 'fingerprints')).toEqual([
    { name: 'api.bank.example', fingerprint: certificate.fingerprint, expires: certificate.expires },
  ])
})
