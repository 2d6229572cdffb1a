// pawl phone against a server: every version and algorithm, both dialects, and the file that phones are kept in.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PNG } from 'pngjs'
import { encode } from 'uqr'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4-crypto.ts'
import { type CliEnd, runCli } from '../helpers/cli.ts'
import { expectOk, startWorld, type World } from '../helpers/world.ts'

let world: World
let sdkConfig = ''
const directory = mkdtempSync(join(tmpdir(), 'pawl-phone-'))
beforeAll(async () => {
  world = await startWorld()
  const answer = expectOk(await world.bank.call('GET', '/admin/applications/test-app'))
  sdkConfig = String(member(answer.json, 'responseObject', 'mobileSdkConfig'))
})
afterAll(async () => {
  await world.close()
  rmSync(directory, { recursive: true, force: true })
})

const PASSWORD = 'a good one'
const phone = (store: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CliEnd> =>
  runCli(['phone', ...args], { PAWL_PHONES: join(directory, store), PAWL_PHONE_PASSWORD: PASSWORD, ...env })

async function ok(end: Promise<CliEnd>): Promise<string> {
  const { code, stdout, stderr } = await end
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function register(userId: string): Promise<string> {
  return String(member(expectOk(await world.bank.register(userId)).json, 'activationQrCodeData'))
}

/** Binds a phone of a new user in a file of its own, and commits. */
async function bindPhone(store: string, ...more: string[]): Promise<string> {
  const userId = `user of ${store}`
  const given = ['--name', 'mine', '--phones-url', world.url, '--sdk-config', sdkConfig, '--insecure-store', '--json', ...more]
  const bound = JSON.parse(await ok(phone(store, ['bind', await register(userId), ...given]))) as Record<string, unknown>
  const view = expectOk(await world.bank.view(userId)).json
  expect(member(view, 'activationFingerprint')).toBe(bound['fingerprint'])
  expectOk(await world.bank.commit(userId))
  return userId
}

async function ask(userId: string, amount = '10.00'): Promise<string> {
  const parameters = { amount, currency: 'EUR', iban: 'DE89370400440532013000' }
  return String(
    member(expectOk(await world.bank.createOperation({ userId, template: 'payment', parameters })).json, 'operationId'),
  )
}
const statusOf = async (id: string): Promise<unknown> => member((await world.bank.readOperation(id)).json, 'status')

const KINDS = [
  ['3.0', ['--protocol', '3.0']],
  ['3.1', ['--protocol', '3.1', '--dialect', 'svc']],
  ['3.2', ['--protocol', '3.2']],
  ['3.3', ['--dialect', 'svc']],
  ...PHONE_ALGORITHMS.map((name, i) => [name, ['--algorithm', name, '--dialect', i === 1 ? 'svc' : 'powerauth']] as const),
] as const

describe.each(KINDS)('a phone of %s', (name, given) => {
  const store = `${name}.json`
  let userId = ''
  beforeAll(async () => {
    userId = await bindPhone(store, ...given)
  })

  test('lists, shows, approves and rejects', async () => {
    expect(await ok(phone(store, ['list']))).toBe('Nothing waits.\n')
    const first = await ask(userId)
    const shown = await ok(phone(store, ['list']))
    expect(shown).toContain(first)
    expect(shown.replaceAll(/ +/g, ' ')).toContain('| Amount €10.00 |')
    const approved = await ok(phone(store, ['approve']))
    expect(approved).toContain(`mine approved ${first}.`)
    expect(await statusOf(first)).toBe('APPROVED')
    const [second, third] = [await ask(userId), await ask(userId, '11.00')]
    expect(await phone(store, ['approve'])).toMatchObject({ code: 2 })
    await ok(phone(store, ['reject', second, '--reason', 'UNEXPECTED_OPERATION']))
    expect(await statusOf(second)).toBe('REJECTED')
    await ok(phone(store, ['approve', '--all']))
    expect(await statusOf(third)).toBe('APPROVED')
    expect(await phone(store, ['approve', third])).toMatchObject({ code: 4 })
  })

  test('approves without a connection', async () => {
    const id = await ask(userId)
    const qr = String(member(expectOk(await world.bank.offlineQr(id)).json, 'operationQrCodeData'))
    const answer = JSON.parse(await ok(phone(store, ['offline', qr, '--json']))) as Record<string, string>
    expectOk(await world.bank.offlineOtp(id, answer['otp'], answer['nonce']))
    expect(await statusOf(id)).toBe('APPROVED')
    expect(await phone(store, ['offline', qr.replace('10.00', '99.00')])).toMatchObject({ code: 1, stdout: '' })
  })

  test("a wrong password is the server's to refuse, and counts", async () => {
    const id = await ask(userId)
    const wrong = await phone(store, ['approve', id], { PAWL_PHONE_PASSWORD: 'a wrong one' })
    expect(wrong).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^the server refuses: HTTP 401 .*\n$/) as unknown,
    })
    const status = JSON.parse(await ok(phone(store, ['status', '--json']))) as Record<string, unknown>
    // Of 4.0 in the dialect Svc the status is a word.
    const isWord = name === 'EC_P384_ML_L3'
    expect(status).toMatchObject({ state: 'ACTIVE', ...(!isWord && { failedAttempts: 1, maxFailedAttempts: 5 }) })
    await ok(phone(store, ['approve', id]))
    if (!isWord) expect(JSON.parse(await ok(phone(store, ['status', '--json'])))).toMatchObject({ failedAttempts: 0 })
  })

  test('signs, once, and has a token', async () => {
    expect(await ok(phone(store, ['sign', '--send']))).toMatch(/^HTTP 200 /)
    const request = JSON.parse(await ok(phone(store, ['sign', '--body', '{"a":1}', '--json']))) as {
      url: string
      headers: Record<string, string>
      body: string
    }
    const send = async () => (await fetch(request.url, { method: 'POST', headers: request.headers, body: request.body })).status
    expect([await send(), await send()]).toEqual([200, 401])
    expect(await ok(phone(store, ['token']))).toMatch(/^X-(PowerAuth|Svc)-Token: /)
    expect(await ok(phone(store, ['token', '--remove']))).toBe('1 removed\n')
    expect(await ok(phone(store, ['list']))).toBe('Nothing waits.\n')
  })

  test('takes another name, another password, and biometry', async () => {
    await ok(phone(store, ['rename', 'Phone of tests']))
    expect(member((await world.bank.view(userId)).json, 'name')).toBe('Phone of tests')
    const next = 'another good one'
    const wrong = await phone(store, ['password'], { PAWL_PHONE_PASSWORD: 'a wrong one', PAWL_PHONE_NEW_PASSWORD: next })
    expect(wrong.code).toBe(1)
    await ok(phone(store, ['password'], { PAWL_PHONE_NEW_PASSWORD: next }))
    expect(await ok(phone(store, ['sign', '--send'], { PAWL_PHONE_PASSWORD: next }))).toMatch(/^HTTP 200 /)
    await ok(phone(store, ['password'], { PAWL_PHONE_PASSWORD: next, PAWL_PHONE_NEW_PASSWORD: PASSWORD }))
    expect(await phone(store, ['sign', '--biometry', '--send'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('off') as unknown,
    })
    await ok(phone(store, ['biometry', 'on']))
    expect(await ok(phone(store, ['sign', '--biometry', '--send']))).toMatch(/^HTTP 200 /)
    await ok(phone(store, ['biometry', 'off']))
    expect((await phone(store, ['sign', '--biometry', '--send'])).code).toBe(1)
  })

  test('is removed', async () => {
    await ok(phone(store, ['remove']))
    expect(member((await world.bank.view(userId)).json, 'registration')).toBe('NONE')
    expect(await phone(store, ['list'])).toMatchObject({ code: 4 })
  })
})

