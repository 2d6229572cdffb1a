// The commands that call the bank's API, against a server: what they do, what they print, and how they end.
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { renderBash, renderFish, renderZsh } from '../../cli/completion.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { layOut } from '../../cli/output.ts'
import { withProgress } from '../../cli/progress.ts'
import { member } from '../../phone/http.ts'
import { type CliInput, runCli } from '../helpers/cli.ts'
import { startWorld, type World } from '../helpers/world.ts'

let world: World
const home = mkdtempSync(join(tmpdir(), 'pawl-cli-'))
beforeAll(async () => {
  world = await startWorld()
})
afterAll(async () => {
  await world.close()
  rmSync(home, { recursive: true, force: true })
})

/** A command line as the administrator. */
const pawl = (line: readonly string[], input?: CliInput) =>
  runCli(line, { HOME: home, PAWL_URL: world.url, PAWL_ADMIN: world.bank.credential ?? '' }, input)
/** The JSON of one that ends well. */
async function json(...line: string[]): Promise<Readonly<Record<string, unknown>>> {
  const { code, stdout, stderr } = await pawl([...line, '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Record<string, unknown>
}

describe('login', () => {
  const env = (): Record<string, string> => ({ HOME: home, XDG_CONFIG_HOME: join(home, 'config') })
  const file = join(home, 'config', 'pawl', 'credential.json')

  test('keeps a credential that is right, for this server and this account alone', async () => {
    const [name = '', secret = ''] = (world.bank.credential ?? '').split(':')
    const line = ['login', '--url', world.url, '--user', name]
    const wrong = await runCli(line, env(), { secrets: ['a wrong password'] })
    expect(wrong).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('HTTP 401') as unknown })
    expect(statSync(file, { throwIfNoEntry: false })).toBeUndefined()
    const right = await runCli(line, env(), { secrets: [secret] })
    expect(right).toEqual({
      code: 0,
      stdout: `${name} at ${world.url}, kept in ${file}\n`,
      stderr: `Password of ${name} at ${world.url}: \n`,
    })
    expect(right.stdout).not.toContain(secret)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await runCli(['app', 'list'], env())).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('test-app') as unknown,
    })
    const empty = await runCli(['app', 'list'], { ...env(), PAWL_URL: '', PAWL_ADMIN: '' })
    expect(empty, 'an empty variable is none').toMatchObject({ code: 0, stderr: '' })
    const elsewhere = await runCli(['app', 'list', '--url', 'http://127.0.0.1:9'], env())
    expect(elsewhere).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('no credential for http://127.0.0.1:9') as unknown,
    })
  })

  test('reads the password from stdin where nobody can be asked', async () => {
    const [name = '', secret = ''] = (world.bank.credential ?? '').split(':')
    const ended = await runCli(['login', '--url', world.url, '--user', name], env(), { input: `${secret}\n` })
    expect(ended.code).toBe(0)
  })

  test('a file that others may read is not used, and --forget removes it', async () => {
    chmodSync(file, 0o644)
    expect(await runCli(['app', 'list'], env())).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('chmod 600') as unknown,
    })
    chmodSync(file, 0o600)
    writeFileSync(file, '{}')
    expect((await runCli(['app', 'list'], env())).stderr).toContain('holds no credential')
    expect((await runCli(['login', '--forget'], env())).stdout).toBe('forgotten\n')
    expect(await runCli(['app', 'list'], env())).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('pawl login') as unknown,
    })
  })
})

