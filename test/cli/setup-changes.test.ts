// pawl apply on a server that has something already: what is changed, what is left, what cannot be done.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Terminal } from '../../cli/command.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { runProgram } from '../../cli/program.ts'
import { formatYaml, parseYaml } from '../../cli/setup/yaml.ts'
import { runCli } from '../helpers/cli.ts'
import { dumpRows, type SetupServer, startProxy, startSetupServer } from '../helpers/setup.ts'

let server: SetupServer
let admin = ''
beforeAll(async () => {
  server = await startSetupServer()
  admin = `${server.admin.user}:${server.admin.password}`
  expect(await server.apply(APPLICATION)).toMatchObject({ code: 0, stderr: '' })
})
afterAll(() => server.close())

const RULE = '{ platform: IOS, suggestedVersion: 2.1.0, requiredVersion: 2.0.0 }'
const PIN = '{ fingerprint: Oy8dDJ6Lem9eTTwrGg+ejXxrWk8+LRwLmo9+bVxLOi8=, expires: 2037-01-31T12:00:00Z }'
const of = (...lines: string[]): string =>
  `apiVersion: pawl/1\napplications:\n  - id: my-app\n${lines.map((line) => `    ${line}\n`).join('')}`
const users = (...lines: string[]): string => `apiVersion: pawl/1\nusers:\n${lines.map((line) => `  - ${line}\n`).join('')}`
const APPLICATION = of(
  'roles: [a, b]',
  `rules: [${RULE}]`,
  `domains: [{ name: api.bank.example, certificates: [${PIN}] }]`,
  'config: [{ key: limit, value: { daily: 500, weekly: 2000 } }]',
  'webhooks: [{ kind: OPERATION, name: core, url: https://hooks.bank.example/a, attributes: [userId] }]',
)

/** The lines of an apply that are no list of what is left alone. */
async function changesOf(file: string): Promise<string[]> {
  const { code, stdout, stderr } = await server.apply(file)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.split('\n').filter((line) => line !== '' && !line.startsWith('not in the file'))
}

describe('what is there already', () => {
  test('is equal in another order and another spelling', async () => {
    const pin = PIN.replace(
      'Oy8dDJ6Lem9eTTwrGg+ejXxrWk8+LRwLmo9+bVxLOi8=',
      '3B:2f:1d0c9e8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f',
    )
    const same = of(
      'roles: [b, a]',
      `domains: [{ name: api.bank.example, certificates: [${pin}] }]`,
      'config: [{ value: { weekly: 2000, daily: 500.0 }, key: limit, scope: APPLICATION }]',
    )
    expect(await changesOf(same)).toEqual(['nothing to change'])
  })

  test('stays where the file leaves it out, and is changed where it is another', async () => {
    const changed = [
      '~ application my-app',
      '    - roles: ["a","b"]',
      '    + roles: ["a"]',
      '~ configuration item limit of my-app',
      '    - value: {"daily":500,"weekly":2000}',
      '    + value: 0',
      '1 change',
    ]
    expect(await changesOf(of('roles: [a]', 'config: [{ key: limit, value: -0 }]'))).toEqual([
      ...changed.slice(0, -1),
      '2 changes',
    ])
    expect(await changesOf(of('roles: [a]', 'config: [{ key: limit, value: 0 }]'))).toEqual(['nothing to change'])
    expect(await changesOf(of())).toEqual(['nothing to change'])
    expect(await server.exported()).toContain('name: core\n')
  })

  test('of a rule goes when the rule has it no more', async () => {
    expect(await changesOf(of('rules: [{ platform: IOS, requiredVersion: 2.0.0 }]'))).toEqual([
      '~ rule for IOS of my-app',
      '    - suggestedVersion: "2.1.0"',
      '    + suggestedVersion: null',
      '1 change',
    ])
    expect(await changesOf(of(`rules: [${RULE}]`))).toHaveLength(4)
  })

  test('and is not in the file is named and left alone', async () => {
    const { stdout } = await server.apply('apiVersion: pawl/1\n')
    expect(stdout).toMatch(/^not in the file, and left alone: application my-app, template .*, user admin\nnothing to change\n$/)
    const { stdout: within } = await server.apply(of())
    expect(within).toContain('version default of my-app, configuration item limit of my-app, rule for IOS of my-app, pin Oy8d')
    expect(within).toContain('webhook OPERATION core of my-app')
  })

  test('hands over to an application that the file makes as well, further down, and says so once', async () => {
    const file = `${of('transfers: [{ targets: [next-app], type: MOVE, initialFlags: [MOVED] }]')}  - id: next-app\n`
    const entry = '{"targets":["next-app"],"type":"MOVE","initialFlags":["MOVED"]}'
    expect(await changesOf(file)).toEqual([
      '+ application next-app',
      '~ transfers of my-app',
      '    - transfers: []',
      `    + transfers: [${entry}]`,
      '2 changes',
    ])
    expect(await changesOf(file)).toEqual(['nothing to change'])
    expect(await server.exported()).toContain('type: MOVE\n')
    expect(await changesOf(of('transfers: []'))).toContain('~ transfers of my-app')
  })
})

