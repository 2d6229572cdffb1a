// Administration of pinned certificates and version rules, fetching them over TLS, and the watcher (utility §4).
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runCertificateWatch } from '../../../src/domain/pinning/watch.ts'
import { parsePem, toPem } from '../../../src/lib/pem.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { createCertificate, startTlsServer, type TestCertificate, type TlsServer } from '../../helpers/certificates.ts'
import { expectError } from '../../helpers/expectations.ts'
import { type HttpReply, member } from '../../../phone/http.ts'
import { getInit } from '../../../phone/utility.ts'
import { expectOk } from '../../helpers/world.ts'
import { PATIENCE_MS } from '../../helpers/patience.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)
const DAY_SECONDS = 86_400

/** The certificate with a notAfter that is not a time. */
function withoutEnd(pem: string): Uint8Array {
  const der = Buffer.from(parsePem(pem) ?? [])
  const utcTime = Buffer.from([0x17, 0x0d])
  der.write('XXXXXXXXXXXXZ', der.indexOf(utcTime, der.indexOf(utcTime) + 2) + 2, 'latin1')
  return der
}

let server: TestServer
let bank: Bank
let tls: TlsServer
let local: TestCertificate
beforeAll(async () => {
  local = createCertificate(['DNS:localhost'], { days: 100, commonName: 'localhost' })
  tls = await startTlsServer(local)
  const env = { PAWL_CERTIFICATE_FETCH_PRIVATE: 'true', PAWL_CERTIFICATE_FETCH_PORTS: `443, ${tls.port}` }
  server = await startTestServer({ env })
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
})
afterAll(async () => {
  await server.close()
  await tls.close()
})

// Every test has an application of its own.
let app = ''
let apps = 0
beforeEach(async () => {
  app = `app-${++apps}`
  expectOk(await bank.call('POST', '/admin/apps', { name: app }))
})

interface Live {
  checkedAt: number
  fingerprint?: string
  daysToExpiry?: number
  isChainTrusted?: boolean
  isPinned: boolean
  problem?: string
}
interface Domain {
  name: string
  port: number
  certificates: { fingerprint: string; expires: number; source: string; pem?: string }[]
  live?: Live
}

const nowSeconds = (): number => Math.floor(server.context.platform.now() / 1000)
const post = (kind: string, body: unknown): Promise<HttpReply> =>
  bank.call('POST', `/admin/apps/${app}/certificates/${kind}`, body)
const readDomains = async (): Promise<Domain[]> =>
  member(expectOk(await bank.call('GET', `/admin/apps/${app}`)).json, 'domains') as Domain[]
const published = async (): Promise<unknown> => member((await getInit(server.url, app)).json, 'fingerprints')
const FINGERPRINT = Buffer.alloc(32, 0xfb).toString('base64')

function expectRefused(reply: HttpReply, fieldName: string): void {
  expectError(reply, 400, 'ERROR_ADMIN')
  expect(member(reply.json, 'responseObject', 'violations')).toEqual([{ fieldName, hint: expect.any(String) }])
}

describe('applications', () => {
  test('are those of the cloud API, with a name for people', async () => {
    const created = expectOk(await bank.call('POST', '/admin/apps', { name: 'named', displayName: 'Můj účet' }))
    expect(created.json).toEqual({ name: 'named', displayName: 'Můj účet', publicKey: expect.any(String), domains: [] })
    expect((await bank.call('GET', '/admin/apps/named')).json).toEqual(created.json)
    expectOk(await bank.call('GET', '/admin/application?id=named'))
    expectOk(await bank.createApplication('unnamed'))
    const list = member(expectOk(await bank.call('GET', '/admin/apps')).json, 'applications')
    expect(list).toEqual(
      expect.arrayContaining([
        { name: 'named', displayName: 'Můj účet' },
        { name: 'unnamed', displayName: 'unnamed' },
      ]),
    )
  })

  test('are not created twice, and nobody knows others', async () => {
    expectError(await bank.call('POST', '/admin/apps', { name: app }), 400, 'ERROR_ADMIN')
    expectError(await bank.call('GET', '/admin/apps/nobody'), 400, 'ERROR_ADMIN')
    for (const kind of ['pem', 'auto', 'fingerprint']) {
      const body = { domain: 'localhost', port: tls.port, pem: local.pem, fingerprint: FINGERPRINT, expires: nowSeconds() + 9 }
      expectError(await bank.call('POST', `/admin/apps/nobody/certificates/${kind}`, body), 400, 'ERROR_ADMIN')
    }
  })

  test('have names without control characters, not blank', async () => {
    for (const name of [undefined, null, 7, '', ' ', 'x'.repeat(256), 'a\u0000', 'a\nb']) {
      expectError(await bank.call('POST', '/admin/apps', { name }), 400, 'ERROR_REQUEST')
      if (name !== undefined)
        expectError(await bank.call('POST', '/admin/apps', { name: 'x', displayName: name }), 400, 'ERROR_REQUEST')
    }
    expectError(await bank.call('GET', '/admin/apps/x'), 400, 'ERROR_ADMIN')
  })

  test('two at once with one name leave one application with one key', async () => {
    const replies = await Promise.all([1, 2].map(() => bank.call('POST', '/admin/apps', { name: 'twice' })))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400])
    const [created] = replies.filter(({ status }) => status === 200)
    expect((await bank.call('GET', '/admin/apps/twice')).json).toEqual(created?.json)
  })

  test('are for administrators alone', async () => {
    const user = { username: 'integrator', role: 'integration', application: app }
    const { json } = expectOk(await bank.call('POST', '/admin/users', user))
    const other = bank.as(`integrator:${String(member(json, 'password'))}`)
    for (const path of ['/admin/apps', `/admin/apps/${app}`, `/admin/apps/${app}/versions`, '/admin/texts']) {
      expectError(await other.call('GET', path), 403, 'HTTP_403')
      expectError(await bank.as(undefined).call('GET', path), 401, 'HTTP_401')
    }
    expectError(await other.call('DELETE', '/admin/certificates/expired'), 403, 'HTTP_403')
    expectError(await other.call('POST', `/admin/apps/${app}/certificates/pem`, {}), 403, 'HTTP_403')
  })
})

