// The administrator of an installation: the first start makes one, and pawl admin reset gives a new password.
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { serverUrl } from '../helpers/app.ts'
import { createBank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  refusePawl,
  runNode,
  startPawl,
} from '../helpers/process.ts'
import { expectOk } from '../helpers/world.ts'

// Several starts, and other test files run at the same time.

afterAll(endEverything)

test('admin reset makes a new password, the old one is dead, and the audit log has it', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  const first = await startPawl(env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  await first.end('SIGTERM')
  const reset = await runNode(['bin/pawl.mjs', 'admin', 'reset'], env)
  expect(reset).toMatchObject({ code: 0, stderr: '' })
  const [, password = ''] = /^Administrator: admin, password: (\S+) \(shown only now\)\n$/.exec(reset.stdout) ?? []
  const second = await startPawl(env)
  expect(second.output()).not.toContain('password')
  expect((await createBank(second.url, `admin:${ADMIN_PASSWORD}`).call('GET', '/admin/users')).status).toBe(401)
  const bank = createBank(second.url, `admin:${password}`)
  const { text } = expectOk(await bank.call('GET', '/admin/audit'))
  expect(text).toContain('"action":"admin reset"')
  expect(text).not.toContain(password)
  await second.end('SIGTERM')
})

test('a start names no administrator who is not there', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  const first = await startPawl(env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  expect(first.output()).toMatch(/^Administrator: admin$/m)
  await first.end('SIGTERM')
  const second = await startPawl(env, { PAWL_ADMIN_USER: 'nobody-yet' })
  const { text } = expectOk(await createBank(second.url, `admin:${ADMIN_PASSWORD}`).call('GET', '/admin/users'))
  expect([second.output(), text].join('')).not.toContain('nobody-yet')
  await second.end('SIGTERM')
})

test.skipIf(serverUrl() === undefined)('a start that fails makes no administrator whose password nobody has seen', async () => {
  const { env, adminUrl } = await createInstallation('postgresql')
  const client = new pg.Client({ connectionString: adminUrl })
  await client.connect()
  await client.query('alter table application rename to application_away')
  expect((await refusePawl(env)).code).toBe(1)
  await client.query('alter table application_away rename to application')
  await client.end()
  const started = await startPawl(env)
  expect(started.output()).toMatch(/^Administrator: admin, password: \S+ \(shown only now\)$/m)
  await started.end('SIGTERM')
})

test.each(['a:b', '.', '..', ''])('admin reset makes no administrator that is called %j', async (user) => {
  const { env } = await createInstallation(DATABASE_KIND)
  const { code, stdout, stderr } = await runCli(['admin', 'reset', '--user', user], env)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/^--user must be 1 to 255 characters without colon and control characters, other than \. and \.\.\n$/)
})

test.each([[[]], [['reset', 'now']], [['reset', '--unknown']], [['other']]])(
  'admin %j is refused and does nothing',
  async (args) => {
    const { env } = await createInstallation(DATABASE_KIND)
    const { code, stdout, stderr } = await runCli(['admin', ...args], env)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^.*--help (says how to call it|lists them)\n$/)
  },
)