describe('what cannot be done is said before anything is changed', () => {
  beforeAll(async () => {
    await server.apply(users('{ username: fixed, role: read-only, expiresAt: 2037-01-01T00:00:00.500Z }'))
    await server.pawl(['webhook', 'create', 'ACTIVATION', 'https://hooks.bank.example/b', '--app', 'my-app', '--name', 'twin'])
    await server.pawl(['webhook', 'create', 'ACTIVATION', 'https://hooks.bank.example/c', '--app', 'my-app', '--name', 'twin'])
    await server.pawl([
      'webhook',
      'create',
      'ACTIVATION',
      'https://hooks.bank.example/d',
      '--app',
      'my-app',
      '--name',
      'known',
      '--user',
      'pawl:secret',
    ])
  })

  test.each([
    [
      'another role',
      users('{ username: fixed, role: admin }'),
      1,
      'users[0].role, line 3: the server has read-only, and no call changes it: pawl user remove fixed and apply again, or write what is there',
    ],
    [
      'another end',
      users('{ username: fixed, role: read-only, expiresAt: 2038-01-01T00:00:00Z }'),
      1,
      'users[0].expiresAt, line 3: the server has 2037-01-01T00:00:00.500Z, and no call changes it: pawl user remove fixed and apply again, or write what is there',
    ],
    [
      'another application',
      users('{ username: fixed, role: read-only, application: my-app }'),
      1,
      'users[0].application, line 3: the server has none, and no call changes it: pawl user remove fixed and apply again, or write what is there',
    ],
    [
      'another name',
      of('name: Mine'),
      1,
      'applications[0].name, line 4: the server calls the application "my-app", which stays as it is: write that, or leave name out',
    ],
    [
      'another end of a pin',
      of(`domains: [{ name: api.bank.example, certificates: [${PIN.replace('2037', '2038')}] }]`),
      1,
      'applications[0].domains[0].certificates[0].expires, line 4: the server has it until 2037-01-31T12:00:00Z: write that, or pawl certificate remove takes the pin away first',
    ],
    [
      'a name that two webhooks have',
      of('webhooks: [{ kind: ACTIVATION, name: twin, url: https://hooks.bank.example/b }]'),
      1,
      expect.stringMatching(
        /^stdin: applications\[0\]\.webhooks\[0\], line 4: the server has several of that kind and name \(\S+, \S+\): pawl webhook change or remove tells them apart\n$/,
      ),
    ],
    [
      'a password for another server',
      of('webhooks: [{ kind: ACTIVATION, name: known, url: https://other.bank.example/d }]'),
      1,
      expect.stringMatching(
        /^stdin: applications\[0\]\.webhooks\[0\]\.url, line 4: the password of pawl is for another server: pawl webhook change \S+ --to URL --user-file FILE\n$/,
      ),
    ],
    [
      'an application that is nowhere',
      users('{ username: lost, role: integration, application: nope }'),
      4,
      'users[0].application, line 3: there is no application nope, neither in the file nor on the server: add it to applications',
    ],
    [
      'a target that is nowhere',
      of('roles: [z]', 'transfers: [{ targets: [next-app, nope], type: MOVE }]'),
      4,
      'applications[0].transfers[0].targets[1], line 5: there is no application nope, neither in the file nor on the server: add it to applications',
    ],
  ])('%s', async (_name, file, code, stderr) => {
    const before = await dumpRows(server.context.db)
    const whole = `${file}texts:\n  - { messageKey: before, language: en, text: not stored }\n`
    expect(await server.apply(whole)).toEqual({
      code,
      stdout: '',
      stderr: typeof stderr === 'string' ? `stdin: ${stderr}\n` : stderr,
    })
    expect(await dumpRows(server.context.db)).toEqual(before)
  })

  test('two webhooks of one name are no file', async () => {
    const { code, stdout, stderr } = await server.pawl(['export'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^there are several of the name webhook ACTIVATION twin of my-app: pawl webhook change \S+ --name gives one another\n$/,
    )
  })

  test('a pin that has ended is left out, and said', async () => {
    const ended = of(
      'domains: [{ name: old.bank.example, certificates: [{ fingerprint: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=, expires: 2020-01-31T12:00:00Z }] }]',
    )
    const { code, stdout, stderr } = await server.apply(ended)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'pin AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= of old.bank.example in my-app has ended: it is left out\n',
    })
    expect(stdout).toMatch(/nothing to change\n$/)
  })

  test('so is a new user who has', async () => {
    const ended = users('{ username: gone, role: read-only, expiresAt: 2020-01-31T12:00:00Z }')
    const { code, stdout, stderr } = await server.apply(ended)
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'user gone has ended: it is left out\n' })
    expect(stdout).toMatch(/nothing to change\n$/)
  })
})