describe('a certificate in PEM', () => {
  test('is pinned for a name it has, by its first certificate, and shown as it is', async () => {
    const leaf = createCertificate(['DNS:api.bank.example', 'DNS:*.wild.example'])
    const chain = `Bag Attributes\n${leaf.privateKeyPem}${leaf.pem.replaceAll('\n', '\r\n')}${local.pem}`
    const reply = expectOk(await post('pem', { domain: 'api.bank.example', pem: chain }))
    const entry = {
      fingerprint: leaf.fingerprint,
      expires: leaf.expires,
      isExpired: false,
      source: 'pem',
      created: expect.any(Number),
      pem: leaf.pem,
      warning: 'apps look a pin up by the common name of the certificate, which is "test"',
    }
    expect(reply.json).toEqual({ name: 'api.bank.example', ...entry })
    expectOk(await post('pem', { domain: 'one.wild.example', pem: leaf.pem }))
    expect(await readDomains()).toEqual([
      { name: 'api.bank.example', port: 443, certificates: [entry] },
      { name: 'one.wild.example', port: 443, certificates: [entry] },
    ])
    expect(server.log()).not.toContain(leaf.privateKeyPem.split('\n')[1])
  })

  test('added again is the existing entry', async () => {
    const first = expectOk(await post('pem', { domain: 'localhost', pem: local.pem }))
    server.clock.advance(1_000)
    expect(expectOk(await post('pem', { domain: 'localhost', pem: local.pem })).json).toEqual(first.json)
    const again = { domain: 'localhost', fingerprint: local.fingerprint, expires: nowSeconds() + 9 }
    expect(expectOk(await post('fingerprint', again)).json).toEqual(first.json)
    expect((await readDomains())[0]?.certificates).toHaveLength(1)
  })

  test('for other names is refused unless that is forced', async () => {
    const leaf = createCertificate(['DNS:*.wild.example', 'DNS:p*.part.example', 'IP:192.0.2.1'], {
      commonName: 'common.example',
    })
    const bare = createCertificate([], { commonName: 'common.example' })
    const wrong = [
      ['Common.example', leaf],
      ['other.example', bare],
      ['wild.example', leaf],
      ['a.b.wild.example', leaf],
      ['page.part.example', leaf],
      ['other.example', leaf],
    ] as const
    for (const [domain, { pem }] of wrong) expectRefused(await post('pem', { domain, pem }), 'pem')
    expect(await readDomains()).toEqual([])
    expectOk(await post('pem', { domain: 'other.example', pem: bare.pem, force: true }))
    expect(await published()).toEqual([{ name: 'other.example', fingerprint: bare.fingerprint, expires: bare.expires }])
  })

  test('that has ended is refused, even by force', async () => {
    const leaf = createCertificate(['DNS:localhost'], { days: 1 })
    server.clock.advance(2 * DAY_SECONDS * 1000)
    expectRefused(await post('pem', { domain: 'localhost', pem: leaf.pem, force: true }), 'pem')
  })

  test('must be one', async () => {
    const wrong = [
      'x',
      local.privateKeyPem,
      local.pem.replace('MI', 'MJ'),
      '-----BEGIN CERTIFICATE----------END CERTIFICATE-----',
      toPem(withoutEnd(local.pem)),
    ]
    for (const pem of [...wrong, local.pem.slice(0, -40), local.pem.replaceAll('CERTIFICATE', 'X509 CERTIFICATE')]) {
      expectRefused(await post('pem', { domain: 'localhost', pem }), 'pem')
    }
    for (const pem of [undefined, null, 7, '', [local.pem], `${local.pem}\u0000`, 'x'.repeat(65_537)]) {
      expectError(await post('pem', { domain: 'localhost', pem }), 400, 'ERROR_REQUEST')
    }
    const secret = await post('pem', { domain: 'localhost', pem: local.privateKeyPem.repeat(300) })
    expect(secret.text).not.toContain(local.privateKeyPem.slice(30, 60))
    expectError(await post('pem', { domain: 'localhost', pem: local.pem, force: 'yes' }), 400, 'ERROR_REQUEST')
    expect(await readDomains()).toEqual([])
  })
})