test.each(PHONE_ALGORITHMS)('a phone of 3.3 moves to %s and goes on', async (algorithm) => {
  const store = `upgrade-${algorithm}.json`
  const userId = await bindPhone(store)
  await ok(phone(store, ['list']))
  expect(await ok(phone(store, ['upgrade', '--algorithm', algorithm]))).toContain(`mine is a phone of 4.0 (${algorithm})`)
  expect(JSON.parse(await ok(phone(store, ['status', '--json'])))).toMatchObject({ protocol: '4.0', currentVersion: 4 })
  const id = await ask(userId)
  await ok(phone(store, ['approve', id]))
  expect(await statusOf(id)).toBe('APPROVED')
  expect(await phone(store, ['upgrade'])).toMatchObject({ code: 1 })
})

test('an upgrade whose last answer was lost is found out by the next attempt', async () => {
  const store = 'upgrade-lost.json'
  await bindPhone(store)
  const file = join(directory, store)
  const before = JSON.parse(readFileSync(file, 'utf8')) as { version: number; phones: { mine: Record<string, unknown> } }
  await ok(phone(store, ['upgrade', '--algorithm', 'EC_P384']))
  const after = JSON.parse(readFileSync(file, 'utf8')) as typeof before
  // What the file held when the answer did not come.
  writeFileSync(file, JSON.stringify({ version: 1, phones: { mine: { ...before.phones.mine, pending: after.phones.mine } } }))
  await ok(phone(store, ['upgrade', '--algorithm', 'EC_P384']))
  expect(await ok(phone(store, ['sign', '--send']))).toMatch(/^HTTP 200 /)
})

