// pawl demo as a newcomer runs it: what it prints can be pasted, payments are approved and rejected, the bank is told, and the phone goes on.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import { createBank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  runNode,
  startNode,
  startPawl,
} from '../helpers/process.ts'
import { expectOk, startServerWithWorld, type World } from '../helpers/world.ts'

// Other test files run at the same time.

const runFile = promisify(execFile)

let world: World
const directory = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
const file = join(directory, 'phones', 'phone.json')
beforeAll(async () => {
  // Its webhooks go to this machine.
  const env = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
  world = (await startServerWithWorld({ env })).world
})
afterAll(async () => {
  await world.close()
  await endEverything()
  rmSync(directory, { recursive: true, force: true })
})

const admin = (): string => world.bank.credential ?? ''
const demo = (...args: readonly string[]) =>
  runCli(['demo', '--url', world.url, '--admin', admin(), '--store', file, ...args], { HOME: directory })
const phone = (...args: readonly string[]) =>
  runCli(['phone', ...args, '--store', file], { HOME: directory, PAWL_PHONE_PASSWORD: '1234' })
const paste = async (command: string): Promise<string> =>
  (await runFile('bash', ['-c', `${command} --silent`], { env: { ...process.env, ADMIN: admin() } })).stdout

// One user for all: each demo removes the phone of the one before.
describe.each(['3.3', 'EC_P384_ML_L5'])('a phone of %s', (name) => {
  const isOf3 = name === '3.3'
  let lines: readonly string[] = []
  beforeAll(async () => {
    const { code, stdout, stderr } = await demo(...(isOf3 ? [] : ['--algorithm', name]))
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    lines = stdout.split('\n')
  })

  test('signs a request that is good once', async () => {
    expect(lines).toContain('The phone signs a request and sends it: HTTP 200 {"status":"OK"}')
    const command = lines.find((line) => line.startsWith('curl ')) ?? ''
    expect(command).toContain(isOf3 ? '/pa/v3/signature/validate' : '/pa/v4/auth/validate')
    expect(await paste(command)).toBe('{"status":"OK"}\n')
    expect(await paste(command)).toContain('ERR_AUTHENTICATION')
  })

  test('approves a payment that it shows, and another without a connection', async () => {
    const shown = lines.slice(lines.indexOf('The phone lists it, and shows its user:') + 2)
    expect(shown.slice(0, 4).map((line) => line.replace(/ +/g, ' ').trim())).toEqual([
      '| Payment |',
      '| Please confirm the payment |',
      '| Amount €10.00 |',
      '| To account DE89370400440532013000 |',
    ])
    const told = (status: string) =>
      lines.filter((line) => line.includes(`"status":"${status}"`) && line.startsWith('  {"operationId"'))
    expect([told('PENDING').length, told('APPROVED').length, told('REJECTED').length]).toEqual([3, 2, 1])
  })

  test('the bank is told of each change, and finds the signature right', () => {
    const messages = lines
      .filter((line) => line.startsWith('  {"type":"OPERATION"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(messages.map(({ status }) => status).toSorted()).toEqual([
      'APPROVED',
      'APPROVED',
      'PENDING',
      'PENDING',
      'PENDING',
      'REJECTED',
    ])
    expect(lines.filter((line) => /^ {2}webhook-signature: v1,\S+ \(right\)$/.test(line))).toHaveLength(6)
  })

  test("the bank's steps are commands that work", async () => {
    const commands = lines.map((line) => line.trim()).filter((line) => line.startsWith('curl ') && line.includes('"$ADMIN"'))
    const paths = commands.map((command) => new URL(/http:[^']+/.exec(command)?.[0] ?? '').pathname)
    for (const path of [
      '/registration',
      '/registration/commit',
      '/operations',
      '/operations/offline/qr',
      '/operations/offline/otp',
    ])
      expect(paths).toContain(path)
    const reads = commands.filter((command) => command.includes('/operations?') || command.includes('/registration?'))
    for (const command of reads.filter((one) => !one.includes('-X DELETE')))
      expect(await paste(command)).toMatch(/^\{"operationId".*"(APPROVED|REJECTED)".*\}\n$|^\{"registration":"ACTIVE".*\}\n$/)
    const asked = commands.find((command) => command.includes('"template":"payment"')) ?? ''
    expect(await paste(asked)).toMatch(/^\{"operationId".*"PENDING".*\}\n$/)
  })

  test('the phone goes on approving what waits', async () => {
    expect(statSync(file).mode & 0o077).toBe(0)
    const ask = async (): Promise<string> =>
      String(member(expectOk(await world.bank.createOperation({ userId: 'alice', template: 'login' })).json, 'operationId'))
    // That of the test above waits as well.
    await phone('reject', '--all')
    const ids = [await ask(), await ask()] as const
    const [first, second] = ids
    expect(await phone('approve', first)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`approved ${first}.\n`) as unknown,
    })
    expect(member((await world.bank.readOperation(second)).json, 'status')).toBe('PENDING')
    expect(await phone('approve', first)).toMatchObject({ code: 4, stderr: `${first} does not wait for demo\n` })
    expect(await phone('approve')).toMatchObject({ code: 0, stdout: expect.stringContaining(`approved ${second}.\n`) as unknown })
    for (const id of ids) expect(member((await world.bank.readOperation(id)).json, 'status')).toBe('APPROVED')
    expect(await phone('approve')).toMatchObject({ code: 0, stdout: 'Nothing waits.\n' })
  })
})

test('a user whose phone is another one is left alone', async () => {
  const { userId } = await world.activePhone('3.3')
  const { code, stderr } = await demo('--user', userId)
  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`^${userId} has a registration .*--user.*\\n$`))
  expect(member((await world.bank.view(userId)).json, 'registration')).toBe('ACTIVE')
})