describe('the name of a pin', () => {
  // Both SDKs look a pin up by the common name of the certificate, exactly.
  test.each([
    ['*.bank.example', ['DNS:*.bank.example', 'DNS:bank.example']],
    ['bank.example', ['DNS:api.bank.example']],
    ['API.Bank.Example', ['DNS:api.bank.example']],
    ['Bank of Example, Ltd. = "we"', ['DNS:api.bank.example']],
    [' bank.example ', ['DNS:bank.example']],
    ['žlutá.bank.example', ['DNS:xn--lut-dla6q.bank.example']],
    ['xn--bnk-qla.example', []],
    ['192.0.2.1', ['IP:192.0.2.1']],
    ['bank.example:443', ['DNS:bank.example']],
    ['*', ['DNS:bank.example']],
    ['__proto__', []],
  ])('is the common name of its certificate as it stands there: %s', async (commonName, names) => {
    const leaf = createCertificate(names, { commonName })
    const reply = expectOk(await post('pem', { domain: commonName, pem: leaf.pem }))
    expect(reply.json).toMatchObject({ name: commonName, fingerprint: leaf.fingerprint })
    expect(member(reply.json, 'warning')).toBeUndefined()
    const pin = { name: commonName, fingerprint: leaf.fingerprint, expires: leaf.expires }
    expect(await published()).toEqual([pin])
    const query = `domain=${encodeURIComponent(commonName)}`
    const fingerprint = encodeURIComponent(leaf.fingerprint)
    expectOk(await bank.call('DELETE', `/admin/apps/${app}/certificates?${query}&fingerprint=${fingerprint}`))
    expectOk(await bank.call('DELETE', `/admin/apps/${app}/domains?${query}`))
    expectOk(await post('fingerprint', { domain: commonName, ...pin }))
    expect(await published()).toEqual([pin])
  })

  test.each([
    ['api.bank.example', ['DNS:api.bank.example'], 'bank.example'],
    ['API.bank.example', ['DNS:api.bank.example'], 'api.bank.example'],
    ['one.bank.example', ['DNS:*.bank.example'], '*.bank.example'],
    ['bänk.example', ['DNS:xn--bnk-qla.example'], 'xn--bnk-qla.example'],
  ])('that is another one than the common name is taken with a warning: %s', async (domain, names, commonName) => {
    const { pem, fingerprint } = createCertificate(names, { commonName })
    const warning = `apps look a pin up by the common name of the certificate, which is "${commonName}"`
    expect(expectOk(await post('pem', { domain, pem })).json).toMatchObject({ name: domain, warning })
    expect((await readDomains())[0]).toMatchObject({ name: domain, certificates: [{ fingerprint, warning }] })
  })

  test('is not found where the certificate has no common name, or another one more specific', async () => {
    const nameless = createCertificate(['DNS:api.bank.example'], { subject: '/O=Bank' })
    const warning = 'apps look a pin up by the common name of the certificate, and this one has none'
    expect(expectOk(await post('pem', { domain: 'api.bank.example', pem: nameless.pem })).json).toMatchObject({ warning })
    const empty = createCertificate(['DNS:api.bank.example'], { subject: '/' })
    expect(expectOk(await post('pem', { domain: 'api.bank.example', pem: empty.pem })).json).toMatchObject({ warning })
    const two = createCertificate(['DNS:api.bank.example'], { subject: '/CN=one.example/CN=two.example' })
    expectRefused(await post('pem', { domain: 'one.example', pem: two.pem }), 'pem')
    expect(member(expectOk(await post('pem', { domain: 'two.example', pem: two.pem })).json, 'warning')).toBeUndefined()
  })

  test('is not known of a bare fingerprint, until its certificate comes', async () => {
    const domain = 'Api.bank.example'
    const { pem, fingerprint, expires } = createCertificate(['DNS:api.bank.example'], { commonName: 'api.bank.example' })
    expect(member(expectOk(await post('fingerprint', { domain, fingerprint, expires })).json, 'warning')).toBeUndefined()
    expect(member(expectOk(await post('pem', { domain, pem })).json, 'warning')).toContain('"api.bank.example"')
  })

  test('is told apart by case: another one is another pin', async () => {
    const expires = nowSeconds() + 1000
    for (const domain of ['bank.example', 'Bank.example', '*.bank.example'])
      expectOk(await post('fingerprint', { domain, fingerprint: FINGERPRINT, expires }))
    expect((await readDomains()).map(({ name }) => name)).toEqual(['*.bank.example', 'Bank.example', 'bank.example'])
    expectError(await bank.call('DELETE', `/admin/apps/${app}/domains?domain=BANK.example`), 400, 'ERROR_ADMIN')
    expectOk(await bank.call('DELETE', `/admin/apps/${app}/domains?domain=Bank.example`))
    expect(await published()).toHaveLength(2)
  })

  test('has 1 to 255 characters, none of control', async () => {
    for (const domain of [undefined, null, 7, '', ' ', 'x'.repeat(256), 'a\u0000', 'a\nb', ['a']]) {
      const body = { domain, fingerprint: FINGERPRINT, expires: nowSeconds() + 1000, pem: local.pem }
      for (const kind of ['fingerprint', 'pem', 'auto']) expectError(await post(kind, body), 400, 'ERROR_REQUEST')
    }
    expect(await readDomains()).toEqual([])
  })
})

