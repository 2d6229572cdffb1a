// pawl apply and pawl export: a set-up as a file, against servers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import { dumpRows, EXAMPLE, type SetupServer, startSetupServer } from '../helpers/setup.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-setup-'))
let server: SetupServer
let empty: SetupServer
beforeAll(async () => {
  server = await startSetupServer()
  empty = await startSetupServer()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.close()
  await empty.close()
})

const UNCHANGED = { code: 0, stdout: expect.stringMatching(/nothing to change\n$/) as unknown, stderr: '' }
/** The values that a command has printed as shown only now. */
const secretsIn = (stdout: string): string[] =>
  [...stdout.matchAll(/(?:password|secret): (\S+) \(shown only now\)/g)].map(([, one = '']) => one)
const json = async (line: readonly string[], on: SetupServer = server): Promise<Record<string, unknown>> => {
  const { code, stdout } = await on.pawl([...line, '--json'])
  expect(code).toBe(0)
  return JSON.parse(stdout) as Record<string, unknown>
}
const application = (rest: string): string => `apiVersion: pawl/1\napplications:\n  - id: retail\n${rest}`
const countChanges = async (): Promise<number> =>
  ((await json(['audit', 'changes', '--limit', '1000']))['items'] as unknown[]).length

describe('the example of the documentation', () => {
  let made = ''

  test('is shown by --dry-run, which changes nothing in the database', async () => {
    const before = await dumpRows(server.context.db)
    const shown = await server.apply(EXAMPLE, '--dry-run')
    expect(shown).toMatchObject({ code: 0, stderr: '' })
    expect(shown.stdout).toMatch(/^\+ application retail\n {4}\+ name: "Retail banking"\n/)
    expect(shown.stdout).toMatch(/^~ version default of retail\n {4}- isSupported: true\n {4}\+ isSupported: false\n/m)
    expect(shown.stdout).toMatch(/\n15 changes would be made: nothing was changed\n$/)
    expect(JSON.parse((await server.apply(EXAMPLE, '--dry-run', '--json')).stdout)).toMatchObject({
      isDryRun: true,
      secrets: [],
      changes: [{ change: 'create', what: 'application retail', state: 'not done' }, ...Array.from({ length: 14 }, () => ({}))],
    })
    expect(before.size).toBeGreaterThan(20)
    expect(await dumpRows(server.context.db)).toEqual(before)
  })

  test('is applied, and its secrets are shown once and are good', async () => {
    const applied = await server.apply(EXAMPLE)
    expect(applied).toMatchObject({ code: 0, stderr: '' })
    made = applied.stdout
    expect(made).toContain(`, template payment, user ${server.admin.user}\n15 changes\n`)
    expect(secretsIn(made)).toEqual([expect.stringMatching(/^whsec_/), expect.any(String), expect.any(String)])
    const [, , auditor = ''] = secretsIn(made)
    expect(await runCli(['user', 'list'], { PAWL_URL: server.url, PAWL_ADMIN: `auditor:${auditor}` })).toMatchObject({ code: 0 })
  })

  test('changes nothing when it is applied again, and nothing is recorded', async () => {
    const before = [await dumpRows(server.context.db), await countChanges()]
    expect(await server.apply(EXAMPLE)).toMatchObject(UNCHANGED)
    expect(await server.apply(await server.exported())).toMatchObject(UNCHANGED)
    expect([await dumpRows(server.context.db), await countChanges()]).toEqual(before)
  })

  test('is byte for byte the same on an empty server that is made by its export', async () => {
    const file = await server.exported()
    expect(await empty.apply(file)).toMatchObject({ code: 0, stderr: '' })
    expect(await empty.exported()).toBe(file)
  })

  test('is exported as JSON as well, which is applied without a change', async () => {
    const path = join(folder, 'pawl.json')
    expect(await server.pawl(['export', '-o', path, '--json'])).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(path, 'utf8')).toMatch(/^\{\n {2}"apiVersion": "pawl\/1"/)
    expect(await server.pawl(['apply', '--file', path])).toMatchObject(UNCHANGED)
  })

  test('is not exported to a full disk, which keeps the file of before', async () => {
    const path = join(folder, 'kept', 'pawl.yaml')
    mkdirSync(join(folder, 'kept'))
    writeFileSync(path, 'the file of before\n')
    // The kernel takes nothing for a file, as a disk does that is full.
    const limited = spawn('sh', ['-c', `ulimit -f 0; exec '${process.execPath}' bin/pawl.mjs export -o '${path}'`], {
      env: { PATH: process.env['PATH'], PAWL_URL: server.url, PAWL_ADMIN: `${server.admin.user}:${server.admin.password}` },
    })
    const [stderr, [code]] = await Promise.all([text(limited.stderr), once(limited, 'exit')])
    expect({ code, stderr }).toEqual({ code: 6, stderr: expect.stringMatching(/^--output: EFBIG.*\n$/) as unknown })
    expect(readFileSync(path, 'utf8')).toBe('the file of before\n')
    expect(readdirSync(join(folder, 'kept'))).toEqual(['pawl.yaml'])
  })

  test('has no secret in its export', async () => {
    await json([
      'webhook',
      'create',
      'ACTIVATION',
      'https://hooks.bank.example/a?token=secret-of-the-receiver',
      '--app',
      'retail',
      '--name',
      'closed',
      '--user',
      'pawl:password-at-the-receiver',
    ])
    const { stdout, stderr } = await server.pawl(['export'])
    const shown = (await json(['app', 'show', 'retail'])) as Record<string, string>
    const { appSecret = '', mobileSdkConfig = '', appKey = '' } = shown
    const secrets = [
      ...secretsIn(made),
      appSecret,
      mobileSdkConfig,
      appKey,
      server.admin.password,
      'secret-of-the-receiver',
      'password-at-the-receiver',
    ]
    expect(secrets.every((secret) => secret.length > 10)).toBe(true)
    for (const secret of secrets) expect(stdout + stderr).not.toContain(secret)
    expect(stdout).toContain('url: https://hooks.bank.example/a\n')
    expect(stderr.split('\n')).toEqual([
      'webhook ACTIVATION closed of retail: the query of its URL may be secret and is not in the file: pawl webhook change --to sets it',
      'webhook ACTIVATION closed of retail: the password of pawl is not in the file: pawl webhook change --user-file sets it',
      '',
    ])
    // The query stays where the file has none, also when something else is changed.
    expect(await server.apply(stdout)).toMatchObject(UNCHANGED)
    const changed = stdout.replace(/(name: closed\n(?: .*\n)*? +isEnabled: )true/, '$1false')
    expect((await server.apply(changed)).stdout).toMatch(
      /^~ webhook ACTIVATION closed of retail\n {4}- isEnabled: true\n {4}\+ isEnabled: false\n/,
    )
    const listed = (await json(['webhook', 'list']))['webhooks'] as { name: string }[]
    expect(listed.find(({ name }) => name === 'closed')).toMatchObject({
      url: 'https://hooks.bank.example/a?token=secret-of-the-receiver',
      basicUsername: 'pawl',
      isEnabled: false,
    })
  })
})

