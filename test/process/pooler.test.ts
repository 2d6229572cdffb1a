// Behind PgBouncer, in session and in transaction mode: everything is served, and a setting that does not fit is named.
import { afterEach, describe, expect, test, vi } from 'vitest'
import { member } from '../../phone/http.ts'
import { SESSION_SETTINGS } from '../../src/storage/database/session-settings.ts'
import { serverUrl } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { SECOND } from '../helpers/expectations.ts'
import { HOSTILE_SETTINGS, runAll } from '../helpers/hostile.ts'
import { hasPgbouncer, openPgbouncer, PGBOUNCER, type Pgbouncer } from '../helpers/pgbouncer.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Environment,
  type Installation,
  refusePawl,
  startPawl,
} from '../helpers/process.ts'
import { expectOk, openWorld } from '../helpers/world.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

let pooler: Pgbouncer | undefined
afterEach(async () => {
  await endEverything()
  await pooler?.close()
  pooler = undefined
})

/** The database of an installation through the pooler, and what pawl is told of it. */
async function open(
  mode: 'session' | 'transaction',
  told: string,
  { isEmpty = false, ...options }: Parameters<typeof openPgbouncer>[2] & { isEmpty?: boolean } = {},
) {
  const installation = await createInstallation('postgresql', { isEmpty })
  // What docs/OPERATIONS.md asks for: in transaction mode the role has what a pooler does not pass on.
  if (mode === 'transaction') await setRole(installation, SESSION_SETTINGS)
  pooler = await openPgbouncer(databaseOf(installation), mode, options)
  const env: Environment = {
    ...installation.env,
    DATABASE_URL: pooler.url,
    PAWL_DATABASE_POOLER: told,
    PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
  }
  return { installation, env }
}

/** Settings of the role in its database, for sessions that begin from now on. */
async function setRole({ env, adminUrl = '' }: Installation, settings: Readonly<Record<string, string>>): Promise<void> {
  const { username, pathname } = new URL(env['DATABASE_URL'] ?? '')
  const whose = `role ${username} in database ${pathname.slice(1)}`
  await runAll(
    adminUrl,
    Object.entries(settings).map(([name, value]) => `alter ${whose} set ${name} = '${value}'`),
  )
}

const databaseOf = ({ env }: Installation): string => env['DATABASE_URL'] ?? ''
/** PAWL_TEST_ROUNDS asks for more. */
const ROUNDS = Number(process.env['PAWL_TEST_ROUNDS'] ?? '1')
const IGNORED = 'statement_timeout,idle_in_transaction_session_timeout'

const title =
  serverUrl() === undefined
    ? 'skipped: PAWL_TEST_DATABASE_URL is not set'
    : `PgBouncer (needs ${PGBOUNCER}: apt-get install pgbouncer)`