describe('a domain', () => {
  test.each([
    '192.0.2.1',
    '0x7f.1',
    '[::1]',
    '::1',
    'a b',
    'a..b',
    '.a',
    'a.',
    '-a.example',
    'a-.example',
    '*.example',
    'a/b',
    'a?b',
    'a#b',
    'a:443',
    'u@a',
    'a\\b',
    'a%2eb',
    `${'a'.repeat(64)}.example`,
    `${'a.'.repeat(124)}example`,
    '\u{1F600}\u200d',
  ])('that is to be asked for its certificate is the name of a host, not %s', async (domain) => {
    expectRefused(await post('auto', { domain, port: tls.port, force: true }), 'domain')
    expect(await readDomains()).toEqual([])
  })

  test('goes with all of its certificates', async () => {
    for (const domain of ['a.example', 'b.example']) {
      for (const byte of [1, 2]) {
        const fingerprint = Buffer.alloc(32, byte).toString('base64')
        expectOk(await post('fingerprint', { domain, fingerprint, expires: nowSeconds() + 9_000 }))
      }
    }
    expectOk(await bank.call('DELETE', `/admin/apps/${app}/domains?domain=a.example`))
    expect((await readDomains()).map(({ name }) => name)).toEqual(['b.example'])
    expect(await published()).toHaveLength(2)
    expectError(await bank.call('DELETE', `/admin/apps/${app}/domains?domain=a.example`), 400, 'ERROR_ADMIN')
    expectError(await bank.call('DELETE', `/admin/apps/nobody/domains?domain=b.example`), 400, 'ERROR_ADMIN')
    expectError(await bank.call('DELETE', `/admin/apps/${app}/domains`), 400, 'ERROR_REQUEST')
  })
})

