// pawl serve --phone as the developer of an app runs it, on loopback: TLS that the authority makes trusted, nothing of the bank behind it, and a
// QR code that is the configuration of the SDK.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, request } from 'node:https'
import { decodeQR } from 'qr/decode.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, sendJson } from '../../phone/http.ts'
import { readSdkConfiguration } from '../../phone/v4/state.ts'
import { createBank, readApplication } from '../helpers/bank.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Installation,
  runNode,
  type Running,
  startNode,
} from '../helpers/process.ts'

const START = ['bin/pawl.mjs', 'serve', '--phone', '--phone-host', '127.0.0.1', '--phone-port', '0']

let installation: Installation
let authority: string
let port: string
let env: Readonly<Record<string, string>>
let pawl: Running
let url: string
beforeAll(async () => {
  installation = await createInstallation('embedded')
  authority = join(installation.dataDir, 'phone-tls/authority.crt')
  port = String(await findQuietPort())
  env = { ...installation.env, PAWL_PORT: port, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_LOG_LEVEL: 'warn' }
  pawl = await start()
  url = phonesIn(pawl)
})
afterAll(endEverything)

async function start(): Promise<Running> {
  const running = startNode(START, env)
  await running.printed('Ready.')
  return running
}

const phonesIn = (running: Running): string => /^Phones: (https:\S+)$/m.exec(running.output())?.[1] ?? ''
const bank = () => createBank(`http://127.0.0.1:${port}`, `admin:${ADMIN_PASSWORD}`)

/** Asks under TLS with this authority. Rejects where the certificate is not trusted. */
function ask(method: string, path: string, ca?: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ ...(ca !== undefined && { ca: readFileSync(ca) }), maxCachedSessions: 0 })
    const outgoing = request(url + path, { method, agent }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      incoming.on('end', () => {
        agent.destroy()
        resolve({ status: incoming.statusCode, text })
      })
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/** The text of a QR code of half blocks, in which a filled half is light. */
function readQrCode(lines: readonly string[]): string {
  const scale = 4
  const rows = lines.flatMap((line) => [
    line.split('').map((char) => char === '█' || char === '▀'),
    line.split('').map((char) => char === '█' || char === '▄'),
  ])
  const [width, height] = [(rows[0]?.length ?? 0) * scale, rows.length * scale]
  const data = new Uint8Array(width * height * 4)
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const light = rows[Math.floor(y / scale)]?.[Math.floor(x / scale)] === true ? 255 : 0
      data.set([light, light, light, 255], (y * width + x) * 4)
    }
  return decodeQR({ width, height, data })
}

describe('a phone', () => {
  test('reaches under TLS what phones call', async () => {
    const { status, text } = await ask('POST', '/pa/v3/status', authority)
    expect(status).toBe(200)
    expect(JSON.parse(text)).toMatchObject({ status: 'OK' })
  })

  test.each(['/admin/applications', '/registration?userId=a', '/openapi.json', '/console/', '/metrics'])(
    'does not reach %s',
    async (path) => {
      expect((await ask('GET', path, authority)).status).toBe(404)
    },
  )

  test('that does not trust the authority is refused by itself, which is told once', async () => {
    await expect(ask('POST', '/pa/v3/status')).rejects.toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
    await expect(ask('POST', '/pa/v3/status')).rejects.toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
    await expect.poll(() => pawl.output()).toContain(`does the phone trust ${authority}?\n`)
    expect(pawl.output().match(/does the phone trust/g)).toHaveLength(1)
  })

  test('that speaks no TLS is not answered', async () => {
    await expect(sendJson(url.replace('https', 'http'), 'POST', '/pa/v3/status', {})).rejects.toThrow()
  })

  test('of the terminal is bound, and approves', async () => {
    const code = await bank().call('POST', '/registration', { userId: 'dana' })
    const [activationCode = ''] = String(member(code.json, 'activationQrCodeData')).split('#')
    const store = ['--store', join(installation.directory, 'phones.json')]
    const phone = (...words: readonly string[]) =>
      runNode(['bin/pawl.mjs', 'phone', ...words, ...store], {
        ...installation.env,
        PAWL_PHONE_PASSWORD: '2468',
        PAWL_PORT: port,
        NODE_EXTRA_CA_CERTS: authority,
      })
    const admin = ['--admin', `admin:${ADMIN_PASSWORD}`]
    const bound = await phone('bind', activationCode, '--name', 'dana', '--app', 'my-app', '--insecure-store', ...admin)
    expect(bound).toMatchObject({ code: 0, stderr: '' })
    await bank().call('POST', '/registration/commit', { userId: 'dana' })
    const asked = await bank().call('POST', '/operations', { userId: 'dana', template: 'login' })
    expect((await phone('approve')).stdout).toContain(`dana approved ${String(member(asked.json, 'operationId'))}.`)
  })

  test('of the demo approves with what is printed for it', async () => {
    const [, wanted = ''] = /; the demo wants (--phones-url \S+) as well\.$/m.exec(pawl.output()) ?? []
    const demo = ['demo', '--admin', `admin:${ADMIN_PASSWORD}`, '--store', join(installation.directory, 'demo.json')]
    const more = { PAWL_PORT: port, NODE_EXTRA_CA_CERTS: authority }
    const { code, stdout } = await runNode(['bin/pawl.mjs', ...demo, ...wanted.split(' ')], { ...installation.env, ...more })
    expect(code).toBe(0)
    expect(stdout.match(/"status":"APPROVED"/g)).toHaveLength(2)
  })
})

