// TLS with client certificates on the internal listener (cloud §2.3): who is let in, whom a certificate stands for, and new files without a
// restart.
import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect, type SecureVersion, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { basicAuthorization } from '../helpers/bank.ts'
import { createCertificate, type TestCertificate } from '../helpers/certificates.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'
import { createSockets } from '../helpers/sockets.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Installation,
  type PawlProcess,
  refusePawl,
  runNode,
  startPawl,
} from '../helpers/process.ts'

// The start of a whole server, and other test files run at the same time.

const authority = createCertificate([], { commonName: 'authority of the bank' })
const NAMES = ['IP:127.0.0.1']
const server = createCertificate(NAMES, { commonName: 'server', issuer: authority })
const back = createCertificate([], { commonName: 'back end', issuer: authority })
const other = createCertificate([], { commonName: 'other', issuer: authority })
const foreign = createCertificate([], { commonName: 'back end' })
const admin = basicAuthorization(`admin:${ADMIN_PASSWORD}`)

let installation: Installation
let pawl: PawlProcess
let url: string
beforeAll(async () => {
  installation = await createInstallation('embedded')
  write('server.pem', server.pem)
  write('server.key', server.privateKeyPem)
  write('clients.pem', authority.pem)
  pawl = await startPawl(installation.env, settings(), { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_METRICS: 'basic' })
  url = /^Cloud API and administration, never for phones: (\S+)$/m.exec(pawl.output())?.[1] ?? ''
})
afterAll(endEverything)

const pathOf = (name: string): string => join(installation.directory, name)
const write = (name: string, text: string): void => writeFileSync(pathOf(name), text)
const settings = () => ({
  PAWL_INTERNAL_PORT: '0',
  PAWL_INTERNAL_TLS_CERTIFICATE: pathOf('server.pem'),
  PAWL_INTERNAL_TLS_KEY: pathOf('server.key'),
  PAWL_INTERNAL_TLS_CLIENT_CA: pathOf('clients.pem'),
})

interface Call {
  readonly certificate?: TestCertificate | undefined
  readonly method?: string
  readonly path?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly maxVersion?: SecureVersion
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly protocol: string | null
  readonly shown: string
}

/** One request on a connection of its own. */
const call = ({ certificate, method = 'GET', path = '/admin/users', body, headers = {}, maxVersion }: Call): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const json = body === undefined ? undefined : JSON.stringify(body)
    const outgoing = request(
      url + path,
      {
        method,
        agent: false,
        ca: authority.pem,
        headers: { ...headers, ...(json && { 'content-type': 'application/json' }) },
        ...(certificate && { cert: certificate.pem, key: certificate.privateKeyPem }),
        ...(maxVersion && { maxVersion }),
      },
      (incoming) => {
        const socket = incoming.socket as TLSSocket
        const seen = { protocol: socket.getProtocol(), shown: socket.getPeerX509Certificate()?.subject ?? '' }
        let text = ''
        incoming.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, ...seen }))
      },
    )
    outgoing.on('error', reject)
    outgoing.end(json)
  })

const hex = ({ fingerprint }: TestCertificate): string => Buffer.from(fingerprint, 'base64').toString('hex')
const assign = (name: string, certificates: readonly TestCertificate[]): Promise<Answer> =>
  call({
    certificate: other,
    headers: admin,
    method: 'PUT',
    path: `/admin/users/${name}/certificates`,
    body: { certificates: certificates.map(hex) },
  })

test('nobody is let in without a certificate of the authority, with an older TLS, or without TLS', async () => {
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  await expect(call({ headers: admin })).rejects.toThrow(/certificate required|ECONNRESET|socket hang up/i)
  await expect(call({ certificate: foreign, headers: admin })).rejects.toThrow(/unknown ca|ECONNRESET|socket hang up/i)
  await expect(call({ certificate: other, headers: admin, maxVersion: 'TLSv1.1' })).rejects.toThrow()
  await expect(fetch(url.replace('https', 'http'))).rejects.toThrow('fetch failed')
  await expect.poll(pawl.output).toContain('"reason":"ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE"')
  expect(pawl.output()).toContain('"msg":"a TLS connection was refused"')
  // The phones' listener is what it was.
  expect((await fetch(`${pawl.url}/health/live`)).status).toBe(200)
})