describe('a bare fingerprint', () => {
  test('is taken in Base64 and in hex as OpenSSL prints it', async () => {
    const hex = Buffer.alloc(32, 0xab).toString('hex')
    for (const text of [hex, hex.toUpperCase().replace(/..(?=.)/g, '$&:'), Buffer.from(hex, 'hex').toString('base64')]) {
      expectOk(await post('fingerprint', { domain: 'a.example', fingerprint: text, expires: nowSeconds() + 9 }))
    }
    expect((await readDomains())[0]?.certificates).toEqual([
      expect.objectContaining({ fingerprint: Buffer.from(hex, 'hex').toString('base64'), source: 'fingerprint' }),
    ])
  })

  test('takes the end of its certificate when that comes', async () => {
    expectOk(await post('fingerprint', { domain: 'localhost', fingerprint: local.fingerprint, expires: nowSeconds() + 9 }))
    expectOk(await post('pem', { domain: 'localhost', pem: local.pem }))
    const [domain] = await readDomains()
    expect(domain?.certificates).toEqual([expect.objectContaining({ source: 'pem', expires: local.expires, pem: local.pem })])
  })

  test('must be 32 bytes and end in the future', async () => {
    const expires = nowSeconds() + 1000
    for (const fingerprint of ['x', FINGERPRINT.slice(0, 40), `${FINGERPRINT}AAAA`, 'ab'.repeat(20)]) {
      expectRefused(await post('fingerprint', { domain: 'a.example', fingerprint, expires }), 'fingerprint')
    }
    expectRefused(
      await post('fingerprint', { domain: 'a.example', fingerprint: FINGERPRINT, expires: nowSeconds() - 1 }),
      'expires',
    )
    for (const wrong of [undefined, null, '1', 1.5, -1, 253_402_300_800, 1e300]) {
      expectError(
        await post('fingerprint', { domain: 'a.example', fingerprint: FINGERPRINT, expires: wrong }),
        400,
        'ERROR_REQUEST',
      )
    }
    expect(await readDomains()).toEqual([])
  })

  test('is removed alone, also when its plus signs are not encoded', async () => {
    const expires = nowSeconds() + 1000
    const other = Buffer.alloc(32, 1).toString('base64')
    for (const fingerprint of [FINGERPRINT, other])
      expectOk(await post('fingerprint', { domain: 'a.example', fingerprint, expires }))
    const path = (fingerprint: string, name = app) =>
      `/admin/apps/${name}/certificates?domain=a.example&fingerprint=${fingerprint}`
    expect(FINGERPRINT).toContain('+')
    expectError(await bank.call('DELETE', path(FINGERPRINT, 'nobody')), 400, 'ERROR_ADMIN')
    expectOk(await bank.call('DELETE', path(FINGERPRINT)))
    expect(await published()).toEqual([{ name: 'a.example', fingerprint: other, expires }])
    expectError(await bank.call('DELETE', path(FINGERPRINT)), 400, 'ERROR_ADMIN')
    expectRefused(await bank.call('DELETE', path('x')), 'fingerprint')
    expectOk(await bank.call('DELETE', path(encodeURIComponent(other))))
    // The domain stays: the watcher is to notice that nothing is pinned there.
    expect(await readDomains()).toEqual([{ name: 'a.example', port: 443, certificates: [] }])
  })

  test('two at once are one entry', async () => {
    const body = { domain: 'a.example', fingerprint: FINGERPRINT, expires: nowSeconds() + 1000 }
    for (const reply of await Promise.all([1, 2, 3].map(() => post('fingerprint', body)))) expectOk(reply)
    expect((await readDomains()).map(({ certificates }) => certificates.length)).toEqual([1])
  })

  test('one added while its domain is removed is there or not, and never a failure', async () => {
    const body = { domain: 'a.example', fingerprint: FINGERPRINT, expires: nowSeconds() + 1000 }
    expectOk(await post('fingerprint', body))
    const remove = () => bank.call('DELETE', `/admin/apps/${app}/domains?domain=a.example`)
    const replies = await Promise.all([post('fingerprint', body), remove(), post('fingerprint', body), remove()])
    expect(replies.every(({ status }) => status === 200 || status === 400)).toBe(true)
    const [domain] = await readDomains()
    expect(await published()).toHaveLength(domain?.certificates.length ?? 0)
  })
})

test('expired certificates of all applications are deleted on request', async () => {
  const [soon, later] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map((bytes) => bytes.toString('base64'))
  expectOk(await post('fingerprint', { domain: 'a.example', fingerprint: soon, expires: nowSeconds() + 5 }))
  expectOk(await post('fingerprint', { domain: 'a.example', fingerprint: later, expires: nowSeconds() + 50_000 }))
  server.clock.advance(10_000)
  const reply = expectOk(await bank.call('DELETE', '/admin/certificates/expired'))
  expect(reply.json).toEqual({ status: 'OK', removed: expect.any(Number) })
  expect(member(reply.json, 'removed')).toBeGreaterThan(0)
  expect((await readDomains())[0]?.certificates.map(({ fingerprint }) => fingerprint)).toEqual([later])
  expect(expectOk(await bank.call('DELETE', '/admin/certificates/expired')).json).toEqual({ status: 'OK', removed: 0 })
})

describe('fetching a certificate', () => {
  test('pins what the server shows for the name it was asked for, and says that its chain is not trusted', async () => {
    tls.show(local)
    const reply = expectOk(await post('auto', { domain: 'LOCALHOST', port: tls.port }))
    expect(reply.json).toMatchObject({
      name: 'LOCALHOST',
      warning: 'apps look a pin up by the common name of the certificate, which is "localhost"',
      fingerprint: local.fingerprint,
      expires: local.expires,
      source: 'fetch',
      pem: local.pem,
      isChainTrusted: false,
      chainProblem: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    })
    expect(tls.asked.at(-1)).toBe('localhost')
    expect(await readDomains()).toMatchObject([{ name: 'LOCALHOST', port: tls.port }])
    expect(await published()).toHaveLength(1)
  })

  test('for another name is refused unless that is forced', async () => {
    const other = createCertificate(['DNS:other.example'])
    tls.show(other)
    expectRefused(await post('auto', { domain: 'localhost', port: tls.port }), 'domain')
    expectOk(await post('auto', { domain: 'localhost', port: tls.port, force: true }))
    expect(await published()).toEqual([expect.objectContaining({ fingerprint: other.fingerprint })])
    tls.show(local)
  })

  test('connects to the allowed ports only', async () => {
    const asked = tls.asked.length
    for (const port of [22, 8443, tls.port - 1]) expectRefused(await post('auto', { domain: 'localhost', port }), 'port')
    for (const port of [0, 65_536, '443', 1.5, null]) {
      expectError(await post('auto', { domain: 'localhost', port }), 400, 'ERROR_REQUEST')
    }
    expect(tls.asked).toHaveLength(asked)
  })

  test('says when the name does not exist, and when nobody listens', async () => {
    expectRefused(await post('auto', { domain: 'no-such-host.invalid', port: tls.port }), 'domain')
    const reply = await post('auto', { domain: 'localhost' })
    expectRefused(reply, 'domain')
    expect(await readDomains()).toEqual([])
  })
})

