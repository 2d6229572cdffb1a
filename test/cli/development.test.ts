// pawl certificate dev, and what pawl serve --phone refuses: certificates as OpenSSL and TLS see them, and when they are made again.
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect as connectPlain, createServer as createPlain, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { isName, isPrivateAddress, listAddresses } from '../../cli/dev/addresses.ts'
import { createCertificates, filesOf, readCertificates } from '../../cli/dev/certificates.ts'
import { type CertificateAndKey, createServerCertificate } from '../../cli/dev/x509.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { runCli } from '../helpers/cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'pawl-development-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let count = 0
const newFolder = (): string => join(directory, String((count += 1)))
const DAY_MS = 86_400_000
/** As it will be in so many days. */
const inDays = (days: number) => ({ ...systemPlatform, now: () => systemPlatform.now() + days * DAY_MS })
const read = (path: string): X509Certificate => new X509Certificate(readFileSync(path, 'utf8'))
const contentsOf = (folder: string): readonly string[] => Object.values(filesOf(folder)).map((path) => readFileSync(path, 'utf8'))

/** Whether a client that trusts the authority takes the certificate for `name`; else why not. */
async function shakeHands(authority: string, { certificate, key }: CertificateAndKey, name: string): Promise<string> {
  const server = createServer({ cert: certificate, key }, (socket) => socket.end())
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  // Names are looked at without being asked for of anybody; an address is the host of the connection itself.
  const socket = connectPlain(port, '127.0.0.1')
  const host = /^[\d.:a-f]+$/.test(name) ? { host: name } : { servername: name }
  const said = await new Promise<string>((resolve) => {
    const client = connect({ socket, ca: readFileSync(authority), ...host }, () => resolve('trusted'))
    client.on('error', ({ message }) => resolve(message))
    client.on('close', () => socket.destroy())
    client.resume()
  })
  socket.destroy()
  await new Promise((resolve) => server.close(resolve))
  return said
}