test('users: a back end gets a credential, a new password, and is removed', async () => {
  const made = await json('user', 'create', 'cli-bank', 'integration', '--app', 'test-app')
  expect(made).toMatchObject({ username: 'cli-bank', role: 'integration', application: 'test-app' })
  const changed = await json('user', 'password', 'cli-bank')
  expect(changed['password']).not.toBe(made['password'])
  expect(await json('user', 'show', 'cli-bank')).toMatchObject({ username: 'cli-bank', role: 'integration' })
  expect(await pawl(['user', 'show', 'cli-nobody'])).toMatchObject({ code: 4, stderr: 'there is no credential cli-nobody\n' })
  const listed = await pawl(['user', 'list'])
  expect(listed.stdout).toMatch(/^USERNAME +ROLE.*\n/)
  expect(listed.stdout).toContain('cli-bank')
  const admin = `cli-bank:${String(changed['password'])}`
  const forbidden = await runCli(['user', 'list', '--admin', admin], { PAWL_URL: world.url })
  expect(forbidden).toMatchObject({
    code: 5,
    stdout: '',
    stderr: expect.stringMatching(/^GET http:\/\/\S+\/admin\/users: HTTP 403 .*: --admin gives another\n$/) as unknown,
  })
  expect(await json('user', 'remove', 'cli-bank')).toEqual({ status: 'OK' })
  const weak = await pawl(['user', 'create', 'weak', 'read-only', '--password-stdin'], { input: 'short\n' })
  expect(weak).toMatchObject({ code: 1, stderr: expect.stringContaining('password') as unknown })
})

test('registrations: created with a QR code, shown, committed, blocked, found, and removed', async () => {
  const created = await pawl(['registration', 'create', 'cli-alice'])
  expect(created.code).toBe(0)
  expect(created.stdout).toMatch(/code +[A-Z2-7]{5}(-[A-Z2-7]{5}){3}\n/)
  expect(created.stdout).toMatch(/[█▀▄]{10}/)
  expect((await pawl(['registration', 'show', 'cli-alice', '--without-qr'])).stdout).not.toMatch(/[█▀▄]{10}/)
  expect(await json('registration', 'show', 'cli-alice')).toMatchObject({ registration: 'CREATED' })
  const early = await pawl(['registration', 'commit', 'cli-alice'])
  expect(early).toMatchObject({ code: 4, stderr: expect.stringContaining('ERROR_REGISTRATION') as unknown })
  expect(await json('registration', 'remove', 'cli-alice')).toEqual({ status: 'OK' })
  const { userId } = await world.activePhone('3.3')
  await json('registration', 'block', userId, '--reason', 'LOST')
  const found = (await json('registration', 'list', '--user', userId))['registrations'] as Record<string, unknown>[]
  expect(found).toMatchObject([{ userId, state: 'BLOCKED' }])
  const history = await json('registration', 'history', String(found[0]?.['activationId']))
  expect(history).toMatchObject({ blockReason: 'LOST' })
  await json('registration', 'unblock', userId)
  await json('registration', 'flags', String(found[0]?.['activationId']), '--flag', 'VERIFIED')
  expect(JSON.stringify(await json('registration', 'history', String(found[0]?.['activationId'])))).toContain('VERIFIED')
  await json('registration', 'claims', userId, '{"given_name":"Alice"}')
  expect(JSON.stringify(await json('registration', 'claims', userId))).toContain('"given_name":"Alice"')
  await json('registration', 'claims', userId, '--remove')
  expect(JSON.stringify((await pawl(['registration', 'claims', userId])).stdout)).not.toContain('Alice')
  expect(await pawl(['registration', 'claims', userId, '[]'])).toMatchObject({ code: 2 })
  expect(await json('registration', 'show', userId)).toMatchObject({ registration: 'ACTIVE' })
  const withOtp = await pawl(['registration', 'create', 'cli-otp', '--otp', '123456', '--otp-phase', 'ON_COMMIT'])
  expect(withOtp).toMatchObject({ code: 0, stderr: '' })
  expect(await pawl(['registration', 'block', 'cli-nobody'])).toMatchObject({ code: 4 })
})

