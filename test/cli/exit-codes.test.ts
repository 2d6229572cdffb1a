// Every command with what people get wrong: the exit code of docs/CLI.md, and one line that says what to do.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Command, command } from '../../cli/command.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { isNoun } from '../../cli/program.ts'
import { NO_BODY, send, sendJson } from '../../phone/http.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { createCertificate } from '../helpers/certificates.ts'
import { runCli } from '../helpers/cli.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'

let server: TestServer
const folder = mkdtempSync(join(tmpdir(), 'pawl-codes-'))
const PEM = join(folder, 'leaf.pem')
const SETUP = join(folder, 'pawl.yaml')
beforeAll(async () => {
  writeFileSync(SETUP, 'apiVersion: pawl/1\n')
  writeFileSync(PEM, createCertificate(['DNS:nope']).pem)
  server = await startTestServer({ env: { PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '100000' } })
  const { user, password } = server.admin
  const admin = basicAuthorization(`${user}:${password}`)
  await sendJson(server.url, 'POST', '/admin/application', { id: 'my-app' }, admin)
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.close()
})

const COMMANDS: readonly (readonly [string, Command])[] = ENTRIES.flatMap((entry) =>
  isNoun(entry) ? entry.commands.map((one) => [`${entry.name} ${one.name}`, one] as const) : [[entry.name, entry] as const],
)
/** A value for every word that a command must have. */
const wordsOf = ({ words = {} }: Command): string[] =>
  Object.keys(words)
    .filter((word) => word.startsWith('<'))
    .map((word) => VALUES[word] ?? 'nope')
const VALUES: Readonly<Record<string, string>> = {
  '<role>': 'integration',
  '<domain>': 'nope.example',
  '<state>': 'on',
  '<language>': 'en',
  '<shell>': 'bash',
  '<template>': '{}',
  '<file>': PEM,
  '<expires>': '2027-01-31T12:00:00Z',
}
/** A database of its own, and a server that it starts where there is none: their own tests have them. */
const LEFT_OUT = new Set(['audit verify', 'demo'])
/** They call no server of the bank: settings, files, the database, or a phone alone. A new command stands here or is tried below. */
const WITHOUT_BANK =
  'serve, migrate, import powerauth, doctor, user export, user erase, template import, registration fence, audit export, audit verify, ' +
  'certificate dev, key create, key check, key list, key rotate, key bind, backup, restore, admin reset, admin dump, completion, version'