describe('a fault in the middle', () => {
  // Whether http may be called is a setting of the server.
  const FILE = of(
    `webhooks: [${['first', 'second', 'third']
      .map((name) => `{ kind: OPERATION, name: ${name}, url: http${name === 'second' ? '' : 's'}://hooks.bank.example/a }`)
      .join(', ')}]`,
  )

  test('says what is done and what not, and the next apply goes on', async () => {
    const { code, stdout, stderr } = await server.apply(FILE)
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^\+ webhook OPERATION first of my-app\n {4}\+ url: .*\n {4}secret: \S+ \(shown only now\)\n\+ webhook OPERATION second of my-app\n(?: {4}\+ .*\n)+$/,
    )
    expect(stderr).toMatch(
      /^stdin: applications\[0\]\.webhooks\[1\], line 4: webhook OPERATION second of my-app: POST http:\/\/\S+\/admin\/webhooks: HTTP 400 .*\(url: .*\); done: 1 of 3, not done: webhook OPERATION second of my-app, webhook OPERATION third of my-app; the next pawl apply goes on\n$/,
    )
    const mended = FILE.replace('http:', 'https:')
    expect((await changesOf(mended)).filter((line) => line.startsWith('+'))).toEqual([
      '+ webhook OPERATION second of my-app',
      '+ webhook OPERATION third of my-app',
    ])
  })

  test('is JSON for programs, secrets included', async () => {
    const file = FILE.replaceAll(/name: (\w+)/g, 'name: json-$1')
    const { code, stdout, stderr } = await server.apply(file, '--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      isDryRun: false,
      changes: [
        { what: 'webhook OPERATION json-first of my-app', state: 'done' },
        { what: 'webhook OPERATION json-second of my-app', state: 'not done' },
        { state: 'not done' },
      ],
      secrets: [
        { what: 'webhook OPERATION json-first of my-app', name: 'secret', value: expect.stringMatching(/^\S{20,}$/) as unknown },
      ],
    })
    expect(JSON.parse(stderr)).toMatchObject({ exitCode: 1, error: expect.stringContaining('done: 1 of 3') as unknown })
  })

  test('that is the end of the server is 3, and says how to get at a secret that nobody heard', async () => {
    const proxy = await startProxy(server, { isCut: (method, path) => method === 'POST' && path === '/admin/users' })
    try {
      const env = { PAWL_URL: proxy.url, PAWL_ADMIN: admin }
      const { code, stderr } = await runCli(['apply', '-f', '-'], env, { input: users('{ username: unheard, role: read-only }') })
      expect(code).toBe(3)
      expect(stderr).toMatch(
        /^stdin: users\[0\], line 3: user unheard: .* does not answer .*; if it is there now, pawl user password unheard gives it one that is known; done: 0 of 1, .*\n$/,
      )
      expect(await changesOf(users('{ username: unheard, role: read-only }'))).toEqual(['nothing to change'])
    } finally {
      await proxy.close()
    }
  })

  test.each([true, false])('where nobody reads a secret it is 6, and the line says whose (JSON: %s)', async (isJson) => {
    const name = `unseen-${isJson}`
    const [notes, printed]: [string[], string[]] = [[], []]
    const terminal: Terminal = {
      env: { PAWL_URL: server.url, PAWL_ADMIN: admin },
      columns: undefined,
      write: (text) => void printed.push(text),
      print: (text) => Promise.resolve(text === ''),
      note: (line) => void notes.push(line),
      askSecret: () => Promise.resolve(undefined),
      readInput: () => Promise.resolve(users(`{ username: ${name}, role: read-only }`)),
      interruption: () => new AbortController().signal,
    }
    expect(await runProgram(ENTRIES, ['apply', '-f', '-', ...(isJson ? ['--json'] : [])], terminal)).toBe(6)
    expect([notes.length, printed]).toEqual([1, []])
    expect(notes[0]).toMatch(new RegExp(`nobody reads the output any more: .*user ${name}`))
  })

  test('a credential that may only read exports, and is refused before it changes anything: 5', async () => {
    const { stdout } = await server.apply(users('{ username: reader, role: read-only }'))
    const env = { PAWL_URL: server.url, PAWL_ADMIN: `reader:${/password: (\S+)/.exec(stdout)?.[1] ?? ''}` }
    const refused = await runCli(['apply', '-f', '-'], env, { input: of('roles: [c]') })
    expect(refused).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/^stdin: applications\[0\], line 3: .*HTTP 403.*done: 0 of 1.*\n$/) as unknown,
    })
    const unwritable = await runCli(['export', '-o', '/nowhere/pawl.yaml'], { ...env, PAWL_ADMIN: env.PAWL_ADMIN })
    expect(unwritable.code).toBe(1)
    for (const { id } of await twins()) await server.pawl(['webhook', 'remove', id])
    const written = await runCli(['export', '-o', '/nowhere/pawl.yaml'], env)
    expect(written).toMatchObject({ code: 6, stdout: '', stderr: expect.stringMatching(/--output: ENOENT.*\n$/) as unknown })
    expect((await runCli(['export'], env)).stdout).toBe(await server.exported())
  })
})

const twins = async (): Promise<{ id: string }[]> => {
  const { webhooks } = JSON.parse((await server.pawl(['webhook', 'list', '--json'])).stdout) as {
    webhooks: { id: string; name: string }[]
  }
  return webhooks.filter(({ name }) => name === 'twin')
}

test('whatever JSON is written is read back, as the same text', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom(
      'no',
      'on',
      '1.0',
      '0x1F',
      '1e3',
      '~',
      'null',
      '*a',
      '&a',
      '!a',
      '- a',
      'a: b',
      '#',
      ' a',
      'a ',
      'a\n',
      '\na',
      'a\n\n',
      '\t',
      '|',
      '>',
      '<<',
      '=',
      '%',
      '---',
      '...',
      '2027-01-31',
      '\u2028',
      '\u0085',
      '\ufeff',
    ),
  )
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.double({ noNaN: true, min: -9e15, max: 9e15 }),
      fc.array(tie('value')),
      fc.dictionary(text, tie('value')),
    ),
  })).value
  fc.assert(
    fc.property(value, (given) => {
      const json: unknown = JSON.parse(JSON.stringify({ given }))
      const written = formatYaml(json)
      const read = parseYaml(written)
      expect('value' in read ? read.value : read).toEqual(json)
      expect(formatYaml('value' in read ? read.value : undefined)).toBe(written)
    }),
    { numRuns: 300 },
  )
})