test('registrations of a user who may have several are named by their ids', async () => {
  expect(await pawl(['app', 'change', 'test-app', '--multi-device', 'maybe'])).toMatchObject({ code: 2 })
  await json('app', 'change', 'test-app', '--multi-device', 'yes')
  const first = await json('registration', 'create', 'cli-several')
  expect(first).not.toHaveProperty('registrationId')
  expect(await pawl(['registration', 'create', 'cli-several'])).toMatchObject({ code: 1 })
  const id = String((await json('registration', 'create', 'cli-several', '--further'))['registrationId'])
  const ambiguous = await pawl(['registration', 'show', 'cli-several'])
  expect(ambiguous).toMatchObject({ code: 1, stderr: expect.stringContaining('/v2/registrations') as unknown })
  expect(await json('registration', 'show', '--id', id)).toMatchObject({ registrationId: id, state: 'CREATED' })
  expect(await pawl(['registration', 'commit', '--id', id])).toMatchObject({ code: 1 })
  expect(await pawl(['registration', 'block', '--id', id])).toMatchObject({ code: 1 })
  expect(await pawl(['registration', 'remove'])).toMatchObject({ code: 2 })
  expect(await json('registration', 'remove', '--id', id)).toEqual({ status: 'OK' })
  expect(await json('registration', 'show', 'cli-several')).toMatchObject({ registration: 'CREATED' })
  await json('app', 'change', 'test-app', '--multi-device', 'no')
})

test('one-time passwords and the login of a receiver come from a file or the environment as well', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'pawl-otp-')), 'otp')
  const env = { PAWL_URL: world.url, PAWL_ADMIN: world.bank.credential ?? '' }
  const create = (user: string, args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    runCli(['registration', 'create', user, '--otp-phase', 'ON_COMMIT', ...args], { ...env, ...more })
  // A phase is nothing without a password.
  expect(await create('otp-none', [])).toMatchObject({ code: 1 })
  writeFileSync(file, '123456\r\n')
  expect(await create('otp-file', ['--otp-file', file])).toMatchObject({ code: 0, stderr: '' })
  expect(await create('otp-environment', [], { PAWL_OTP: '123456' })).toMatchObject({ code: 0, stderr: '' })
  const id = '0190b5a4-0000-7000-8000-000000000000'
  for (const [args, more] of [
    [['--otp-file', file], {}],
    [[], { PAWL_OTP: '123456' }],
  ] as const) {
    const end = await runCli(['operation', 'offline', id, ...args, '--nonce', 'x'], { ...env, ...more })
    expect(end).toMatchObject({ code: 1, stderr: expect.stringContaining('OTP') as unknown })
  }
  writeFileSync(file, '\n')
  expect(await create('otp-empty', ['--otp-file', file])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is empty') as unknown,
  })
  expect(await create('otp-missing', ['--otp-file', `${file}.missing`])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--otp-file') as unknown,
  })
  writeFileSync(file, 'receiver:password of the receiver\n')
  const hook = ['webhook', 'create', 'OPERATION', 'https://bank.example/pawl', '--user-file', file]
  expect(await runCli(hook, env)).toMatchObject({ code: 0, stderr: '' })
})

test('operations: for one device, with a flag and an end', async () => {
  const { userId, phone } = await world.activePhone('3.3')
  const registrationId = phone.state.activationId
  const expires = '2099-01-01T00:00:00Z'
  const options = ['--registration', registrationId, '--flag', 'VIP', '--expires', expires]
  const created = await json('operation', 'create', userId, 'login', ...options)
  expect(created).toMatchObject({ userId, registrationId, applicationFlag: 'VIP', timestampExpires: Date.parse(expires) })
  expect(await json('operation', 'show', String(created['operationId']))).toEqual(created)
  const late = await pawl(['operation', 'create', userId, 'login', '--expires', 'tomorrow'])
  expect(late).toMatchObject({ code: 2, stderr: expect.stringContaining('tomorrow is no time') as unknown })
})