test('an unknown algorithm is refused', async () => {
  const { code, stderr } = await demo('--algorithm', 'EC_P256')
  expect(code).toBe(2)
  expect(stderr).toContain('--algorithm must be one of EC_P384, EC_P384_ML_L3, EC_P384_ML_L5')
})

test('a wrong password is one line', async () => {
  const { code, stderr } = await demo('--admin', 'admin:wrong')
  expect(code).toBe(5)
  expect(stderr).toMatch(/^GET http:\/\/\S+\/admin\/applications: HTTP 401 .*\n$/)
})

test('with two listeners it finds both by the environment, and makes the application that others then use', async () => {
  const { env, directory: home } = await createInstallation(DATABASE_KIND)
  const ports = { PAWL_PORT: String(await findQuietPort()), PAWL_INTERNAL_PORT: String(await findQuietPort()) }
  await startPawl(env, ports, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const line = ['demo', '--admin', `admin:${ADMIN_PASSWORD}`, '--store', join(home, 'phones.json')]
  const { code, stdout, stderr } = await runNode(['bin/pawl.mjs', ...line], { ...env, ...ports })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.match(/"status":"APPROVED"/g)).toHaveLength(2)
  // As it comes, a server sends to nobody on its own machine.
  expect(stdout).toContain('so it makes no webhook for the demo')
  expect(stdout).not.toContain('webhook-signature')
  const bank = createBank(`http://127.0.0.1:${ports.PAWL_INTERNAL_PORT}`, `admin:${ADMIN_PASSWORD}`)
  expect((await bank.call('GET', '/admin/applications')).text).toContain('"id":"my-app","isDefault":true')
  const wrong = await runCli(line, { ...env, PAWL_PORT: ports.PAWL_PORT })
  expect(wrong).toMatchObject({ code: 4, stderr: expect.stringMatching(/^.*HTTP 404.*PAWL_INTERNAL_PORT\n$/) as unknown })
})

test('where the server may not send to this machine, a webhook is shown at another one, which leaves nothing', async () => {
  const { env, directory: home } = await createInstallation(DATABASE_KIND)
  const { url } = await startPawl(env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const temporary = join(home, 'tmp')
  mkdirSync(temporary)
  const line = [
    'demo',
    '--webhook-server',
    '--url',
    url,
    '--admin',
    `admin:${ADMIN_PASSWORD}`,
    '--store',
    join(home, 'phones.json'),
  ]
  const { code, stdout, stderr } = await startNode(['bin/pawl.mjs', ...line], { ...env, TMPDIR: temporary }).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('so it makes no webhook for the demo')
  const messages = stdout.split('\n').filter((one) => one.startsWith('  {"type":"OPERATION"'))
  expect(messages.map((one) => (JSON.parse(one) as { event: string }).event)).toEqual(['created', 'approved'])
  expect(stdout.match(/webhook-signature: \S+ \(right\)/g)).toHaveLength(2)
  expect(readdirSync(temporary)).toEqual([])
  // The server that was meant is as it was, and has the phone.
  const bank = createBank(url, `admin:${ADMIN_PASSWORD}`)
  expect((await bank.call('GET', '/admin/webhooks')).json).toEqual({ webhooks: [] })
  expect(member((await bank.view('alice')).json, 'registration')).toBe('ACTIVE')
  expect(stdout.match(/"status":"APPROVED"/g)?.length).toBeGreaterThanOrEqual(3)
})

test('where no server runs it starts one of its own; where there is data it wants the credential', async () => {
  const { env, directory: home } = await createInstallation('embedded', { isEmpty: true })
  const port = { PAWL_PORT: String(await findQuietPort()), XDG_DATA_HOME: home, XDG_CONFIG_HOME: home }
  // The start makes a database, which takes its time.
  const { code, stdout, stderr } = await startNode(['bin/pawl.mjs', 'demo'], { ...env, ...port }).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.match(/webhook-signature: \S+ \(right\)/g)).toHaveLength(6)
  expect(stdout).toMatch(/Administrator: admin, password: \S+ \(shown only now\)\n$/)
  const again = await runCli(['demo'], { ...env, ...port })
  expect(again).toMatchObject({ code: 5, stderr: expect.stringContaining('--admin USER:PASSWORD') as unknown })
})
