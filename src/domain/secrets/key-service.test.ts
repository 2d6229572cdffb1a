// Tests master keys that a key service unwraps. A test server speaks as Vault's transit engine does, with its own key.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from '../../../test/helpers/cli.ts'
import { parseKeyList } from '../../lib/key-list.ts'
import { systemPlatform as platform } from '../../lib/platform.ts'
import { loadMasterKeys } from './master-key.ts'

const TOKEN = 'hvs.marked-token'
const serviceKey = randomBytes(32)
let server: Server
let url = ''
/** An answer of the server in place of a key. */
let spoiled: { readonly status: number; readonly body: string } | undefined
const asked: string[] = []

function wrap(key: Uint8Array): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', serviceKey, nonce)
  const sealed = Buffer.concat([nonce, cipher.update(key), cipher.final(), cipher.getAuthTag()])
  return `vault:v1:${sealed.toString('base64')}`
}

function unwrap(text: string): string | undefined {
  const sealed = Buffer.from(text.replace(/^vault:v1:/, ''), 'base64')
  const decipher = createDecipheriv('aes-256-gcm', serviceKey, sealed.subarray(0, 12)).setAuthTag(sealed.subarray(-16))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString('base64')
  } catch {
    return undefined
  }
}

function answer(path: string, token: unknown, body: string): readonly [number, unknown] {
  if (token !== TOKEN) return [403, { errors: ['permission denied'] }]
  if (path === '/v1/transit/datakey/wrapped/pawl') return [200, { data: { ciphertext: wrap(randomBytes(32)) } }]
  const { ciphertext } = JSON.parse(body) as { ciphertext: string }
  const plaintext = path === '/v1/transit/decrypt/pawl' ? unwrap(ciphertext) : undefined
  return plaintext === undefined ? [400, { errors: ['cipher: message authentication failed'] }] : [200, { data: { plaintext } }]
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      asked.push(`${request.method} ${request.url}`)
      const [status, json] = answer(request.url ?? '', request.headers['x-vault-token'], Buffer.concat(chunks).toString())
      response.writeHead(spoiled?.status ?? status).end(spoiled?.body ?? JSON.stringify(json))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/transit/keys/pawl`
})
afterAll(() => server.close())

const load = (
  text: string,
  settings: { vaultKeyUrl?: string; vaultToken?: string } = { vaultKeyUrl: url, vaultToken: TOKEN },
) => {
  const { vaultToken, ...config } = settings
  const masterKeys = parseKeyList(text)
  if (masterKeys === undefined) throw new Error('no list of keys')
  return loadMasterKeys(
    { config: { dataDir: '', ...config }, secrets: { masterKeys, ...(vaultToken && { vaultToken }) } },
    'postgresql',
    platform,
    async () => false,
  )
}
const problemOf = (loading: Promise<unknown>): Promise<string> =>
  loading.then(
    () => '',
    (error: unknown) => String(error),
  )

/** What a start prints: it begins with the setting. */
const ONE_LINE = /^StartError: PAWL_(VAULT_KEY_URL|MASTER_KEY): [^\n]+$/

test('wrapped keys and plain ones stand beside each other, in their order', async () => {
  const [one, two] = [randomBytes(32), randomBytes(32)]
  expect(await load(`${wrap(one)},${two.toString('base64')}`)).toEqual([one, two])
  expect(asked.splice(0)).toEqual(['POST /v1/transit/decrypt/pawl'])
})

test('the command line has the service make a key, and a start opens it', async () => {
  const env = { PAWL_VAULT_KEY_URL: url, PAWL_VAULT_TOKEN: TOKEN }
  const { code, stdout } = await runCli(['key', 'create', '--wrapped'], env)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^vault:v1:[A-Za-z0-9+/]+=*\n$/)
  expect((await load(stdout.trim()))[0]).toHaveLength(32)
  const without = await runCli(['key', 'create', '--wrapped'], {})
  expect(without).toMatchObject({ stdout: '', stderr: expect.stringContaining('PAWL_VAULT_KEY_URL is not set') })
})

test.each<[string, () => Promise<unknown>, RegExp]>([
  ['nobody to unwrap it', () => load(wrap(randomBytes(32)), {}), /PAWL_VAULT_KEY_URL does not say who unwraps it$/],
  [
    'a wrong token',
    () => load(wrap(randomBytes(32)), { vaultKeyUrl: url, vaultToken: 'marked' }),
    /answered with status 403: look at PAWL_VAULT_TOKEN, and at what it allows$/,
  ],
  [
    'a key of another service',
    () => load(`vault:v1:${randomBytes(60).toString('base64')}`),
    /refuses to decrypt \(status 400\): look at the key in PAWL_VAULT_KEY_URL, and at PAWL_MASTER_KEY$/,
  ],
  [
    'something else wrapped',
    () => load(wrap(randomBytes(16))),
    /what is wrapped is not a key of 32 bytes; pawl key create --wrapped makes one$/,
  ],
  [
    'a service that is away',
    () => load(wrap(randomBytes(32)), { vaultKeyUrl: 'http://127.0.0.1:1/v1/transit/keys/pawl' }),
    /PAWL_VAULT_KEY_URL: http:\/\/127\.0\.0\.1:1 refuses connections \(ECONNREFUSED\): nothing listens there/,
  ],
])('a start with %s is refused in one line', async (_, loading, message) => {
  const problem = await problemOf(loading())
  expect(problem).toMatch(message)
  expect(problem).toMatch(ONE_LINE)
  expect(problem).not.toMatch(/marked|message authentication|permission denied/)
})

test.each([
  ['no JSON', { status: 200, body: 'marked' }, 'as a transit engine does'],
  ['no data', { status: 200, body: '{"marked":1}' }, 'as a transit engine does'],
  ['a redirect', { status: 307, body: 'marked' }, 'redirects are not followed'],
  ['that of a sealed one', { status: 503, body: 'marked' }, 'it is sealed'],
  ['that of a path that it lacks', { status: 404, body: 'marked' }, 'look at the path'],
  ['no object', { status: 200, body: '["marked"]' }, 'as a transit engine does'],
  ['a key twice', { status: 200, body: '{"data":{"plaintext":"marked","plaintext":"marked"}}' }, 'the member "plaintext" twice'],
  ['its data twice', { status: 200, body: '{"data":{"plaintext":"marked"},"data":{}}' }, 'the member "data" twice'],
  ['larger than any key', { status: 200, body: `{"marked":"${'x'.repeat(100_000)}"}` }, 'as a transit engine does'],
])('an answer that is %s is refused without repeating it', async (_, body, says) => {
  spoiled = body
  const problem = await problemOf(load(wrap(randomBytes(32)))).finally(() => {
    spoiled = undefined
  })
  expect(problem).toMatch(ONE_LINE)
  expect(problem).toContain('PAWL_VAULT_KEY_URL: ')
  expect(problem).toContain(says)
  expect(problem).not.toContain('marked')
})

test.each<[string, string, string]>([
  ['resets', '', 'broke the connection (ECONNRESET): its log may say why'],
  ['speaks something else', 'SSH-2.0-x\r\n', 'does not answer in HTTP (HPE_INVALID_CONSTANT): '],
  ['hints without end', 'HTTP/1.1 103 x\r\n\r\n'.repeat(1_000), 'sends interim answers without end'],
])('a service that %s is told with its setting and the cause', async (_, says, problem) => {
  const broken = createTcpServer((socket) => {
    socket.on('error', () => undefined).once('data', () => (says === '' ? socket.resetAndDestroy() : socket.write(says)))
  })
  await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve))
  const { origin, pathname } = new URL(url.replace(/:\d+/, `:${(broken.address() as AddressInfo).port}`))
  const told = await problemOf(load(wrap(randomBytes(32)), { vaultKeyUrl: origin + pathname, vaultToken: TOKEN }))
  broken.close()
  expect(told).toMatch(ONE_LINE)
  expect(told).toContain(`PAWL_VAULT_KEY_URL: ${origin} ${problem}`)
})