test('operations: created, found, shown, taken offline, cancelled, and waited for', async () => {
  const { userId } = await world.activePhone('3.3')
  const payment = ['--parameter', 'amount=10.00', '--parameter', 'currency=EUR', '--parameter', 'iban=DE89370400440532013000']
  const created = await json('operation', 'create', userId, 'payment', ...payment, '--idempotency-key', 'once')
  const again = await json('operation', 'create', userId, 'payment', ...payment, '--idempotency-key', 'once')
  expect(again['operationId']).toBe(created['operationId'])
  const id = String(created['operationId'])
  const listed = await pawl(['operation', 'list', '--user', userId])
  expect(listed.stdout).toContain(id)
  expect(listed.stdout).toMatch(/\d{4}-\d\d-\d\dT/)
  expect((await pawl(['operation', 'offline', id])).stdout).toMatch(/[█▀▄]{10}/)
  const { nonce } = await json('operation', 'offline', id)
  const otp = await pawl(['operation', 'offline', id, '0000000000000000', '--nonce', String(nonce)])
  expect(otp).toMatchObject({ code: 1, stderr: expect.stringContaining('ERROR_OTP_INVALID') as unknown })
  const waited = await pawl(['operation', 'show', id, '--wait', '0'])
  expect(waited).toMatchObject({ code: 1, stderr: `${id} still waits after 0 s\n` })
  await json('operation', 'cancel', id, '--reason', 'WITHDRAWN')
  const ended = await pawl(['operation', 'show', id, '--wait', '5', '--json'])
  expect(ended.code).toBe(1)
  expect(member(JSON.parse(ended.stdout), 'status')).toBe('CANCELED')
  expect((await pawl(['operation', 'show', '00000000-0000-4000-8000-000000000000'])).code).toBe(4)
  expect((await pawl(['operation', 'create', userId, 'payment', '--parameter', 'amount'])).code).toBe(2)
})

test('a message that waits for nothing has no time of 1970', () => {
  expect(layOut([{ attempts: 0, createdAt: 0, nextAttemptAt: 0 }])).toBe(
    'ATTEMPTS  CREATEDAT                 NEXTATTEMPTAT\n0         1970-01-01T00:00:00.000Z  at once\n',
  )
})

test('webhooks: created, changed, rotated, listed, and removed', async () => {
  const made = await json('webhook', 'create', 'operation', 'https://bank.example/pawl', '--app', 'test-app')
  const id = String(made['id'])
  expect(await json('webhook', 'change', id, '--disabled')).toMatchObject({ isEnabled: false, url: 'https://bank.example/pawl' })
  expect(await json('webhook', 'change', id, '--to', 'https://bank.example/new')).toMatchObject({ isEnabled: false })
  expect((await json('webhook', 'rotate', id))['secret']).not.toBe(made['secret'])
  expect((await pawl(['webhook', 'list'])).stdout).toContain('https://bank.example/new')
  expect((await pawl(['webhook', 'deliveries', id])).stdout).toBe('none\n')
  expect(await json('webhook', 'replay', id)).toMatchObject({ replayed: 0 })
  const tried = await pawl(['webhook', 'test', id, '--json'])
  expect(tried).toMatchObject({ code: 1 })
  expect(JSON.parse(tried.stdout)).toMatchObject({
    isDelivered: false,
    error: expect.stringContaining('bank.example') as unknown,
  })
  expect(await json('webhook', 'show', id)).toMatchObject({ id })
  await json('webhook', 'remove', id)
})

test('applications, versions, rules, texts and configuration items', async () => {
  await json('app', 'create', 'cli-app')
  await json('app', 'add-version', 'cli-app', '2.0')
  await json('app', 'set-version', 'cli-app', '2.0', 'off')
  await json('app', 'change', 'cli-app', '--minimum-protocol-version', '3.2', '--protocol3', 'yes')
  const shown = await json('app', 'show', 'cli-app')
  expect(shown).toMatchObject({ minimumProtocolVersion: '3.2', isProtocol3Admitted: true })
  expect(shown['versions']).toContainEqual(expect.objectContaining({ name: '2.0', isSupported: false }))
  await json('app', 'set-text', 'update', 'en', 'Please update')
  await json('app', 'add-rule', '--app', 'cli-app', '--platform', 'IOS', '--required', '2.0.0', '--message', 'update')
  expect((await pawl(['app', 'rules', '--app', 'cli-app'])).stdout).toContain('2.0.0')
  expect((await pawl(['app', 'texts'])).stdout).toContain('Please update')
  await json('app', 'set-config', 'limits', '{"daily":500}', '--app', 'cli-app')
  expect(JSON.stringify(await json('app', 'config', '--app', 'cli-app'))).toContain('"daily":500')
  await json('app', 'set-config', 'limits', '--app', 'cli-app')
  await json('app', 'change', 'cli-app', '--move-to', 'test-app')
  await json('app', 'create', 'junior-app')
  const { responseObject } = await json('app', 'change', 'cli-app', '--spawn', 'junior-app', '--move-to', 'test-app')
  expect(responseObject).toMatchObject({
    transfers: [
      { targets: ['test-app'], type: 'MOVE' },
      { targets: ['junior-app'], type: 'SPAWN' },
    ],
  })
  expect(await pawl(['app', 'change', 'cli-app'])).toMatchObject({ code: 2 })
})