const NAME = 'must be a text of 1 to 255 characters, not blank, without control characters, other than . and ..'
const LINE = (place: string, remedy: string): string => `stdin: ${place}: ${remedy}\n`
describe('a file with a fault', () => {
  test.each([
    [
      'a name that nobody knows',
      application('    versoins: []\n'),
      LINE('applications[0].versoins, line 4', 'there is no such member: versions is meant?'),
    ],
    [
      'a number for a text',
      application('    versions:\n      - name: 1.0\n'),
      LINE('applications[0].versions[0].name, line 5', `${NAME}, and 1.0 is a number: write '1.0'`),
    ],
    [
      'a number for a version',
      application('    minimumProtocolVersion: 3.2\n'),
      LINE(
        'applications[0].minimumProtocolVersion, line 4',
        "must be 3.0, 3.1, 3.2, 3.3 or 4.0, or null for none, and 3.2 is a number: write '3.2'",
      ),
    ],
    [
      'no for false',
      application('    isProtocol3Admitted: no\n'),
      LINE('applications[0].isProtocol3Admitted, line 4', 'must be true or false, and "no" is a text'),
    ],
    [
      'a role of another name',
      'apiVersion: pawl/1\nusers:\n  - username: a\n    role: boss\n',
      LINE('users[0].role, line 4', 'must be admin, integration, internal, read-only or verification'),
    ],
    [
      'no value',
      'apiVersion: pawl/1\nusers:\n  - username:\n    role: admin\n',
      LINE(
        'users[0].username, line 3',
        'has no value: must be a text of 1 to 255 characters without colon and control characters, other than . and ..',
      ),
    ],
    [
      'what is missing',
      'apiVersion: pawl/1\nusers:\n  - role: admin\n',
      LINE(
        'users[0].username, line 3',
        'is missing: must be a text of 1 to 255 characters without colon and control characters, other than . and ..',
      ),
    ],
    ['an application of dots', 'apiVersion: pawl/1\napplications:\n  - id: ..\n', LINE('applications[0].id, line 3', NAME)],
    ['a version of a dot', application('    versions: [{ name: . }]\n'), LINE('applications[0].versions[0].name, line 4', NAME)],
    [
      'an item of dots',
      application('    config: [{ key: .., value: 1 }]\n'),
      LINE(
        'applications[0].config[0].key, line 4',
        'must be a text of 1 to 64 letters, digits, `_`, `.` or `-`, other than . and ..',
      ),
    ],
    [
      'a text of a dot',
      'apiVersion: pawl/1\ntexts:\n  - { messageKey: ., language: en, text: x }\n',
      LINE('texts[0].messageKey, line 3', NAME),
    ],
    [
      'a template of dots',
      EXAMPLE.replace('templateName: transfer', 'templateName: ..'),
      expect.stringContaining(NAME) as string,
    ],
    [
      'a user twice',
      'apiVersion: pawl/1\nusers:\n  - { username: a, role: admin }\n  - { username: a, role: internal }\n',
      LINE('users[1].username, line 4', 'a stands at [0] already: keep one of them'),
    ],
    [
      'two default applications',
      application('    isDefault: true\n  - id: other\n    isDefault: true\n'),
      LINE('applications[1].isDefault, line 6', 'the default application stands at [0] already: keep one of them'),
    ],
    [
      'a time that is none',
      'apiVersion: pawl/1\nusers:\n  - { username: a, role: admin, expiresAt: 2027-13-01 }\n',
      LINE('users[0].expiresAt, line 3', 'must be a time like 2027-01-31T12:00:00Z'),
    ],
    [
      'a day that is none',
      'apiVersion: pawl/1\nusers:\n  - { username: a, role: admin, expiresAt: 2027-02-30T00:00:00Z }\n',
      LINE('users[0].expiresAt, line 3', 'there is no such day'),
    ],
    [
      'a pin until a day that is none',
      EXAMPLE.replace('expires: 2037-01-31T', 'expires: 2037-06-31T'),
      expect.stringMatching(
        /^stdin: applications\[0\]\.domains\[0\]\.certificates\[0\]\.expires, line \d+: there is no such day\n$/,
      ),
    ],
    [
      'an address that is none',
      'apiVersion: pawl/1\nusers:\n  - { username: a, role: admin, allowedAddresses: [10.0.0.0/8, 10.0.0.0/33] }\n',
      LINE('users[0].allowedAddresses[1], line 3', 'must be an IP address or a CIDR range'),
    ],
    [
      'an application that hands over to itself',
      application('    transfers: [{ targets: [retail], type: MOVE }]\n'),
      LINE('applications[0].transfers[0].targets[0], line 4', 'retail is the application itself'),
    ],
    [
      'a target twice',
      application('    transfers: [{ targets: [a, b], type: MOVE }, { targets: [b], type: SPAWN }]\n'),
      LINE('applications[0].transfers[1].targets[0], line 4', 'b stands in an earlier entry already: keep one of them'),
    ],
    [
      'scopes without openid',
      EXAMPLE.replace('scopes: [openid]', 'scopes: [profile]'),
      expect.stringMatching(/^stdin: applications\[0\]\.oidcProviders\[0\]\.scopes, line \d+: must have openid: .*\n$/),
    ],
    [
      'a text that no database holds',
      application('    customObject: { a: [{ b: "\\0" }] }\n'),
      LINE('applications[0].customObject.a[0].b, line 4', 'must be Unicode text without U+0000'),
    ],
    [
      'a secret',
      'apiVersion: pawl/1\nusers:\n  - { username: a, role: admin, password: x }\n',
      LINE(
        'users[0].password, line 3',
        'there is no such member: there are username, role, application, expiresAt, rights, allowedAddresses, certificates',
      ),
    ],
    [
      'a login within a URL',
      application('    webhooks: [{ kind: OPERATION, name: a, url: "https://me:x@bank.example" }]\n'),
      LINE(
        'applications[0].webhooks[0].url, line 4',
        'must be an https URL of at most 1024 characters, without user name and password',
      ),
    ],
    [
      'a template that phones refuse',
      EXAMPLE.replace('type: AMOUNT', 'type: MONEY'),
      expect.stringMatching(/^stdin: templates\[0\]\.texts\.en\.attributes\[0\]\.type, line 71: must be one of AMOUNT, .*\n$/),
    ],
    ['another format', 'apiVersion: pawl/2\n', LINE('apiVersion, line 1', 'must be pawl/1, the format that this pawl reads')],
    ['nothing', '', 'stdin: line 1: has no value: must be an object that begins with apiVersion: pawl/1\n'],
    [
      'a name twice',
      'apiVersion: pawl/1\nusers: []\nusers: []\n',
      'stdin, line 3, column 1: this name stands there twice: keep one of them\n',
    ],
    [
      'a tab',
      'apiVersion: pawl/1\nusers:\n\t- username: a\n',
      'stdin, line 3, column 1: a tab does not indent in YAML: use spaces\n',
    ],
    [
      'an anchor',
      'apiVersion: pawl/1\nusers: &all []\n',
      'stdin, line 2, column 13: an anchor is not read: remove the word that begins with &\n',
    ],
    [
      'a bomb of aliases',
      `a: &a [x]\n${'bcdefghij'
        .split('')
        .map((name, index) => `${name}: &${name} [${`*${'abcdefghi'[index]},`.repeat(9)}]\n`)
        .join('')}`,
      'stdin, line 1, column 7: an anchor is not read: remove the word that begins with &\n',
    ],
    [
      'an alias',
      'apiVersion: *x\n',
      'stdin, line 1, column 13: an alias is not read: write out what it stands for, or put the text in quotes where * begins it\n',
    ],
    [
      'a tag',
      'apiVersion: !!binary pawl/1\n',
      'stdin, line 1, column 13: a tag is not read: remove the word that begins with !\n',
    ],
    [
      'another YAML',
      '%YAML 1.1\n---\napiVersion: pawl/1\n',
      'stdin, line 1, column 1: another version of YAML is not read: remove the directive\n',
    ],
    [
      'two documents',
      'apiVersion: pawl/1\n---\napiVersion: pawl/1\n',
      'stdin, line 2, column 1: a second document begins here: remove the line ---, or make it a file of its own\n',
    ],
    [
      'a number that is not exact',
      application('    config: [{ key: a, value: 12345678901234567890 }]\n'),
      "stdin, line 4, column 31: the number 12345678901234567890 is not exact: write '12345678901234567890' where a text is meant\n",
    ],
    [
      'what does not end',
      'apiVersion: "pawl/1\n',
      expect.stringMatching(/^stdin, line 2, column 1: is no YAML: Missing closing "quote\n$/),
    ],
    [
      'a depth without an end',
      `apiVersion: ${'['.repeat(50_000)}`,
      expect.stringMatching(/^stdin, line 1, column \d+: is nested too deeply.*\n$/),
    ],
    [
      'a depth of its own',
      application(`    customObject: ${'{a: '.repeat(120)}1${'}'.repeat(120)}\n`),
      expect.stringMatching(/^stdin, line 4, column \d+: is nested too deeply.*\n$/),
    ],
  ])('%s: 2, and one line with place and remedy', async (_name, file, stderr) => {
    expect(await server.apply(file)).toEqual({ code: 2, stdout: '', stderr })
  })

  test('names everything that is wrong, each in one line', async () => {
    const { code, stderr } = await server.apply(
      `apiVersion: pawl/1\nusers:\n${'  - { username: 1, rolle: admin }\n'.repeat(3)}`,
      '--json',
    )
    expect(code).toBe(2)
    const { error } = JSON.parse(stderr) as { error: string }
    expect(error.split('\n')).toHaveLength(9)
    expect(error).toContain('users[2].rolle, line 5: there is no such member: role is meant?')
  })

  test('that is none, or no text: 2', async () => {
    const path = join(folder, 'latin1.yaml')
    writeFileSync(path, Buffer.from('apiVersion: \xe9', 'latin1'))
    expect(await server.pawl(['apply', '-f', path])).toEqual({
      code: 2,
      stdout: '',
      stderr: `--file: ${path} is no UTF-8 text; --help says how to call it\n`,
    })
    expect(await server.pawl(['apply', '-f', folder])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^--file: .* is a folder\n$/) as unknown,
    })
    expect(await server.pawl(['apply'])).toEqual({
      code: 2,
      stdout: '',
      stderr: '--file is needed; --help says how to call it\n',
    })
  })
})