describe('by default', () => {
  let careful: TestServer
  let silent: ReturnType<typeof createServer>
  const connections: unknown[] = []
  beforeAll(async () => {
    silent = createServer((socket) => connections.push(socket.on('error', () => undefined)))
    await new Promise<void>((resolve) => {
      silent.listen(0, 'localhost', resolve)
    })
    careful = await startTestServer({ env: { PAWL_CERTIFICATE_FETCH_PORTS: `${(silent.address() as AddressInfo).port}` } })
  })
  afterAll(async () => {
    await careful.close()
    silent.close()
  })

  test('an address that is not public is not connected to, nor is port 443 when it is not among those allowed', async () => {
    const admin = createBank(careful.url, `${careful.admin.user}:${careful.admin.password}`)
    expectOk(await admin.call('POST', '/admin/apps', { name: 'a' }))
    const path = '/admin/apps/a/certificates/auto'
    const { port } = silent.address() as AddressInfo
    const reply = await admin.call('POST', path, { domain: 'localhost', port })
    expectRefused(reply, 'domain')
    expect(reply.text).toContain('not a public address')
    expectRefused(await admin.call('POST', path, { domain: 'localhost' }), 'port')
    expect(connections).toEqual([])
  })
})

describe('the certificate watcher', () => {
  // It looks at every domain there is, and those of the tests above have no hosts.
  beforeEach(() => server.context.db.deleteFrom('pinned_domain').execute())
  const look = () => runCertificateWatch(server.context)
  const nextDay = () => server.clock.advance(DAY_SECONDS * 1000 + 1000)
  const readLive = async (): Promise<Live | undefined> => (await readDomains())[0]?.live
  const linesOf = (message: string): Record<string, unknown>[] =>
    server
      .log()
      .split('\n')
      .filter((line) => line.includes(message) && line.includes(`"${app}"`))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  const NOT_PINNED = 'the live certificate is not pinned'

  test('sees what is live and that it is pinned, once a day', async () => {
    tls.show(local)
    expectOk(await post('auto', { domain: 'localhost', port: tls.port }))
    expect(await readLive()).toBeUndefined()
    await look()
    const daysToExpiry = Math.floor((local.expires - nowSeconds()) / DAY_SECONDS)
    const live = await readLive()
    expect(live).toEqual({
      checkedAt: expect.any(Number),
      fingerprint: local.fingerprint,
      expires: local.expires,
      daysToExpiry,
      isChainTrusted: false,
      isPinned: true,
    })
    expect(linesOf('the live certificate is pinned')).toEqual([
      expect.objectContaining({ applicationId: app, domain: 'localhost', daysToExpiry }),
    ])
    const asked = tls.asked.length
    await look()
    expect(tls.asked).toHaveLength(asked)
    nextDay()
    await look()
    expect((await readLive())?.checkedAt).toBeGreaterThan(live?.checkedAt ?? 0)
    expect(linesOf(NOT_PINNED)).toEqual([])
  })

  test('raises the alarm when the live certificate is not pinned, until it is', async () => {
    tls.show(local)
    expectOk(await post('auto', { domain: 'localhost', port: tls.port }))
    const next = createCertificate(['DNS:localhost'], { days: 200 })
    tls.show(next)
    await look()
    expect(await readLive()).toMatchObject({ fingerprint: next.fingerprint, isPinned: false })
    expect(linesOf(NOT_PINNED)).toEqual([expect.objectContaining({ level: 'error', applicationId: app, domain: 'localhost' })])
    expectOk(await post('pem', { domain: 'localhost', pem: next.pem }))
    // The pin counts from now on, and the domain keeps its port.
    expect(await readLive()).toMatchObject({ isPinned: true })
    nextDay()
    await look()
    expect(await readLive()).toMatchObject({ isPinned: true })
    expect(linesOf(NOT_PINNED)).toHaveLength(1)
    tls.show(local)
  })

  test('looks at the host that a name in capital letters names, and at nothing for a name that names none', async () => {
    tls.show(local)
    expectOk(await post('auto', { domain: 'LocalHost', port: tls.port, force: true }))
    for (const domain of ['*.bank.example', 'Bank of Example', '192.0.2.1'])
      expectOk(await post('fingerprint', { domain, fingerprint: FINGERPRINT, expires: nowSeconds() + 9_000 }))
    await look()
    const domains = await readDomains()
    expect(domains.map(({ name, live }) => [name, live?.isPinned])).toEqual([
      ['*.bank.example', undefined],
      ['192.0.2.1', undefined],
      ['Bank of Example', undefined],
      ['LocalHost', true],
    ])
    expect([...linesOf(NOT_PINNED), ...linesOf('could not be read')]).toEqual([])
  })

  test('says why it sees nothing', async () => {
    expectOk(
      await post('fingerprint', { domain: 'no-such-host.invalid', fingerprint: FINGERPRINT, expires: nowSeconds() + 9_000 }),
    )
    await look()
    const live = await readLive()
    expect(live).toEqual({
      checkedAt: expect.any(Number),
      isPinned: false,
      problem: expect.stringContaining('cannot be resolved'),
    })
    expect(linesOf('could not be read')).toHaveLength(1)
  })

  test('two at once share the work', async () => {
    tls.show(local)
    // What other tests left is looked at first.
    nextDay()
    await look()
    expectOk(await post('auto', { domain: 'localhost', port: tls.port }))
    const asked = tls.asked.length
    await Promise.all([look(), look()])
    expect(tls.asked).toHaveLength(asked + 1)
  })

  test.each([
    ['an hour', 3_600],
    ['a day', DAY_SECONDS],
    ['a year', 365 * DAY_SECONDS],
  ])('looks again when the clock was set back by %s, and from then on once a day', async (_, seconds) => {
    tls.show(local)
    expectOk(await post('auto', { domain: 'localhost', port: tls.port }))
    await look()
    const before = Number((await readLive())?.checkedAt)
    server.clock.advance(-seconds * 1000)
    try {
      await look()
      expect(Number((await readLive())?.checkedAt)).toBeLessThan(before)
      const asked = tls.asked.length
      await look()
      expect(tls.asked).toHaveLength(asked)
    } finally {
      server.clock.advance(seconds * 1000)
    }
  })

  test('leaves what it was stopped over to another', async () => {
    tls.show(local)
    expectOk(await post('auto', { domain: 'localhost', port: tls.port }))
    const stop = new AbortController()
    const round = runCertificateWatch(server.context, stop.signal)
    stop.abort()
    await round
    expect(await readLive()).toBeUndefined()
    server.clock.advance(130_000)
    await look()
    expect(await readLive()).toMatchObject({ isPinned: true })
  })
})