describe('what is printed', () => {
  test('says who reaches what, and where the bank is: on this machine alone', () => {
    const lines = pawl.output().split('\n')
    expect(lines).toContain(`Phones have to trust ${authority}: docs/start/app-developer.md says how.`)
    expect(lines).toContain(`Cloud API and administration, never for phones: http://127.0.0.1:${port}`)
    expect(lines.find((line) => line.startsWith('pawl listens on '))).toMatch(/^pawl listens on http:\/\/127\.0\.0\.1:\d+$/)
    expect(pawl.output()).toContain("nothing of the bank's half")
  })

  test('shows the configuration of the SDK as text and as a QR code', async () => {
    const lines = pawl.output().split('\n')
    const at = lines.indexOf('Compiled into the app my-app, for EC_P384:')
    const text = lines[at + 1] ?? ''
    const drawn = lines.slice(
      at + 2,
      lines.findIndex((line) => line.startsWith('pawl listens on ')),
    )
    expect(readQrCode(drawn)).toBe(text)
    const app = readApplication(await bank().call('GET', '/admin/application?id=my-app'))
    const { applicationKey, applicationSecret, p256, p384 } = readSdkConfiguration(text)
    expect({ applicationKey, applicationSecret }).toEqual({
      applicationKey: app.applicationKey,
      applicationSecret: app.applicationSecret,
    })
    expect([p256?.length, p384.length]).toEqual([65, 97])
  })

  test('the bank tells apps the address that phones reach', async () => {
    const detail = await bank().call('GET', '/admin/applications/my-app')
    expect(member(detail.json, 'responseObject', 'serviceBaseUrl')).toBe(url)
  })
})

test('a signal ends both, and the next start goes on with the same authority and application', async () => {
  const before = readFileSync(authority, 'utf8')
  const [, shown] = /^(AR\S+)$/m.exec(pawl.output()) ?? []
  const { code, signal } = await pawl.end('SIGTERM')
  expect({ code, signal }).toEqual({ code: 0, signal: null })
  await expect(sendJson(`http://127.0.0.1:${port}`, 'GET', '/health/live')).rejects.toThrow()
  pawl = await start()
  expect(readFileSync(authority, 'utf8')).toBe(before)
  expect(pawl.output()).toContain(`\n${shown}\n`)
  await pawl.end('SIGINT')
})

test('a server that cannot start ends it with its exit code', async () => {
  const running = startNode(['bin/pawl.mjs'], env)
  await running.printed('Ready.')
  const other = await createInstallation('embedded')
  const { code, stderr, stdout } = await runNode(START, { ...env, ...other.env })
  expect(code).toBe(1)
  expect(stderr).toContain(`127.0.0.1:${port} is in use by another program`)
  expect(stdout).not.toContain('Ready.')
  await running.end('SIGTERM')
})

test('a start without it makes no certificate', async () => {
  const other = await createInstallation('embedded')
  const running = startNode(['bin/pawl.mjs', 'serve'], { ...other.env, PAWL_PORT: '0' })
  await running.printed('Ready.')
  expect(existsSync(join(other.dataDir, 'phone-tls'))).toBe(false)
  expect(running.output()).not.toContain('Phones:')
  await running.end('SIGTERM')
})