test('a list of templates, as TEMPLATES.md prints one, is put as it is', async () => {
  const printed = /^```json\n([^]*?)^```$/m.exec(readFileSync('docs/TEMPLATES.md', 'utf8'))?.[1] ?? ''
  const file = join(home, 'transfer.json')
  writeFileSync(file, printed)
  for (const name of ['made', 'changed'] as const) {
    expect(await pawl(['template', 'put', `@${file}`]), name).toMatchObject({ code: 0, stderr: '' })
    expect(await json('template', 'show', 'transfer')).toMatchObject((JSON.parse(printed) as object[])[0] ?? {})
  }
  expect(await pawl(['template', 'put', '[1]'])).toMatchObject({ code: 2, stdout: '' })
  // Phones would show what replaced its letters.
  writeFileSync(file, Buffer.from(printed.replace('"Transfer"', '"Virement \u00e9mis"').replaceAll(/[^\0-\xFF]/g, ''), 'latin1'))
  expect(await pawl(['template', 'put', `@${file}`])).toMatchObject({
    code: 2,
    stderr: `the template: ${file} is no UTF-8 text; --help says how to call it\n`,
  })
  await json('template', 'remove', 'transfer')
})

test('the file of a credential is read once, because it may be a pipe', async () => {
  const pipe = join(home, 'pipe')
  execFileSync('mkfifo', [pipe])
  // A second reader would find an empty file.
  const writer = spawn('sh', ['-c', 'printf %s "$1" > "$2"; : > "$2"', 'sh', world.bank.credential ?? '', pipe])
  const { code, stderr } = await runCli(['certificate', 'list', '--admin-file', pipe], { HOME: home, PAWL_URL: world.url })
  writer.kill()
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test('a credential without a colon is named as the fault, and not as a missing one', async () => {
  const given = await pawl(['app', 'list', '--admin', 'admin'])
  expect(given).toMatchObject({ code: 2, stderr: expect.stringMatching(/USER:PASSWORD.*no colon/) as unknown })
})

test('help is no wider than the terminal, and where there is none as wide as the document', async () => {
  const widest = async (columns?: number): Promise<number> => {
    const { code, stdout } = await pawl(['help', 'user', 'password'], { ...(columns !== undefined && { columns }) })
    expect(code).toBe(0)
    return Math.max(...stdout.split('\n').map((line) => line.length))
  }
  expect(await widest(60)).toBeLessThanOrEqual(60)
  expect(await widest(80)).toBeLessThanOrEqual(80)
  const wide = await widest()
  expect(wide).toBeGreaterThan(100)
  expect([await widest(200), await widest(0)]).toEqual([wide, wide])
})

test('a file with a password in Latin-1 is refused: what replaced its letters would be another password', async () => {
  const file = join(home, 'latin-1.txt')
  writeFileSync(file, Buffer.from('admin:mot de pass\xe9', 'latin1'))
  expect(await pawl(['app', 'list', '--admin-file', file])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `--admin-file: ${file} is no UTF-8 text; --help says how to call it\n`,
  })
})

test('templates and the audit log', async () => {
  const payment = await json('template', 'show', 'payment')
  const file = join(home, 'template.json')
  writeFileSync(file, JSON.stringify({ ...payment, source: undefined, templateName: 'cli-payment', expiration: 60 }))
  await json('template', 'put', `@${file}`)
  writeFileSync(file, readFileSync(file, 'utf8').replace('"expiration":60', '"expiration":61'))
  await json('template', 'put', `@${file}`)
  expect(await json('template', 'show', 'cli-payment')).toMatchObject({ expiration: 61 })
  expect((await pawl(['template', 'list'])).stdout).toMatch(/^cli-payment +authorize_payment +A1\*/m)
  expect(JSON.parse((await pawl(['template', 'export'])).stdout)).toContainEqual(
    expect.objectContaining({ templateName: 'cli-payment', expiration: 61 }),
  )
  await json('template', 'remove', 'cli-payment')
  const { userId } = await world.activePhone('3.3')
  expect((await pawl(['audit', 'log', userId])).stdout).toMatch(/^ACTIVATIONID +EVENTTYPE/)
  expect((await pawl(['audit', 'changes', '--limit', '5'])).stdout).toContain('template cli-payment')
  expect(await pawl(['audit', 'verify', '--online'])).toMatchObject({ code: 0, stderr: '' })
  expect(await pawl(['audit', 'log', userId, '--from', 'yesterday'])).toMatchObject({ code: 2 })
})

test.each(['12.11.2027', '2027-02-30', '2027-01-31T12:00:00', 'tomorrow 5', 'Feb 31 12:00:00 2027 GMT'])(
  'the time %s is refused, and not taken for another one',
  async (time) => {
    const commands = [
      ['user', 'create', 'ends-wrongly', 'integration', '--expires', time],
      ['audit', 'changes', '--to', time],
      ['registration', 'fence', '--since', time],
    ]
    for (const command of commands)
      expect([command, await pawl(command)]).toMatchObject([
        command,
        {
          code: 2,
          stderr: expect.stringContaining('is no time: give a number since 1970, or a date like 2027-01-31') as unknown,
        },
      ])
  },
)

test('a pin takes its end as openssl prints it', async () => {
  const pin = ['certificate', 'add-fingerprint', 'openssl.example', 'ab'.repeat(32)]
  expect(await pawl([...pin, 'Feb 30 12:00:00 2099 GMT'])).toMatchObject({ code: 2 })
  expect(await pawl([...pin, 'tomorrow'])).toMatchObject({ code: 2 })
  expect(await json(...pin, 'Feb  1 12:00:00 2099 GMT')).toMatchObject({ expires: Date.UTC(2099, 1, 1, 12) / 1000 })
})

test('what others wrote does not steer the terminal, and is shown where it is no time', () => {
  expect(layOut({ name: 'a\u001b[2Jb\u202e' })).toBe('name  a\\u{1b}[2Jb\\u{202e}\n')
  expect(layOut({ expiresAt: 1_800_000_000_000, seenAt: 9e15 })).toBe(
    'expiresAt  2027-01-15T08:00:00.000Z\nseenAt     9000000000000000\n',
  )
  // A sign of two columns, a text of two lines, and a text that is cut within a sign.
  expect(
    layOut([
      { name: '東京', x: 1 },
      { name: 'a\nb', x: 2 },
    ]),
  ).toBe('NAME   X\n東京   1\na ⏎ b  2\n')
  expect(layOut({ name: `${'x'.repeat(299)}🦊🦊` })).toMatch(/x… \(303 characters/)
  expect(layOut([{ a: 1 }, { b: ['x', 'y'] }])).toBe('A  B\n1\n   x, y\n')
})

test('work that takes long says so, on stderr, until it ends', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    const said: string[] = []
    const work = withProgress(
      (line) => said.push(line),
      'at work',
      async () => {
        vi.advanceTimersByTime(11_000)
        return 'done'
      },
    )
    expect(await work).toBe('done')
    vi.advanceTimersByTime(60_000)
    expect(said).toEqual(['at work, 5 s so far', 'at work, 10 s so far'])
  } finally {
    vi.useRealTimers()
  }
})

