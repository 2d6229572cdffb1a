// A start that has to wait says for whom, answers probes meanwhile, and ends at once when it is told to: while another process migrates, while
// others use a table that is to be migrated, while a migration runs.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { migrations } from '../../migrations/index.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { migrate, migrateDatabase } from '../../src/storage/database/migrate.ts'
import { serverUrl } from '../helpers/app.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  createInstallation,
  endEverything,
  type Environment,
  type Installation,
  type Running,
  SERVER,
  startNode,
  startPawl,
} from '../helpers/process.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const clients: pg.Client[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end()
  await endEverything()
})

/** What processes of every version ask for before they migrate. */
const LOCK = '3853314791062309107'
const OTHERS = '"msg":"the start waits for the migrations of another process"'
const TABLE = '"msg":"the start waits for a table that others use, to migrate it"'
const RUNNING = '"msg":"the start waits for a migration that runs"'
const READY = 'Ready.'
// A start waits two seconds before it says for whom, and one before it answers probes.
const WAITED_MS = 3_000

/** A session of the database that has done this. */
async function hold({ adminUrl = '' }: Installation, ...statements: readonly string[]): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: adminUrl })
  clients.push(client)
  await client.connect()
  for (const statement of statements) await client.query(statement)
  return client
}

interface Starting extends Running {
  readonly url: string
  readonly since: number
}

async function start(env: Environment): Promise<Starting> {
  const url = `http://127.0.0.1:${await findQuietPort()}`
  return { ...startNode([SERVER], { ...env, PAWL_PORT: new URL(url).port }), url, since: performance.now() }
}

async function ask(url: string, method = 'GET'): Promise<readonly [number, string, string | null]> {
  const reply = await fetch(url, { method })
  return [reply.status, await reply.text(), reply.headers.get('retry-after')]
}

/** It answers probes from soon after the line on. Returns the milliseconds that its start has taken on this machine. */
async function expectInView({ url, since }: Starting, reason: string): Promise<number> {
  await vi.waitFor(async () => expect((await ask(`${url}/health/live`))[0]).toBe(200), { timeout: PATIENCE_MS, interval: 50 })
  const startMs = performance.now() - since
  for (let i = 0; i < 5; i += 1) {
    expect(await ask(`${url}/health/live`)).toEqual([200, '{"status":"OK"}', null])
    await sleep(100)
  }
  expect(await ask(`${url}/health/live`, 'HEAD')).toEqual([200, '', null])
  expect(await ask(`${url}/health/ready`)).toEqual([503, JSON.stringify({ status: 'UNAVAILABLE', reason }), '1'])
  for (const [path, method] of [
    ['/pa/v3/status', 'POST'],
    ['/', 'GET'],
    ['/health/live', 'POST'],
    ['/health/live/x', 'GET'],
  ] as const) {
    const [status, text, retryAfter] = await ask(`${url}${path}`, method)
    expect([status, retryAfter], path).toEqual([503, '1'])
    const refusal = { status: 'ERROR', responseObject: { code: 'HTTP_503', message: reason } }
    expect(JSON.parse(text), path).toEqual(path.startsWith('/health/') ? { status: 'UNAVAILABLE', reason } : refusal)
  }
  return startMs
}

/** It ends soon, as one that was told to. A start has many times the work of an end, on a busy machine too; some of it is WAITED_MS. */
async function expectSoonOver(running: Running, startMs: number): Promise<void> {
  const since = performance.now()
  const { code, signal, stderr } = await running.end('SIGTERM')
  expect([code, signal, stderr]).toEqual([0, null, ''])
  expect(performance.now() - since).toBeLessThan(Math.max(3_000, startMs - WAITED_MS))
}

/** No session of a server is left in the database. */
async function expectNobody(installation: Installation): Promise<void> {
  const client = await hold(installation)
  const count = `select count(*)::int as left from pg_stat_activity where datname = current_database() and application_name = 'pawl'`
  await vi.waitFor(async () => expect((await client.query<{ left: number }>(count)).rows).toEqual([{ left: 0 }]), {
    timeout: PATIENCE_MS,
    interval: 100,
  })
}