test('several phones in one sealed file; nothing of it is in the clear, and only its passphrase opens it', async () => {
  const env = { PAWL_PHONE_PASSPHRASE: 'correct horse' }
  const app = ['--phones-url', world.url, '--sdk-config', sdkConfig]
  await ok(phone('sealed.json', ['bind', await register('sealed one'), '--name', 'one', ...app], env))
  const file = join(directory, 'sealed.json')
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain('activationId')
  expect(text).not.toContain(sdkConfig)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await ok(phone('sealed.json', ['bind', await register('sealed two'), '--name', 'two', '--algorithm', 'EC_P384', ...app], env))
  expect(await ok(phone('sealed.json', ['phones'], env))).toMatch(/^PHONE .*\none +.* 3\.3 .*\ntwo +.* 4\.0 +EC_P384 /)
  expect(await phone('sealed.json', ['status'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('one, two') as unknown,
  })
  expect(await ok(phone('sealed.json', ['status', '--phone', 'two'], env))).toContain('PENDING_COMMIT')
  const wrong = await phone('sealed.json', ['phones'], { PAWL_PHONE_PASSPHRASE: 'wrong horse' })
  expect(wrong).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('passphrase') as unknown })
  expect(await phone('sealed.json', ['phones'])).toMatchObject({ code: 2 })
  const changed = JSON.parse(text) as { sealed: string }
  writeFileSync(file, JSON.stringify({ ...changed, sealed: `A${changed.sealed.slice(1)}` }))
  expect((await phone('sealed.json', ['phones'], env)).code).toBe(changed.sealed.startsWith('A') ? 0 : 5)
})

test('a file without passphrase, or one that another process has, is refused', async () => {
  const app = ['--phones-url', world.url, '--sdk-config', sdkConfig]
  await bindPhone('open.json')
  expect(await phone('open.json', ['bind', 'AAAAA-AAAAA-AAAAA-AAAAA', ...app])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--insecure-store') as unknown,
  })
  const lock = join(directory, 'open.json.lock')
  writeFileSync(lock, '1')
  expect(await phone('open.json', ['phones'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('in use by process 1') as unknown,
  })
  // A process that has ended holds nobody up.
  writeFileSync(lock, '4194999')
  await ok(phone('open.json', ['phones']))
  expect(statSync(lock, { throwIfNoEntry: false })).toBeUndefined()
})

describe('a code', () => {
  const app = () => ['--phones-url', world.url, '--sdk-config', sdkConfig, '--insecure-store']

  test('is read from a picture', async () => {
    const file = join(directory, 'qr.png')
    writeFileSync(file, drawPicture(await register('picture')))
    await ok(phone('picture.json', ['bind', '--picture', file, ...app()]))
    writeFileSync(file, drawPicture(undefined))
    expect(await phone('picture.json', ['bind', '--picture', file, ...app()])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('shows no QR code') as unknown,
    })
    writeFileSync(file, 'no picture')
    expect((await phone('picture.json', ['bind', '--picture', file, ...app()])).stderr).toContain('is no PNG picture')
  })

  test('that the server of the application has not signed is refused, and leaves no phone', async () => {
    const [code = '', signature = ''] = (await register('unsigned')).split('#')
    const other = `${code.startsWith('A') ? 'B' : 'A'}${code.slice(1)}#${signature}`
    expect(await phone('unsigned.json', ['bind', other, ...app()])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not signed') as unknown,
    })
    expect(await phone('unsigned.json', ['bind', 'AAAAA-AAAAA-AAAAA-AAAAA', ...app()])).toMatchObject({ code: 1 })
    expect((await phone('unsigned.json', ['phones'])).stdout).not.toContain('activation')
  })

  test('comes with what is compiled into the app, from the command line or from the server', async () => {
    const code = await register('values')
    expect(await phone('values.json', ['bind', code, '--phones-url', world.url, '--insecure-store'])).toMatchObject({ code: 2 })
    const values = ['--app-key', world.app.applicationKey, '--app-secret', world.app.applicationSecret]
    const masterKey = Buffer.from(world.app.masterPublicKey).toString('base64')
    const given = [...values, '--master-key', masterKey, '--protocol', '3.1']
    await ok(phone('values.json', ['bind', code, '--phones-url', world.url, '--insecure-store', ...given]))
    const admin = ['--app', 'test-app', '--url', world.url, '--admin', world.bank.credential ?? '']
    const of4 = ['--algorithm', 'EC_P384', '--phones-url', world.url, '--insecure-store']
    await ok(phone('values.json', ['bind', await register('values of 4'), ...of4, ...admin]))
  })
})

test('a server that does not answer is one line', async () => {
  await bindPhone('silent.json')
  const file = join(directory, 'silent.json')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(world.url, 'http://127.0.0.1:9'))
  expect(await phone('silent.json', ['list'])).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/^the server does not answer: .*\n$/) as unknown,
  })
})

/** A picture of a QR code of four pixels a module, or of nothing. */
function drawPicture(text: string | undefined): Uint8Array {
  const { data, size } = text === undefined ? { data: [], size: 40 } : encode(text, { ecc: 'L', border: 4 })
  const picture = new PNG({ width: size * 4, height: size * 4 })
  for (let y = 0; y < picture.height; y += 1) {
    for (let x = 0; x < picture.width; x += 1) {
      const shade = data[Math.floor(y / 4)]?.[Math.floor(x / 4)] === true ? 0 : 255
      picture.data.set([shade, shade, shade, 255], (y * picture.width + x) * 4)
    }
  }
  return PNG.sync.write(picture)
}