/** What a command needs beside its words. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  'app change': ['--default'],
  apply: ['-f', SETUP],
  'app add-rule': ['--platform', 'IOS', '--required', '2.0.0'],
  // A user, or a registration.
  'registration show': ['nope'],
  'registration commit': ['nope'],
  'registration block': ['nope'],
  'registration unblock': ['nope'],
  'registration remove': ['nope'],
  'phone bind': ['7JEGM-ZCKOH-W72VS-6QG4A', '--app', 'my-app'],
}
const lineOf = (name: string, one: Command): string[] => [...name.split(' '), ...wordsOf(one)]
const callsBank = COMMANDS.filter(([name, { options = {} }]) => 'admin' in options && !LEFT_OUT.has(name))
const ofPhone = COMMANDS.filter(([name]) => name.startsWith('phone ') && !['phone bind', 'phone phones'].includes(name))
const expectOneLine = (stderr: string): void => expect(stderr).toMatch(/^[^\n]+\n$/)

describe.each(COMMANDS)('pawl %s', (name, one) => {
  test('--help says how to call it, as pawl help does', async () => {
    const asked = await runCli([...name.split(' '), '--help'], {})
    expect(asked).toMatchObject({ code: 0, stderr: '' })
    expect(asked.stdout).toMatch(new RegExp(`^Usage: pawl ${name} `))
    expect(await runCli(['help', ...name.split(' ')], {})).toEqual(asked)
  })

  test('an option that it does not know: 2', async () => {
    const { code, stdout, stderr } = await runCli([...lineOf(name, one), '--nonsense'], {})
    expect([code, stdout]).toEqual([2, ''])
    expectOneLine(stderr)
    expect(stderr).toContain('--help')
    const json = await runCli([...lineOf(name, one), '--nonsense', '--json'], {})
    expect([json.code, JSON.parse(json.stderr)]).toEqual([2, { error: stderr.trimEnd(), exitCode: 2 }])
  })

  test('a word too many: 2', async () => {
    const most = Object.keys(one.words ?? {}).map((word) => VALUES[word] ?? 'nope')
    const { code, stdout, stderr } = await runCli([...name.split(' '), ...most, 'more'], {})
    expect([code, stdout]).toEqual([2, ''])
    expectOneLine(stderr)
  })
})

describe.each(callsBank)('pawl %s', (name, one) => {
  const run = (url: string, admin: string) =>
    runCli([...lineOf(name, one), ...(MORE[name] ?? [])], { PAWL_URL: url, PAWL_ADMIN: admin }, { input: '{}' })

  test('no credential: 5', async () => {
    const { code, stderr } = await runCli(
      [...lineOf(name, one), ...(MORE[name] ?? [])],
      { PAWL_URL: server.url },
      { input: '{}' },
    )
    expect([code, stderr]).toEqual([5, expect.stringContaining('pawl login')])
    expectOneLine(stderr)
  })

  test('a wrong password: 5', async () => {
    const { code, stderr } = await run(server.url, 'admin:wrong')
    expect(code).toBe(5)
    expect(stderr).toMatch(new RegExp(`^[A-Z]+ ${server.url}/\\S+: HTTP 401 .*: pawl login asks for others\n$`))
  })

  test('no server: 3', async () => {
    const { code, stderr } = await run('http://127.0.0.1:9', 'admin:any')
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:9 does not answer .*; --url says where .*\n$/),
    ])
  })
})

test('every command calls the bank, is of a phone, or is known to do neither', () => {
  const known = [...callsBank, ...ofPhone].map(([name]) => name)
  const rest = COMMANDS.map(([name]) => name).filter((name) => !known.includes(name))
  expect(rest.toSorted()).toEqual([...WITHOUT_BANK.split(', '), 'demo', 'login', 'phone phones'].toSorted())
})

describe.each(ofPhone)('pawl %s', (name, one) => {
  test('without a phone: 4, and the line says how to get one', async () => {
    const line = [...lineOf(name, one), '--store', join(folder, 'none.json')]
    const { code, stderr } = await runCli(line, { PAWL_PHONE_PASSWORD: '1234' }, { input: 'x' })
    expect([code, stderr]).toEqual([4, expect.stringContaining('pawl phone bind')])
    expectOneLine(stderr)
  })
})

test('pawl login: a wrong password and no server are said as of every command', async () => {
  const login = (url: string) => runCli(['login', '--url', url], {}, { input: 'wrong\n' })
  expect(await login(server.url)).toMatchObject({ code: 5, stderr: expect.stringContaining(`${server.url}/`) as unknown })
  expect(await login('pawl.internal')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('pawl.internal is no') as unknown,
  })
  expect(await login('http://127.0.0.1:9')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('http://127.0.0.1:9') as unknown,
  })
})

test.each([
  ['apply', '--file is needed'],
  ['apply -f', '-f, --file'],
  ['apply -f /nowhere/pawl.yaml', '/nowhere/pawl.yaml'],
  ['apply -f -', 'stdin, line 1, column 13: '],
])('pawl %s: 2, and the line says what is wrong', async (line, named) => {
  const { code, stdout, stderr } = await runCli(line.split(' '), { PAWL_URL: server.url }, { input: 'apiVersion: *pawl' })
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(named)])
  expectOneLine(stderr)
})

test.each([
  ['user remove ..', '.. is no name'],
  ['app list --url localhost:8081', 'localhost:8081 is no address of a server'],
  ['app list --url pawl.internal', 'pawl.internal is no address of a server'],
  ['app list --url httpx://127.0.0.1:9', 'httpx://127.0.0.1:9 is no address of a server'],
  ['app list --url http://127.0.0.1:9/?app=x', 'no user, no ? and no #'],
  ['app list --url http://admin:any@127.0.0.1:99999', 'what was given is no address of a server'],
  [
    'phone bind 4SYFV --app-key a --app-secret b --master-key c --phones-url pawl.internal',
    'pawl.internal is no address of a server',
  ],
  ['app show .', '. is no name'],
  ['app show ', 'an empty text is no name'],
  ['user remove ', 'an empty text is no name'],
  ['template remove ', 'an empty text is no name'],
  ['certificate list --app ', 'an empty text is no name'],
  ['registration remove alice --id 0190b5a4-0000-4000-8000-000000000000', 'a user and --id'],
  ['registration unblock alice --reason FOUND', '--reason'],
  ['phone approve 0190b5a4-0000-4000-8000-000000000000 --all', 'an operation and --all'],
  ['phone reject 0190b5a4-0000-4000-8000-000000000000 --all', 'an operation and --all'],
  ['audit verify --online --expect-head application:my-app=1:00', '--online and --expect-head'],
  ['operation offline 0190b5a4-0000-4000-8000-000000000000 --nonce jEgj', '--nonce belongs to a one-time password'],
  ['app add-rule --platform IOS --required 2.0.0 --os iOS17', '--os is not a whole number'],
  [`app list --admin admin:any --admin-file ${PEM}`, '--admin-file takes the place'],
  [`registration commit alice --otp 1234 --otp-file ${PEM}`, '--otp-file takes the place'],
  ['oidc set web-bank --bank-commits --committed', '--bank-commits and --committed'],
  ['oidc set web-bank --secret-file /nowhere/secret', '--secret-file: /nowhere/secret does not exist\n'],
  ['oidc set web-bank --key-file /proc/self', '--key-file: /proc/self is a folder\n'],
  [`user certificate bank --file ${PEM}/leaf`, `--file: ${PEM}/leaf does not exist: a part of its path is no folder\n`],
  ['user certificate bank --file /nowhere/leaf.pem', '--file: /nowhere/leaf.pem does not exist\n'],
  [`user certificate bank --file ${SETUP}`, `--file: ${SETUP} holds no certificate; --help says how to call it\n`],
  ['certificate add-pem bank.example /nowhere/leaf.pem', 'the file: /nowhere/leaf.pem does not exist\n'],
  ['app change my-app --set @/nowhere/app.json', '--set: /nowhere/app.json does not exist\n'],
  [
    'phone bind --picture /nowhere/code.png --app-key a --app-secret b --master-key c',
    '--picture: /nowhere/code.png does not exist\n',
  ],
  ['webhook create OPERATION https://bank.example/pawl --user-file /nowhere/user', '/nowhere/user'],
  ['webhook change 0190b5a4-0000-4000-8000-000000000000 --user-file /nowhere/user', '/nowhere/user'],
  ['operation create alice login --idempotency-key klíč-č', '--idempotency-key'],
  ['operation create alice login --idempotency-key \u001b[31m', '--idempotency-key'],
])('pawl %s: 2, before anything is asked of the server', async (line, named) => {
  const { code, stderr } = await runCli(line.split(' '), { PAWL_URL: 'http://127.0.0.1:9', PAWL_ADMIN: 'admin:any' })
  expect([code, stderr]).toEqual([2, expect.stringContaining(named)])
  expectOneLine(stderr)
})

describe('a defect of a command', () => {
  const entries = [
    command({
      name: 'broken',
      summary: 'Has a defect',
      examples: ['broken'],
      run: () => Promise.reject(new Error('no row', { cause: new TypeError('x is not a function') })),
    }),
  ]
  const SAID = 'no row: x is not a function; nobody foresaw this, PAWL_LOG_LEVEL=debug shows where it comes from'

  test('is one line, which says how to get the stack, and a code of its own', async () => {
    expect(await runCli(['broken'], {}, { entries })).toEqual({ code: 7, stdout: '', stderr: `${SAID}\n` })
    const { stderr } = await runCli(['broken', '--json'], {}, { entries })
    expect(JSON.parse(stderr)).toEqual({ error: SAID, exitCode: 7 })
  })

  test('has the stacks of all its causes below the line, once they are asked for', async () => {
    const { code, stderr } = await runCli(['broken'], { PAWL_LOG_LEVEL: 'debug' }, { entries })
    const [line, ...stack] = stderr.split('\n')
    expect([code, line]).toEqual([7, SAID])
    expect(stack.join('\n')).toMatch(/^Error: no row\n {4}at [^]*exit-codes\.test[^]*\nTypeError: x is not a function\n {4}at /)
    const asJson = await runCli(['broken', '--json'], { PAWL_LOG_LEVEL: 'debug' }, { entries })
    expect((JSON.parse(asJson.stderr) as { error: string }).error).toContain(stack.slice(0, 2).join('\n'))
  })

  test('is no other end: a wrong command line has no stack', async () => {
    const { code, stderr } = await runCli(['user', 'remove', '..'], { PAWL_LOG_LEVEL: 'debug', PAWL_ADMIN: 'admin:any' })
    expect([code, stderr.trimEnd().split('\n')]).toEqual([2, [expect.stringContaining('is no name')]])
  })
})

test.each(['help help', 'help help --help', 'help'])('pawl %s: the help of pawl itself', async (line) => {
  const { stdout, ...end } = await runCli(line.split(' '), {})
  expect(end).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: pawl /)
})

test.each(['help nope', 'nope --help', 'help app nope', 'app nope --help'])('pawl %s: 2, and no help of others', async (line) => {
  expect(await runCli(line.split(' '), {})).toEqual({
    code: 2,
    stdout: '',
    stderr: "unknown command 'nope'; --help says how to call it\n",
  })
})

test.each([
  [{ PAWL_CLIENT_CERTIFICATE: '/nowhere/bank.pem' }, 'PAWL_CLIENT_CERTIFICATE: /nowhere/bank.pem does not exist'],
  [{ PAWL_CLIENT_CERTIFICATE: PEM, PAWL_CLIENT_KEY: '/nowhere/bank.key' }, 'PAWL_CLIENT_KEY: /nowhere/bank.key does not exist'],
  [{ PAWL_CLIENT_CERTIFICATE: PEM }, 'are no certificate with its key'],
  [{ PAWL_CLIENT_CERTIFICATE: SETUP, PAWL_CLIENT_KEY: PEM }, 'are no certificate with its key'],
])('a client certificate that cannot be shown, as %o: 2, and the line says what is wrong', async (more, named) => {
  const { code, stderr } = await runCli(['app', 'list'], { PAWL_URL: 'https://127.0.0.1:9', PAWL_ADMIN: 'admin:any', ...more })
  expect([code, stderr]).toEqual([2, expect.stringContaining(named)])
  expectOneLine(stderr)
})

test('an address with a password: 2, and the line does not repeat it', async () => {
  const { code, stderr } = await runCli(['app', 'list', '--url', 'http://admin:hush@127.0.0.1:9'], { PAWL_ADMIN: 'admin:any' })
  expect([code, stderr]).toEqual([2, expect.stringContaining('no user')])
  expect(stderr).not.toContain('hush')
})

test('a server that redirects is none of pawl: 3, and nothing is asked elsewhere', async () => {
  const asked: string[] = []
  const other = createServer(({ url }, response) => {
    asked.push(url ?? '')
    response.writeHead(302, { location: '/elsewhere' }).end()
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  for (const line of ['app list', 'app create my-app']) {
    const { code, stderr } = await runCli(line.split(' '), { PAWL_URL: url, PAWL_ADMIN: 'admin:any' })
    expect([code, stderr]).toEqual([3, expect.stringMatching(/HTTP 302, .* no server of pawl; --url says where .*\n$/)])
  }
  expect(asked).toEqual(['/admin/applications', '/admin/application'])
  other.close()
})

test('a server that says nothing keeps a phone waiting for a time alone', async () => {
  const silent = createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const request = { method: 'GET', path: '/', headers: {}, body: NO_BODY }
  await expect(send(url, request, 50)).rejects.toThrow('aborted')
  silent.closeAllConnections()
  silent.close()
})

test('a fault repeats no character that steers the terminal', async () => {
  const { user, password } = server.admin
  const env = { PAWL_URL: server.url, PAWL_ADMIN: `${user}:${password}` }
  expect(await runCli(['user', 'show', 'a\u001b[31mb\u202e'], env)).toMatchObject({
    code: 4,
    stderr: 'there is no credential a\\u{1b}[31mb\\u{202e}\n',
  })
})

test.each([
  ['app show nope', 'application nope); pawl app list shows'],
  ['app sdk-config --app nope', 'application nope'],
  ['user show nope', 'nope'],
  ['user password nope', 'nope'],
  ['user remove nope', 'user nope'],
  ['webhook show nope', 'webhook nope'],
  ['webhook remove nope', 'webhook nope'],
  ['template show nope', 'nope'],
  ['template remove nope', 'nope'],
  ['registration remove nope', 'nope'],
  ['audit log nope', 'registration of nope'],
  ['app sdk-config --app my-app --version 9.9', 'version 9.9 of my-app'],
  ['operation create nobody login', 'pawl registration create'],
  ['registration block nobody', 'pawl registration list'],
  ['operation show 0190b5a4-0000-4000-8000-000000000000', '0190b5a4'],
  ['operation cancel 0190b5a4-0000-4000-8000-000000000000', '0190b5a4'],
])('pawl %s: 4, and the line names it', async (line, named) => {
  const { user, password } = server.admin
  const { code, stderr } = await runCli(line.split(' '), { PAWL_URL: server.url, PAWL_ADMIN: `${user}:${password}` })
  expect([code, stderr]).toEqual([4, expect.stringContaining(named)])
  expectOneLine(stderr)
})