describe('version rules and texts', () => {
  test('are listed, read and removed', async () => {
    const path = `/admin/apps/${app}/versions`
    const rule = {
      platform: 'ANDROID',
      majorOsVersion: 31,
      suggestedVersion: '3.1.2',
      requiredVersion: '3.0.0-rc.1+b',
      messageKey: 'k',
    }
    const created = expectOk(await bank.call('POST', path, rule))
    const id = Number(member(created.json, 'id'))
    expect(created.json).toEqual({ id, ...rule })
    expect((await bank.call('GET', `${path}/${id}`)).json).toEqual(created.json)
    const open = expectOk(await bank.call('POST', path, { platform: 'ANDROID', majorOsVersion: null, messageKey: null }))
    expect((await bank.call('GET', path)).json).toEqual({ applicationVersions: [created.json, open.json] })
    for (const again of [rule, { platform: 'ANDROID' }]) expectRefused(await bank.call('POST', path, again), 'majorOsVersion')
    expectOk(await bank.call('DELETE', `${path}/${id}`))
    for (const [method, missing] of [
      ['DELETE', id],
      ['GET', id],
      ['GET', 2_147_483_647],
    ]) {
      expectError(await bank.call(String(method), `${path}/${missing}`), 400, 'ERROR_ADMIN')
    }
    expectError(await bank.call('GET', `/admin/apps/nobody/versions/${id}`), 400, 'ERROR_ADMIN')
    expectError(await bank.call('GET', '/admin/apps/nobody/versions'), 400, 'ERROR_ADMIN')
    expectError(await bank.call('POST', '/admin/apps/nobody/versions', rule), 400, 'ERROR_ADMIN')
  })

  const NO_RULES = [
    {},
    { platform: 'ios' },
    { platform: 'IOS', majorOsVersion: '17' },
    { platform: 'IOS', majorOsVersion: 1.5 },
    { platform: 'IOS', majorOsVersion: -1 },
    { platform: 'IOS', majorOsVersion: 1e12 },
    { platform: 'IOS', requiredVersion: '1.0' },
    { platform: 'IOS', suggestedVersion: '1.0.0 ' },
    { platform: 'IOS', suggestedVersion: 1 },
    { platform: 'IOS', messageKey: '' },
    { platform: 'IOS', messageKey: 'a\u0000' },
  ]

  test('a rule that is malformed is refused', async () => {
    for (const rule of NO_RULES) expectError(await bank.call('POST', `/admin/apps/${app}/versions`, rule), 400, 'ERROR_REQUEST')
    expect((await bank.call('GET', `/admin/apps/${app}/versions`)).json).toEqual({ applicationVersions: [] })
  })

  test('a malformed id is refused', async () => {
    for (const id of ['0', '-1', 'x', '1.5', '2147483648', '%00']) {
      for (const method of ['GET', 'DELETE']) {
        expectError(await bank.call(method, `/admin/apps/${app}/versions/${id}`), 400, 'ERROR_REQUEST')
      }
    }
  })

  test('texts are stored, replaced and removed', async () => {
    const text = { messageKey: 'a key/1', language: 'cs', text: 'Aktualizujte\nprosím' }
    expect(expectOk(await bank.call('POST', '/admin/texts', text)).json).toEqual(text)
    expectOk(await bank.call('POST', '/admin/texts', { ...text, text: 'Jinak' }))
    const path = `/admin/texts/${encodeURIComponent(text.messageKey)}/cs`
    expect((await bank.call('GET', path)).json).toEqual({ ...text, text: 'Jinak' })
    expect(member((await bank.call('GET', '/admin/texts')).json, 'texts')).toContainEqual({ ...text, text: 'Jinak' })
    expectOk(await bank.call('DELETE', path))
    for (const method of ['GET', 'DELETE']) expectError(await bank.call(method, path), 400, 'ERROR_ADMIN')
  })

  const NO_TEXTS = [
    { messageKey: '' },
    { language: 'CS' },
    { language: 'ces' },
    { text: '' },
    { text: ' \n' },
    { text: 'a\u0000' },
    { text: 'x'.repeat(4097) },
    { text: '\ud800' },
  ]

  test('a text that is malformed is refused', async () => {
    for (const part of NO_TEXTS) {
      const text = { messageKey: 'k', language: 'en', text: 't', ...part }
      expectError(await bank.call('POST', '/admin/texts', text), 400, 'ERROR_REQUEST')
    }
  })
})