describe('pawl certificate dev', () => {
  const folder = newFolder()
  const files = filesOf(folder)
  const make = (...more: readonly string[]) => runCli(['certificate', 'dev', '--folder', folder, ...more], {})

  test('makes an authority and a certificate, and keeps their keys for this account', async () => {
    const { code, stdout, stderr } = await make('--name', 'laptop.local', '--name', '203.0.113.7')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const path of Object.values(files)) expect(stdout).toContain(path)
    for (const path of [files.authorityKey, files.serverKey]) expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const words of ['network_security_config', 'add-root-cert', 'Certificate Trust Settings'])
      expect(stdout).toContain(words)
  })

  test('a folder that cannot be made is said in one line', async () => {
    const place = join(files.authority, 'below')
    const { code, stderr } = await runCli(['certificate', 'dev', '--folder', place], {})
    expect([code, stderr]).toEqual([6, expect.stringMatching(`^the certificates in ${place}: ENOTDIR.*\n$`)])
  })

  test('the certificate is for this machine, its addresses and the names that were given', () => {
    const server = read(files.server)
    for (const name of ['localhost', 'laptop.local']) expect(server.checkHost(name)).toBe(name)
    for (const address of ['127.0.0.1', '::1', '10.0.2.2', '203.0.113.7', ...listAddresses()])
      expect(server.checkIP(address)).toBe(address)
    expect(server.checkHost('bank.example')).toBeUndefined()
    expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect(server.ca).toBe(false)
  })

  test('the chain is that of the authority, and both are in their time', () => {
    const [authority, server] = [read(files.authority), read(files.server)]
    expect(authority.ca).toBe(true)
    expect(server.checkIssued(authority)).toBe(true)
    expect(server.verify(authority.publicKey)).toBe(true)
    expect(authority.verify(authority.publicKey)).toBe(true)
    const now = systemPlatform.now()
    for (const [{ validFrom, validTo }, days] of [
      [authority, 1_095],
      [server, 397],
    ] as const) {
      expect(Date.parse(validFrom)).toBeLessThan(now)
      expect(Date.parse(validTo)).toBeLessThanOrEqual(now + days * DAY_MS)
      expect(Date.parse(validTo)).toBeGreaterThan(now + (days - 1) * DAY_MS)
    }
    // Every rule of RFC 5280 that OpenSSL knows.
    const verify = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', files.authority, files.server]
    expect(execFileSync('openssl', verify, { encoding: 'utf8' })).toBe(`${files.server}: OK\n`)
  })

  test.each(['laptop.local', 'localhost', '127.0.0.1', '203.0.113.7'])('TLS for %s is trusted', async (name) => {
    const own = { certificate: readFileSync(files.server, 'utf8'), key: readFileSync(files.serverKey, 'utf8') }
    expect(await shakeHands(files.authority, own, name)).toBe('trusted')
  })

  test.each(['bank.example', 'laptop.local.example', '203.0.113.8', '8.8.8.8'])(
    'a certificate for %s that the key of the authority signs is refused by OpenSSL',
    async (name) => {
      const authority = { certificate: readFileSync(files.authority, 'utf8'), key: readFileSync(files.authorityKey, 'utf8') }
      const now = systemPlatform.now()
      const foreign = createServerCertificate(systemPlatform, authority, {
        names: [name],
        validity: { from: now - 1000, to: now + DAY_MS },
      })
      expect(await shakeHands(files.authority, foreign, name)).toBe('permitted subtree violation')
    },
  )

  test('what is there stays, unless --force is said', async () => {
    const before = contentsOf(folder)
    const { code, stdout, stderr } = await make()
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^there is .*authority\.crt already: .*--force.*\n$/)
    expect(contentsOf(folder)).toEqual(before)
    writeFileSync(files.serverKey, 'old', { mode: 0o600 })
    const forced = await make('--force', '--json')
    expect(forced.code).toBe(0)
    expect(JSON.parse(forced.stdout)).toMatchObject({
      ...files,
      names: expect.arrayContaining(['localhost', '10.0.2.2']) as unknown,
    })
    for (const [index, text] of contentsOf(folder).entries()) expect(text).not.toBe(before[index])
  })

  test.each([['key check'], ['doctor'], ['backup nowhere.pawl']])('is no database for pawl %s', async (line) => {
    const env = { PAWL_DATA_DIR: newFolder() }
    await runCli(['certificate', 'dev'], env)
    expect(readdirSync(env.PAWL_DATA_DIR)).toEqual(['phone-tls'])
    const { stdout, stderr } = await runCli(line.split(' '), env)
    expect(stdout + stderr).toContain('there is no database')
    expect(readdirSync(env.PAWL_DATA_DIR)).toEqual(['phone-tls'])
  })

  test('one key without the others is not overwritten either', async () => {
    const half = newFolder()
    await runCli(['certificate', 'dev', '--folder', half], {})
    rmSync(filesOf(half).authority)
    const { code, stderr } = await runCli(['certificate', 'dev', '--folder', half], {})
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^there is .*authority\.key already/)])
  })

  test.each(['', '-a', 'a..b', 'a b', '*.bank.example', 'fe80::1%eth0', '1.2.3', 'x'.repeat(64)])(
    '%j is no name',
    async (name) => {
      const empty = newFolder()
      const { code, stderr } = await runCli(['certificate', 'dev', '--folder', empty, `--name=${name}`], {})
      expect([code, stderr]).toEqual([2, expect.stringContaining('is no host name and no address')])
      expect(existsSync(empty)).toBe(false)
    },
  )
})

describe('the certificates of pawl serve --phone', () => {
  const NAMES = ['localhost', '127.0.0.1', '192.168.1.5']

  test('are made where there are none, and stay as they are', () => {
    const folder = newFolder()
    const { certificate, files } = readCertificates(folder, NAMES, systemPlatform)
    const before = contentsOf(folder)
    expect(readCertificates(folder, NAMES, systemPlatform).certificate).toBe(certificate)
    expect(contentsOf(folder)).toEqual(before)
    expect(statSync(files.authorityKey).mode & 0o777).toBe(0o600)
  })

  test.each([
    ['a week before their end', NAMES, 391],
    ['for another private address', ['localhost', '10.7.7.7', 'fd00::7'], 0],
  ])('come from the same authority again %s', async (_, names, days) => {
    const folder = newFolder()
    const first = readCertificates(folder, NAMES, systemPlatform)
    const authority = readFileSync(first.files.authority, 'utf8')
    const next = readCertificates(folder, names, inDays(days))
    expect(next.certificate).not.toBe(first.certificate)
    expect(next.key).not.toBe(first.key)
    expect(readFileSync(next.files.authority, 'utf8')).toBe(authority)
    expect(new X509Certificate(next.certificate).verify(new X509Certificate(authority).publicKey)).toBe(true)
    // Phones that were told an earlier address go on.
    for (const address of ['192.168.1.5', ...names.slice(1)])
      expect(new X509Certificate(next.certificate).checkIP(address)).toBe(address)
    expect(statSync(next.files.serverKey).mode & 0o777).toBe(0o600)
    expect(readCertificates(folder, names, inDays(days)).certificate).toBe(next.certificate)
  })

  test.each([
    ['the authority ends', NAMES, 1_090, 'ends'],
    ['the authority may not sign for a public address', [...NAMES, '203.0.113.9'], 0, 'may not sign for 203.0.113.9'],
  ])('are refused where %s', (_, names, days, said) => {
    const folder = newFolder()
    createCertificates(folder, NAMES, { platform: systemPlatform, force: false })
    const before = contentsOf(folder)
    expect(() => readCertificates(folder, names, inDays(days))).toThrow(said)
    expect(contentsOf(folder)).toEqual(before)
  })

  test.each(['authorityKey', 'server', 'serverKey'] as const)('say in one line that %s is not there', (which) => {
    const folder = newFolder()
    rmSync(createCertificates(folder, NAMES, { platform: systemPlatform, force: false })[which])
    expect(() => readCertificates(folder, NAMES, systemPlatform)).toThrow(
      /^the certificates in .* \(ENOENT: no such file[^\n]*\): .*--force/,
    )
  })
})