test('who is given no certificate is told at the start, and by the command line, that one is shown', async () => {
  expect(pawl.output()).toMatch(/^Create an application: curl .* --cacert AUTHORITY --cert CERTIFICATE --key KEY .*https:/m)
  write('authority.pem', authority.pem)
  const { code, stderr } = await runNode(['bin/pawl.mjs', 'app', 'list'], {
    PAWL_URL: url,
    PAWL_ADMIN: `admin:${ADMIN_PASSWORD}`,
    NODE_EXTRA_CA_CERTS: pathOf('authority.pem'),
  })
  expect([code, stderr]).toEqual([3, expect.stringMatching(/does not answer .*PAWL_CLIENT_CERTIFICATE and PAWL_CLIENT_KEY what/)])
})

test('a password goes on to be needed where a certificate stands for nobody, and is good beside one', async () => {
  const nobody = await call({ certificate: other })
  expect([nobody.status, JSON.parse(nobody.text)]).toMatchObject([401, { responseObject: { code: 'HTTP_401' } }])
  expect(await call({ certificate: other, headers: admin })).toMatchObject({ status: 200, protocol: 'TLSv1.3' })
  expect(await call({ certificate: other, headers: admin, maxVersion: 'TLSv1.2' })).toMatchObject({
    status: 200,
    protocol: 'TLSv1.2',
  })
  expect((await call({ certificate: other, headers: basicAuthorization('admin:wrong password') })).status).toBe(401)
})

test('a certificate stands for the credential that it is noted at, with its role, until it is taken away', async () => {
  const body = { username: 'reader', role: 'read-only' }
  expect((await call({ certificate: other, headers: admin, method: 'POST', path: '/admin/users', body })).status).toBe(200)
  write('back.pem', back.pem)
  write('other.pem', `${other.pem}\n${other.privateKeyPem}`)
  write('authority.pem', authority.pem)
  const noted = await runNode(['bin/pawl.mjs', 'user', 'certificate', 'reader', '--file', pathOf('back.pem')], {
    PAWL_URL: url,
    PAWL_ADMIN: `admin:${ADMIN_PASSWORD}`,
    PAWL_CLIENT_CERTIFICATE: pathOf('other.pem'),
    NODE_EXTRA_CA_CERTS: pathOf('authority.pem'),
  })
  expect(noted).toMatchObject({ code: 0, stderr: '' })
  const list = await call({ certificate: back })
  expect([list.status, list.text]).toEqual([200, expect.stringContaining(`"certificates":["${hex(back)}"]`)])
  expect((await call({ certificate: back, path: '/metrics' })).status).toBe(200)
  expect((await call({ certificate: other, path: '/metrics' })).status).toBe(401)
  // Its role, not that of an administrator; and what is shown beside it decides.
  expect(
    (await call({ certificate: back, method: 'POST', path: '/admin/users', body: { ...body, username: 'more' } })).status,
  ).toBe(403)
  expect((await call({ certificate: back, headers: basicAuthorization('reader:wrong password') })).status).toBe(401)
  // Not for two, and nothing that is no fingerprint.
  expect((await assign('admin', [back])).status).toBe(400)
  const wrong = { certificates: ['00'] }
  expect(
    (await call({ certificate: other, headers: admin, method: 'PUT', path: '/admin/users/reader/certificates', body: wrong }))
      .status,
  ).toBe(400)
  expect((await assign('nobody', [])).status).toBe(400)
  const audit = await call({ certificate: other, headers: admin, path: '/admin/audit' })
  expect(audit.text).toContain(hex(back))

  expect((await assign('reader', [])).status).toBe(200)
  expect((await call({ certificate: back })).status).toBe(401)
})