describe('docs/PINNING.md', () => {
  test('its recipe verifies a live answer, and refuses one that was changed', async () => {
    expectOk(await post('pem', { domain: 'localhost', pem: local.pem }))
    const text = readFileSync(join(root, 'docs/PINNING.md'), 'utf8')
    const [, section = ''] = /\n## Verifying an answer by hand\n([^]*?)\n## /.exec(text) ?? []
    const blocks = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, block = '']) => block)
    expect(blocks).toHaveLength(3)
    const cwd = mkdtempSync(join(tmpdir(), 'pawl-recipe-'))
    const env = { PATH: process.env['PATH'] ?? '', PAWL: server.url, APP: app }
    const bash = (script: string) => run('bash', ['-euo', 'pipefail', '-c', script], { cwd, env, timeout: PATIENCE_MS })
    try {
      expect((await bash(blocks.join('\n'))).stdout).toBe('Verified OK\n')
      expect(readFileSync(join(cwd, 'body'), 'utf8')).toContain(local.fingerprint)
      const [key, answer, verify] = blocks
      const tampered = [key, answer, "printf ' ' >>body", verify].join('\n')
      await expect(bash(tampered)).rejects.toMatchObject({ code: 1, stdout: expect.stringMatching(/^Verification failure/i) })
    } finally {
      rmSync(cwd, { recursive: true, force: true })
    }
  })
})

describe('pawl certificate', () => {
  const pinning = async (...given: string[]): Promise<unknown> => {
    const always = ['--url', server.url, '--admin', bank.credential ?? '', '--app', app, '--json']
    return JSON.parse((await run(process.execPath, ['bin/pawl.mjs', 'certificate', ...given, ...always], { cwd: root })).stdout)
  }

  test('adds, fetches, lists and removes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-cli-'))
    try {
      const file = join(folder, 'cert.pem')
      writeFileSync(file, local.pem)
      const added = await Promise.all([
        pinning('add-pem', 'forced.example', file, '--force'),
        pinning('add-fingerprint', 'a.example', FINGERPRINT, '2099-01-31T12:00:00Z'),
        pinning('fetch', 'localhost', '--port', String(tls.port)),
      ])
      expect(added.map((one) => member(one, 'name'))).toEqual(['forced.example', 'a.example', 'localhost'])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    await pinning('remove', 'a.example', FINGERPRINT)
    await pinning('remove', 'forced.example')
    const domains = member(await pinning('list'), 'domains') as Domain[]
    expect(domains.map(({ name, certificates }) => [name, certificates.length])).toEqual([
      ['a.example', 0],
      ['localhost', 1],
    ])
  })

  test('says what is wrong', async () => {
    await expect(pinning('nope')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/unknown command 'nope'.*--help/),
    })
    await expect(pinning('remove', 'nobody.example')).rejects.toMatchObject({
      code: 4,
      stderr: expect.stringContaining('ERROR_ADMIN'),
    })
  })
})
