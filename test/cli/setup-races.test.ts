// pawl apply while somebody else applies a file as well.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import { type SetupServer, startProxy, startSetupServer } from '../helpers/setup.ts'

let server: SetupServer
let admin = ''
beforeAll(async () => {
  server = await startSetupServer()
  admin = `${server.admin.user}:${server.admin.password}`
  expect(await server.apply(of('rules: [{ platform: IOS, requiredVersion: 1.0.0 }]'))).toMatchObject({ code: 0, stderr: '' })
})
afterAll(() => server.close())

const of = (...lines: string[]): string =>
  `apiVersion: pawl/1\napplications:\n  - id: my-app\n${lines.map((line) => `    ${line}\n`).join('')}`
const users = (...lines: string[]): string => `apiVersion: pawl/1\nusers:\n${lines.map((line) => `  - ${line}\n`).join('')}`
const secretsIn = (stdout: string): number => (stdout.match(/\(shown only now\)/g) ?? []).length
const webhooksNamed = async (wanted: string): Promise<unknown[]> => {
  const { stdout } = await server.pawl(['webhook', 'list', '--json'])
  return (JSON.parse(stdout) as { webhooks: { name: string }[] }).webhooks.filter(({ name }) => name === wanted)
}

/** Applies `file`; just before the first change `rival` is applied as well. */
async function applyBehind(file: string, rival: string) {
  let made: Promise<{ code: number; stdout: string; stderr: string }> | undefined
  const proxy = await startProxy(server, {
    before: (method) => (method === 'GET' ? Promise.resolve() : (made ??= server.apply(rival))),
  })
  try {
    const end = await runCli(['apply', '-f', '-'], { PAWL_URL: proxy.url, PAWL_ADMIN: admin }, { input: file })
    return { end, rival: await made }
  } finally {
    await proxy.close()
  }
}

describe('what somebody else has made just before is found made', () => {
  test.each([
    ['an application', 'apiVersion: pawl/1\napplications: [{ id: other, name: Other }]\n', 0],
    ['a version', of("versions: [{ name: '3.0', isSupported: false }]"), 0],
    ['a rule', of('rules: [{ platform: ANDROID, requiredVersion: 1.0.0 }]'), 0],
    ['a rule that is another now', of('rules: [{ platform: IOS, requiredVersion: 2.0.0 }]'), 0],
    ['a webhook', of('webhooks: [{ kind: OPERATION, name: one, url: https://hooks.bank.example/one }]'), 1],
    ['a user', users('{ username: one, role: integration, application: my-app, rights: [keys:derive] }'), 1],
  ])('%s', async (_name, file, secrets) => {
    const { end, rival } = await applyBehind(file, file)
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(end.stdout).toContain('    was made by somebody else at the same time\n')
    expect([secretsIn(end.stdout), secretsIn(rival?.stdout ?? '')]).toEqual([0, secrets])
    expect((await server.apply(file)).stdout).toMatch(/nothing to change\n$/)
  })

  test.each([
    [
      'an application',
      'apiVersion: pawl/1\napplications: [{ id: third, roles: [a] }]\n',
      'apiVersion: pawl/1\napplications: [{ id: third, roles: [b] }]\n',
    ],
    [
      'a rule',
      of('rules: [{ platform: IOS, requiredVersion: 2.1.0 }]'),
      of('rules: [{ platform: IOS, requiredVersion: 2.2.0 }]'),
    ],
    [
      'a webhook',
      of('webhooks: [{ kind: OPERATION, name: two, url: https://hooks.bank.example/two, attributes: [status] }]'),
      of('webhooks: [{ kind: OPERATION, name: two, url: https://hooks.bank.example/2 }]'),
    ],
    [
      'a user',
      users('{ username: two, role: read-only, allowedAddresses: [10.0.0.0/8] }'),
      users('{ username: two, role: read-only }'),
    ],
  ])('%s that is another there is changed, and its secret is not shown again', async (_name, file, rival) => {
    const { end } = await applyBehind(file, rival)
    expect([end.code, end.stderr, secretsIn(end.stdout)]).toEqual([0, '', 0])
    expect((await server.apply(file)).stdout).toMatch(/nothing to change\n$/)
  })

  test('a user of another role is refused', async () => {
    const { end } = await applyBehind(users('{ username: three, role: admin }'), users('{ username: three, role: read-only }'))
    expect(end.code).toBe(1)
    expect(end.stderr).toMatch(
      /^stdin: users\[0\], line 3: user three: users\[0\]\.role, line 3: the server has read-only, and no call changes it: .*done: 0 of 1.*\n$/,
    )
  })
})

test('a webhook that is there twice for a moment is waited for', async () => {
  const file = of('webhooks: [{ kind: OPERATION, name: twin, url: https://hooks.bank.example/twin }]')
  expect((await server.apply(file)).code).toBe(0)
  const made = await server.pawl([
    'webhook',
    'create',
    'OPERATION',
    'https://hooks.bank.example/twin',
    '--app',
    'my-app',
    '--name',
    'twin',
    '--json',
  ])
  const { id } = JSON.parse(made.stdout) as { id: string }
  let lists = 0
  const proxy = await startProxy(server, {
    // Gone by the time of the second look.
    before: async (_method, path) => {
      if (path === '/admin/webhooks' && ++lists === 2) await server.pawl(['webhook', 'remove', id])
    },
  })
  const end = await runCli(['apply', '-f', '-'], { PAWL_URL: proxy.url, PAWL_ADMIN: admin }, { input: file })
  await proxy.close()
  expect(end).toMatchObject({ code: 0, stdout: expect.stringMatching(/nothing to change\n$/) as unknown, stderr: '' })
})

test('five that apply the same at the same time make everything once', async () => {
  const file = `${of(
    'versions: [{ name: race, isSupported: false }]',
    'config: [{ key: race, value: 1 }]',
    'rules: [{ platform: ANDROID, requiredVersion: 1.0.0 }, { platform: IOS, requiredVersion: 3.0.0 }]',
    'webhooks: [{ kind: OPERATION, name: race, url: https://hooks.bank.example/race }]',
  )}  - id: race
    roles: [a]
${users('{ username: race, role: integration, application: race, rights: [keys:derive] }').replace('apiVersion: pawl/1\n', '')}`
  const ends = await Promise.all(Array.from({ length: 5 }, () => server.apply(file)))
  expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ends.map(() => ({ code: 0, stderr: '' })))
  const printed = ends.map(({ stdout }) => stdout).join('')
  expect(printed).toContain('was made by somebody else at the same time')
  expect(printed.match(/password: /g)).toHaveLength(1)
  expect(printed.match(/secret: whsec_/g)).toHaveLength(1)
  expect((await server.apply(file)).stdout).toMatch(/nothing to change\n$/)
  expect(await webhooksNamed('race')).toHaveLength(1)
  const password = /password: (\S+)/.exec(printed)?.[1] ?? ''
  // The role may not list users; the password is right.
  expect((await runCli(['user', 'list'], { PAWL_URL: server.url, PAWL_ADMIN: `race:${password}` })).stderr).toContain('HTTP 403')
})