test('connections of one address that never finish their handshake leave room for others', async () => {
  const limited = await startPawl(settings(), await createInstallation('embedded').then(({ env }) => env), {
    PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
    PAWL_CONNECTIONS_MAX: '16',
    PAWL_REQUESTS_IN_FLIGHT_MAX: '8',
  })
  const internal = new URL(/^Cloud API and administration, never for phones: (\S+)$/m.exec(limited.output())?.[1] ?? '')
  const { open, openMany, endAll } = createSockets(() => Number(internal.port))
  const before = url
  url = internal.origin
  try {
    // What is no TLS is closed at once; the others are looked at before their handshake has run out of time.
    for (const [bytes, least] of [
      ['', 1],
      ['\x16\x03\x01', 1],
      ['GET / HTTP/1.1\r\n', 0],
    ] as const) {
      const sent = await openMany(60, '127.0.0.2', bytes)
      await open('127.0.0.3', bytes)
      const left = await vi.waitFor(() => {
        const count = sent.filter(({ isOpen }) => isOpen()).length
        expect(count).toBeLessThanOrEqual(12)
        return count
      }, PATIENCE_MS)
      expect(left).toBeGreaterThanOrEqual(least)
      for (let i = 0; i < 3; i += 1) expect((await call({ certificate: back, headers: admin })).status).toBe(200)
    }
    const secure = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const below = connectPlain({ host: '127.0.0.1', port: Number(internal.port), localAddress: '127.0.0.2' })
        below.on('error', () => undefined)
        const socket = connect({ socket: below, host: '127.0.0.1', ca: authority.pem, cert: back.pem, key: back.privateKeyPem })
        socket.on('error', () => undefined).resume()
        await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve))
        socket.write('POST /registration HTTP/1.1\r\nHost: a\r\nContent-Length: 15000\r\n\r\n{')
        return socket
      }),
    )
    await expect.poll(() => secure.filter(({ readableEnded, destroyed }) => !readableEnded && !destroyed)).toHaveLength(6)
    expect((await call({ certificate: back, headers: admin })).status).toBe(200)
    for (const socket of secure) socket.destroy()
  } finally {
    url = before
    endAll()
    await limited.end('SIGTERM')
  }
})

/** The ends of the certificate and of the authorities, as the metrics have them. */
const measured = async (certificate: TestCertificate): Promise<readonly string[]> =>
  (await call({ certificate, headers: admin, path: '/metrics' })).text.match(/(?<=^pawl_internal_tls_expiry.*\} )\S+$/gm) ?? []
const endOf = ({ pem }: TestCertificate): string => String(new X509Certificate(pem).validToDate.getTime() / 1000)

test('new files hold without a restart, and files that do not fit together change nothing', async () => {
  const next = createCertificate(NAMES, { commonName: 'next server', issuer: authority, days: 90 })
  expect(await measured(other)).toEqual([endOf(server), endOf(authority)])
  write('server.pem', next.pem)
  await pawl.printed('new files of TLS are wrong, the former go on')
  expect((await call({ certificate: other, headers: admin })).shown).toBe('CN=server')
  write('server.key', next.privateKeyPem)
  write('clients.pem', foreign.pem)
  await pawl.printed('new files of TLS hold for new connections')
  expect(await call({ certificate: foreign, headers: admin })).toMatchObject({ status: 200, shown: 'CN=next server' })
  expect(await measured(foreign)).toEqual([endOf(next), endOf(foreign)])
  await expect(call({ certificate: other, headers: admin })).rejects.toThrow()
})

test('a start says what is wrong with the files', async () => {
  const partly = { ...settings(), PAWL_INTERNAL_TLS_KEY: '' }
  const refused = await refusePawl(partly)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('PAWL_INTERNAL_TLS_KEY: needed together with')])
  const { env } = await createInstallation('embedded')
  write('clients.pem', 'nothing')
  const empty = await refusePawl(env, settings())
  expect([empty.code, empty.stderr]).toEqual([1, expect.stringContaining('clients.pem holds no certificate')])
})