describe('pawl serve --phone refuses', () => {
  const serve = (env: Readonly<Record<string, string>>, ...words: readonly string[]) =>
    runCli(['serve', '--phone', '--phone-host', '127.0.0.1', '--phone-port', '0', ...words], {
      PAWL_DATA_DIR: newFolder(),
      ...env,
    })

  test.each([
    ['production', { NODE_ENV: 'production' }, [], 2, 'NODE_ENV'],
    ['a database server', { DATABASE_URL: 'postgres://a:b@127.0.0.1:9/c' }, [], 2, 'DATABASE_URL'],
    ['a database server from a file', { DATABASE_URL_FILE: '/nowhere' }, [], 2, 'DATABASE_URL'],
    ["the bank's API for others", { PAWL_INTERNAL_HOST: '0.0.0.0' }, [], 2, 'PAWL_INTERNAL_HOST=0.0.0.0'],
    ['a wrong setting', { PAWL_LOG_LEVEL: 'loud' }, [], 2, 'PAWL_LOG_LEVEL'],
    ['a name as the address', {}, ['--phone-host', 'laptop.local'], 2, '--phone-host is an address'],
    ['a port that is none', {}, ['--phone-port', 'many'], 2, '--phone-port'],
    ['a port that is too high', {}, ['--phone-port', '65536'], 2, '--phone-port'],
    ['an address of another machine', {}, ['--phone-host', '192.0.2.77'], 1, '192.0.2.77:0 cannot be listened on'],
  ] as const)('%s', async (_, env, words, exitCode, said) => {
    const { code, stdout, stderr } = await serve(env, ...words)
    expect([code, stdout, stderr]).toEqual([exitCode, '', expect.stringContaining(said)])
    expect(stderr).toMatch(/^[^\n]+\n$/)
  })

  test('a port that another program has', async () => {
    const other = createPlain()
    await new Promise<void>((resolve) => {
      other.listen(0, '127.0.0.1', resolve)
    })
    const { port } = other.address() as AddressInfo
    const { code, stderr } = await serve({}, '--phone-port', String(port))
    await new Promise((resolve) => other.close(resolve))
    expect([code, stderr]).toEqual([1, expect.stringContaining(`127.0.0.1:${port} cannot be listened on (listen EADDRINUSE`)])
  })

  test.each([['--phone-host=127.0.0.1'], ['--phone-port=0']])('%s without --phone', async (word) => {
    const { code, stderr } = await runCli(['serve', word], {})
    expect([code, stderr]).toEqual([2, expect.stringContaining('belong to --phone')])
  })
})

describe('addresses', () => {
  const info = (address: string, family: 'IPv4' | 'IPv6' = 'IPv4', internal = false) =>
    ({ address, family, internal, netmask: '', mac: '', cidr: null, ...(family === 'IPv6' && { scopeid: 0 }) }) as never

  test('of bridges and tunnels come last, and what no phone reaches is left out', () => {
    expect(
      listAddresses({
        lo: [info('127.0.0.1', 'IPv4', true)],
        docker0: [info('172.17.0.1')],
        wlan0: [info('fe80::1', 'IPv6'), info('192.168.1.5'), info('169.254.1.1')],
        none: undefined,
      }),
    ).toEqual(['192.168.1.5', '172.17.0.1'])
  })

  test.each(['10.0.0.1', '172.31.0.1', '192.168.1.1', '127.0.0.1', '::1', 'fd12::1', 'fe80::1'])('%s is private', (address) => {
    expect(isPrivateAddress(address)).toBe(true)
  })

  test.each(['172.32.0.1', '8.8.8.8', '2001:db8::1', 'localhost'])('%s is not', (address) => {
    expect([isPrivateAddress(address), isName(address)]).toEqual([false, true])
  })
})
