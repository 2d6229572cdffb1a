// pawl apply --prune: what the file does not name goes, of the kinds that it has a list of, and nothing else.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dumpRows, EXAMPLE, type SetupServer, startProxy, startSetupServer } from '../helpers/setup.ts'
import { runCli } from '../helpers/cli.ts'

let server: SetupServer
beforeAll(async () => {
  server = await startSetupServer()
  expect(await server.apply(EXAMPLE)).toMatchObject({ code: 0, stderr: '' })
})
afterAll(() => server.close())

/** Owns every kind that can be removed, and names one template. */
const BARE = `apiVersion: pawl/1
applications:
  - id: retail
    versions: [{ name: default }]
    config: []
    rules: []
    domains: []
    webhooks: []
    oidcProviders: []
texts: []
templates:
  - templateName: only
    operationType: login
    dataTemplate: A2
    signatureType: [possession_knowledge]
    maxFailureCount: 5
    expiration: 300
    texts: { en: { title: Login, message: Log in } }
users: []
`
const REMOVED = [
  'OpenID provider web-bank of retail',
  'configuration item help for ACTIVATION of retail',
  'configuration item payments.limit of retail',
  'domain api.bank.example of retail',
  'pin Oy8dDJ6Lem9eTTwrGg+ejXxrWk8+LRwLmo9+bVxLOi8= of api.bank.example in retail',
  'rule for IOS 17 of retail',
  'template account_new',
  'template login',
  'template payment',
  'template transfer',
  'text update in en',
  'user auditor',
  'user core',
  'webhook OPERATION core banking of retail',
]
const removedIn = (stdout: string): string[] => [...stdout.matchAll(/^- (.*)$/gm)].map(([, what = '']) => what).toSorted()

test('nothing of a kind that the file has no list of', async () => {
  const before = await dumpRows(server.context.db)
  const { code, stdout } = await server.apply('apiVersion: pawl/1\napplications: [{ id: retail }]\n', '--prune', '--yes')
  expect([code, removedIn(stdout)]).toEqual([0, []])
  expect(stdout).toMatch(/^not in the file, and left alone: .*template transfer.*\nnothing to change\n$/)
  expect(await dumpRows(server.context.db)).toEqual(before)
})

test('is shown by --dry-run, and needs --yes before anything is changed', async () => {
  const before = await dumpRows(server.context.db)
  const shown = await server.apply(BARE, '--prune', '--dry-run')
  expect([shown.code, removedIn(shown.stdout)]).toEqual([0, REMOVED])
  expect(shown.stdout).toMatch(/\n15 changes would be made: nothing was changed\n$/)
  const refused = await server.apply(BARE, '--prune')
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toMatch(
    /^--prune would remove .* and 4 more, and nothing was changed: --yes does it, --dry-run shows it; .*\n$/,
  )
  expect(await server.apply(BARE, '--yes')).toMatchObject({ code: 2, stdout: '' })
  expect(await dumpRows(server.context.db)).toEqual(before)
})

test('one who was faster is no fault, and administrators, applications and versions stay', async () => {
  const proxy = await startProxy(server, {
    before: async (method, path) => {
      if (method === 'DELETE' && path.endsWith('/templates/transfer')) await server.pawl(['template', 'remove', 'transfer'])
    },
  })
  const admin = `${server.admin.user}:${server.admin.password}`
  const line = ['apply', '-f', '-', '--prune', '--yes', '--json']
  const { code, stdout } = await runCli(line, { PAWL_URL: proxy.url, PAWL_ADMIN: admin }, { input: BARE })
  await proxy.close()
  expect(code).toBe(0)
  const { changes, notInFile } = JSON.parse(stdout) as Record<string, { change: string; what: string; state: string }[]>
  expect(
    changes
      ?.filter(({ change }) => change === 'remove')
      .map(({ what }) => what)
      .toSorted(),
  ).toEqual(REMOVED)
  expect(changes?.filter(({ state }) => state !== 'done')).toEqual([
    { change: 'remove', what: 'template transfer', state: 'made by another', members: [] },
  ])
  expect(notInFile).toEqual(['version 2.0 of retail', 'application junior', `user ${server.admin.user}`])
  expect(await server.apply(BARE, '--prune', '--yes')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nnothing to change\n$/) as unknown,
  })
  const { stdout: list } = await server.pawl(['template', 'list', '--json'])
  expect((JSON.parse(list) as { templates: { templateName: string }[] }).templates.map((one) => one.templateName)).toEqual([
    'only',
  ])
})

test('the pins of a domain stay where those of the file have all ended: apps refuse a domain without any', async () => {
  const pinned = (fingerprint: string, expires: string) => `apiVersion: pawl/1
applications:
  - id: retail
    domains: [{ name: kept.bank.example, certificates: [{ fingerprint: ${fingerprint}, expires: ${expires} }] }]
`
  const [old, current] = ['A', 'B'].map((letter) => `${letter.repeat(42)}A=`) as [string, string]
  expect(await server.apply(pinned(current, '2037-01-31T12:00:00Z'))).toMatchObject({ code: 0 })
  const { code, stdout } = await server.apply(pinned(old, '2020-01-31T12:00:00Z'), '--prune', '--yes')
  expect([code, removedIn(stdout)]).toEqual([0, []])
  const leftAlone = /^not in the file, and left alone: (.*)$/m.exec(stdout)?.[1]?.split(', ')
  expect(leftAlone).toContain(`pin ${current} of kept.bank.example in retail`)
})