describe('completion', () => {
  const sourced = (shell: 'bash' | 'zsh', text: string): string => {
    const file = join(home, `pawl.${shell}`)
    writeFileSync(file, text)
    return `source '${file}'`
  }
  const complete = (...words: string[]): string[] => {
    const script = `${sourced('bash', renderBash(ENTRIES))}\ncomplete -p pawl >/dev/null || exit 1\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _pawl; printf '%s\\n' "\${COMPREPLY[@]}"`
    return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
  }

  test('bash is offered commands, then their commands, then their options', () => {
    expect(complete('pawl', 'reg')).toEqual(['registration'])
    expect(complete('pawl', 'registration', 'c')).toEqual(['create', 'commit', 'claims'])
    expect(complete('pawl', 'registration', 'create', 'alice', '--o')).toEqual(['--otp', '--otp-file', '--otp-phase'])
    expect(complete('pawl', 'login', '--f')).toEqual(['--forget'])
    expect(complete('pawl', '')).toEqual([...ENTRIES.map(({ name }) => name), 'help', '--help', '--version'])
  })

  test('zsh has a case for every command', () => {
    const script = renderZsh(ENTRIES)
    expect(script).toContain("'registration create' | 'registration create '*) candidates=(--url")
    expect(script.match(/ ;;$/gm)).toHaveLength(renderBash(ENTRIES).match(/ ;;$/gm)?.length ?? 0)
  })

  // CI has one.
  describe.skipIf(!existsSync('/usr/bin/zsh')).each([
    ['evaluated', (file: string) => `autoload -Uz compinit; compinit -u -D; source '${file}'`],
    ['found in fpath', (file: string) => `fpath=('${join(file, '..')}' $fpath); autoload -Uz compinit; compinit -u -D`],
  ])('in zsh, %s', (_how, load) => {
    const offered = (...words: string[]): string[] => {
      const file = join(home, '_pawl')
      writeFileSync(file, renderZsh(ENTRIES))
      // Outside of its line editor zsh has no compadd: this one prints what would be offered.
      const script = `${load(file)}
        [[ $_comps[pawl] == _pawl ]] || exit 1
        compadd() { print -rl -- \${(P)2} }
        words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}; _pawl`
      return execFileSync('/usr/bin/zsh', ['-f', '-c', script], { encoding: 'utf8' }).trim().split('\n')
    }

    test('the same is offered', () => {
      expect(offered('pawl', '')).toEqual([...ENTRIES.map(({ name }) => name), 'help', '--help', '--version'])
      expect(offered('pawl', 'user', '')).toEqual([
        'list',
        'show',
        'create',
        'allow',
        'certificate',
        'rights',
        'password',
        'remove',
        'export',
        'erase',
        '--help',
      ])
      expect(offered('pawl', 'registration', 'create', 'alice', '--o')).toContain('--otp-phase')
      expect(offered('pawl', 'login', '')).toContain('--forget')
    })
  })

  test.skipIf(!existsSync('/usr/bin/fish'))('fish offers the same', () => {
    const file = join(home, 'pawl.fish')
    writeFileSync(file, renderFish(ENTRIES))
    const offered = (line: string): string[] => {
      const args = ['--no-config', '-c', `source '${file}'; complete -C '${line}'`]
      return execFileSync('/usr/bin/fish', args, { encoding: 'utf8', env: { HOME: home } })
        .trim()
        .split('\n')
    }
    expect(offered('pawl ')).toEqual(expect.arrayContaining([...ENTRIES.map(({ name }) => name), 'help']))
    expect(offered('pawl user ')).toEqual(expect.arrayContaining(['list', 'show', 'create']))
    expect(offered('pawl user ')).not.toContain('serve')
    expect(offered('pawl registration create alice --o')).toContain('--otp-phase')
    expect(offered('pawl login --')).toContain('--forget')
  })

  test('another shell is refused', async () => {
    expect(await pawl(['completion', 'tcsh'])).toMatchObject({ code: 2, stdout: '' })
  })
})

test('a master key is made, and says whether it opens the database', async () => {
  const { key } = await json('key', 'create')
  expect(Buffer.from(String(key), 'base64')).toHaveLength(32)
  expect(await runCli(['key', 'check'], { PAWL_DATA_DIR: join(home, 'none') })).toMatchObject({ code: 3 })
})