describe.skipIf(serverUrl() === undefined || !hasPgbouncer)(title, () => {
  // A session has its server for itself: there must be one for each connection.
  test.each([
    ['session', 40],
    ['transaction', 3],
  ] as const)('in %s mode, two processes and both generations of phones', async (mode, poolSize) => {
    const { env } = await open(mode, mode, { poolSize })
    const first = await startPawl(env)
    const second = await startPawl(env)
    const admin = `admin:${ADMIN_PASSWORD}`
    const world = await openWorld({
      urls: [first.url, second.url],
      admin,
      advance: () => undefined,
      close: async () => undefined,
    })
    const phones = await Promise.all(Array.from({ length: 8 }, () => world.activePhone('3.3')))
    const newer = await (await openPhonesV4(world)).activePhone('EC_P384')
    for (let round = 0; round < 20; round += 1) {
      const replies = await Promise.all([
        ...phones.map(({ phone }) => phone.send(phone.prepareValidation({ body: `pay ${round}` }))),
        newer.phone.send(newer.phone.prepareValidation({ body: `pay ${round}` })),
        ...Array.from({ length: 4 }, () => world.bank.register(world.newUser())),
      ])
      for (const reply of replies) expectOk(reply)
    }
    for (const { url } of [first, second]) expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    // A statement that failed, and a connection that was lost, are told there.
    for (const server of [first, second]) expect(server.output()).not.toMatch(/"level":"(error|fatal)"|connection/)
  })

  test.each([
    ['session', HOSTILE_SETTINGS],
    ['transaction', { DateStyle: 'German', TimeZone: 'Asia/Kathmandu', standard_conforming_strings: 'off' }],
    ['transaction', { DateStyle: 'SQL, DMY', TimeZone: 'America/St_Johns' }],
    ['transaction', { DateStyle: 'Postgres, MDY', IntervalStyle: 'sql_standard' }],
  ] as const)('in %s mode, a role that is set to %o is served as any other', async (mode, settings) => {
    const { installation } = await open(mode, mode)
    await setRole(installation, settings)
    await pooler?.close()
    pooler = await openPgbouncer(databaseOf(installation), mode, { poolSize: 12 })
    const env = { ...installation.env, PAWL_DATABASE_POOLER: mode, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
    const { url } = await startPawl({ ...env, DATABASE_URL: pooler.url })
    const admin = `admin:${ADMIN_PASSWORD}`
    const world = await openWorld({ urls: [url], admin, advance: () => undefined, close: async () => undefined })
    const { phone } = await world.activePhone('3.3')
    const user = { username: 'over', role: 'integration', application: world.applicationId, expiresAt: Date.now() + 10 * SECOND }
    const reply = expectOk(await world.bank.call('POST', '/admin/users', user))
    const over = world.bank.as(`over:${String(member(reply.json, 'password'))}`)
    for (let round = 0; round < 10; round += 1) expectOk(await phone.send(phone.prepareValidation({ body: `pay ${round}` })))
    await vi.waitFor(async () => expect((await over.view('nobody')).status).toBe(401), { timeout: PATIENCE_MS, interval: 200 })
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  })

  test.each([
    ['default_transaction_isolation', 'serializable', 'read committed'],
    ['default_transaction_isolation', 'repeatable read', 'read committed'],
    ['bytea_output', 'escape', 'hex'],
    ['extra_float_digits', '-15', '1'],
    ['array_nulls', 'off', 'on'],
  ])('in transaction mode, a role whose %s is %s is refused with what to do, and then served', async (name, wrong, right) => {
    const { installation } = await open('transaction', 'transaction')
    const { username } = new URL(databaseOf(installation))
    const env = { ...installation.env, PAWL_DATABASE_POOLER: 'transaction', PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
    const reopen = async (value: string): Promise<Environment> => {
      await setRole(installation, { [name]: value })
      await pooler?.close()
      pooler = await openPgbouncer(databaseOf(installation), 'transaction')
      return { ...env, DATABASE_URL: pooler.url }
    }
    const wrongEnv = await reopen(wrong)
    const { code, stderr } = await refusePawl(wrongEnv)
    const says = `sessions of the role ${username} have ${name} = '${wrong}'`
    const todo = `alter role ${username} set ${name} = '${right}'`
    expect(code).toBe(1)
    expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(`pawl cannot start: DATABASE_URL: ${says}`)])
    expect(stderr).toContain(todo)
    const doctor = await runCli(['doctor'], wrongEnv)
    expect(doctor.code).toBe(1)
    expect(doctor.stdout).toContain(`BROKEN   settings: ${says}`)
    expect(doctor.stdout).toContain(todo)
    const { url } = await startPawl(await reopen(right))
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  })

  // What one of them had taken for its session stayed with a server of the pooler: the others waited for ever, and said nothing.
  test.each([2, 4, 12])(
    'in transaction mode with %i servers, three processes that start at once make one empty database',
    async (poolSize) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const { env } = await open('transaction', 'transaction', { poolSize, isEmpty: true })
        const all = await Promise.all([1, 2, 3].map(() => startPawl(env)))
        for (const { url } of all) expect((await fetch(`${url}/health/ready`)).status).toBe(200)
        for (const one of all) expect((await one.end('SIGTERM')).code).toBe(0)
        await pooler?.close()
        pooler = undefined
      }
    },
  )

  test.each([
    [
      'a database that the server has not',
      '/nothing',
      /\/nothing refuses the connection \(08P01: .*"nothing".*\): look at the databases/,
    ],
    ['a database whose server is away', '/away', /\/away did not answer in time: .* a pooler has no server for it/],
  ])('%s is named, with what to do', async (_, path, says) => {
    const { env } = await open('transaction', 'transaction', { more: 'away = host=127.0.0.1 port=1 user=pawl' })
    const url = new URL(env['DATABASE_URL'] ?? '')
    url.pathname = path
    const { code, stderr } = await refusePawl(env, { DATABASE_URL: url.toString() })
    expect([code, stderr.split('\n').length]).toEqual([1, 2])
    expect(stderr).toMatch(says)
    expect(stderr).toMatch(/^pawl cannot start: DATABASE_URL: /)
  })

  test('a setting that is missing stops the start, where PgBouncer refuses the time limits', async () => {
    const { env } = await open('transaction', 'none')
    const { code, stderr } = await refusePawl(env)
    expect(code).toBe(1)
    expect(stderr).toContain('PAWL_DATABASE_POOLER says its mode')
  })

  test.each([
    ['transaction', 'none', 'set PAWL_DATABASE_POOLER=transaction'],
    ['transaction', 'session', 'set PAWL_DATABASE_POOLER=transaction'],
    ['session', 'none', 'set PAWL_DATABASE_POOLER=session'],
  ] as const)('in %s mode and told %s, the doctor names the setting', async (mode, told, todo) => {
    const { env } = await open(mode, told, { ignores: IGNORED })
    const { code, stdout } = await runCli(['doctor'], env)
    expect(stdout).toContain(todo)
    expect(code).toBe(1)
  })

  test('the doctor asks for the time limits of the role, which hold in transaction mode', async () => {
    const { env, installation } = await open('transaction', 'transaction')
    await startPawl(env)
    const before = await runCli(['doctor'], env)
    expect(before.stdout).toContain('the role has no statement_timeout')
    await setRole(installation, { statement_timeout: '8s' })
    await pooler?.close()
    pooler = await openPgbouncer(databaseOf(installation), 'transaction')
    const after = await runCli(['doctor'], { ...env, DATABASE_URL: pooler.url })
    expect(after.stdout).toContain('ok       pooler: PAWL_DATABASE_POOLER is transaction')
    expect(after.stdout).not.toContain('time limits')
  })
})