/** A database as the first release left it. */
async function makeOld({ env }: Installation): Promise<void> {
  const { db, close } = await openDatabase({ databaseUrl: env['DATABASE_URL'], dataDir: '', poolSize: 1 })
  await migrate(db, { known: Object.fromEntries(Object.entries(migrations).slice(0, 1)) })
  await close()
}

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  test.each([
    ['for its session, as older versions do', [`select pg_advisory_lock(${LOCK})`], [`select pg_advisory_unlock(${LOCK})`]],
    ['for its transaction', ['begin', `select pg_advisory_xact_lock(${LOCK})`], ['rollback']],
  ])('another process that migrates and has the lock %s', async (_, take, giveBack) => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    const holder = await hold(installation, ...take)
    const waiting = await start(installation.env)
    await waiting.printed(OTHERS)
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
    expect(waiting.output()).toContain(`"holder":"session ${rows[0]?.pid} `)
    await expectInView(waiting, 'the start waits for the migrations of another process')
    expect(
      waiting
        .output()
        .split('\n')
        .filter((line) => line.includes(OTHERS)),
    ).toHaveLength(1)
    for (const statement of giveBack) await holder.query(statement)
    await waiting.printed(READY)
    expect((await ask(`${waiting.url}/health/ready`))[0]).toBe(200)
    expect((await waiting.end('SIGTERM')).code).toBe(0)
  })

  test('a lock that nobody gives back holds up no start that has nothing to migrate', async () => {
    const installation = await createInstallation('postgresql')
    await hold(installation, `select pg_advisory_lock(${LOCK})`)
    const pawl = await startPawl(installation.env)
    expect(pawl.output()).not.toContain(OTHERS)
    await pawl.end('SIGTERM')
  })

  test.each([
    ['one process', {}],
    ['workers', { PAWL_PROCESSES: '2' }],
    ['a start that hardly logs', { PAWL_LOG_LEVEL: 'error' }],
  ])('%s that waits for another process ends when it is told to', async (_, more) => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    await hold(installation, `select pg_advisory_lock(${LOCK})`)
    const waiting = await start({ ...installation.env, ...more })
    await expectSoonOver(waiting, await expectInView(waiting, 'the start waits for the migrations of another process'))
    await expectNobody(installation)
  })

  test('one that waits for a table', async () => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    await makeOld(installation)
    const holder = await hold(installation, 'begin', 'lock table activation in access share mode')
    const first = await start(installation.env)
    await first.printed(TABLE)
    await expectSoonOver(first, await expectInView(first, 'the start waits for a table that others use, to migrate it'))
    await expectNobody(installation)
    const second = await start(installation.env)
    await second.printed(TABLE)
    await holder.query('rollback')
    await second.printed(READY)
    expect((await second.end('SIGTERM')).code).toBe(0)
  })

  test('one whose migration takes long', async () => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    await makeOld(installation)
    await hold(
      installation,
      `create function dally() returns event_trigger language plpgsql as $$ begin perform pg_sleep(60); end $$`,
      `create event trigger dally on ddl_command_start when tag in ('ALTER TABLE', 'CREATE TABLE', 'CREATE INDEX') execute function dally()`,
    )
    const migrating = await start(installation.env)
    await migrating.printed(RUNNING)
    const startMs = await expectInView(migrating, 'the start waits for a migration that runs')
    const other = await start(installation.env)
    await other.printed(OTHERS)
    for (const one of [other, migrating]) await expectSoonOver(one, startMs)
    await expectNobody(installation)
    await hold(installation, 'drop event trigger dally')
    const last = await start(installation.env)
    await last.printed(READY)
    expect((await last.end('SIGTERM')).code).toBe(0)
  })

  test('a command that migrates says for whom it waits', async () => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    const holder = await hold(installation, `select pg_advisory_lock(${LOCK})`)
    const migrating = startNode(['bin/pawl.mjs', 'migrate'], installation.env)
    await vi.waitFor(
      () => expect(migrating.output()).toMatch(/^the start waits for the migrations of another process: session \d+ /),
      { timeout: PATIENCE_MS },
    )
    await holder.query(`select pg_advisory_unlock(${LOCK})`)
    expect(await migrating.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('migrated') as unknown })
  })

  test('a command whose migration takes long ends when it is told to, and nothing of it goes on', async () => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    await makeOld(installation)
    await hold(
      installation,
      `create function dally() returns event_trigger language plpgsql as $$ begin perform pg_sleep(60); end $$`,
      `create event trigger dally on ddl_command_start when tag in ('ALTER TABLE', 'CREATE TABLE', 'CREATE INDEX') execute function dally()`,
    )
    const begin = performance.now()
    const migrating = startNode(['bin/pawl.mjs', 'migrate'], installation.env)
    await vi.waitFor(() => expect(migrating.output()).toContain('the start waits for a migration that runs'), {
      timeout: PATIENCE_MS,
    })
    const since = performance.now()
    expect(await migrating.end('SIGTERM')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /\nSIGTERM came: migrations that were done stay, and pawl migrate runs the others\n$/,
      ) as unknown,
    })
    expect(performance.now() - since).toBeLessThan(Math.max(3_000, since - begin - WAITED_MS))
    await expectNobody(installation)
    await hold(installation, 'drop event trigger dally')
    expect(await startNode(['bin/pawl.mjs', 'migrate'], installation.env).ended).toMatchObject({ code: 0 })
  })

  test('when the process goes, what others waited for is theirs', async () => {
    const installation = await createInstallation('postgresql', { isEmpty: true })
    const stopped = new AbortController()
    const reason = new Error('told to stop')
    const holder = await hold(installation, 'begin', `select pg_advisory_xact_lock(${LOCK})`)
    const database = await openDatabase({ databaseUrl: installation.env['DATABASE_URL'], dataDir: '', poolSize: 2 })
    const isTold = Promise.withResolvers<void>()
    const migrating = migrateDatabase(database, { signal: stopped.signal, onDelay: () => isTold.resolve() })
    await isTold.promise
    stopped.abort(reason)
    await expect(migrating).rejects.toBe(reason)
    await holder.query('rollback')
    expect(await migrateDatabase(database)).toEqual(Object.keys(migrations))
    await database.close()
  })
})
