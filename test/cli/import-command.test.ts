// pawl import powerauth as a command between two databases: one at a time, whatever the source is set to, and what it says when one of them fails.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { b64, random } from '../../phone/v3/crypto.ts'
import { inTransaction, openDatabase, type Database } from '../../src/storage/database/database.ts'
import { lockImport } from '../../src/storage/activation/import.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { runAll, urlOf } from '../helpers/hostile.ts'
import { hasPgbouncer, openPgbouncer } from '../helpers/pgbouncer.ts'
import { createReferenceDatabase, type ReferenceDatabase } from '../helpers/powerauth-server.ts'

const MASTER_DB_KEY = random(16)
const HOME = mkdtempSync(join(tmpdir(), 'pawl-import-command-'))

describe.skipIf(serverUrl() === undefined)('between two databases, where PAWL_TEST_DATABASE_URL is set', () => {
  let source: PostgresDatabase
  let target: PostgresDatabase
  let origin: Database
  let reference: ReferenceDatabase
  let env: Record<string, string>

  beforeEach(async () => {
    source = await createPostgresDatabase({ isEmpty: true })
    target = await createPostgresDatabase()
    env = {
      DATABASE_URL: target.databaseUrl,
      PAWL_MASTER_KEY: b64(random(32)),
      POWERAUTH_DATABASE_URL: source.databaseUrl,
      POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY: b64(MASTER_DB_KEY),
    }
    origin = await openDatabase({ databaseUrl: source.databaseUrl, dataDir: '', poolSize: 1 })
    reference = await createReferenceDatabase(origin.db, MASTER_DB_KEY)
    for (let i = 0; i < 3; i++) await reference.addPhone('3.3')
  })
  afterEach(async () => {
    await origin.close()
    await source.drop()
    await target.drop()
  })
  afterAll(() => rmSync(HOME, { recursive: true }))

  const on = async <T>(databaseUrl: string, work: (database: Database) => Promise<T>): Promise<T> => {
    const database = await openDatabase({ databaseUrl, dataDir: '', poolSize: 2 })
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }
  const importIt = (...words: string[]) => runCli(['import', 'powerauth', ...words], env)
  const readTallies = (stdout: string) =>
    (JSON.parse(stdout) as { tallies: Readonly<Record<string, Readonly<Record<string, number>>>> }).tallies

  test.each([
    { DateStyle: 'German, DMY', TimeZone: 'Asia/Kathmandu' },
    { DateStyle: 'SQL, DMY', standard_conforming_strings: 'off', extra_float_digits: '-15' },
    { DateStyle: 'Postgres, MDY', array_nulls: 'off', default_transaction_isolation: 'serializable' },
    { client_encoding: 'LATIN2', IntervalStyle: 'sql_standard' },
  ])('a source that is set to %o', async (settings) => {
    await runAll(
      source.adminUrl,
      Object.entries(settings).map(([name, value]) => `alter database ${source.name} set ${name} = '${value}'`),
    )
    const { code, stdout, stderr } = await importIt('--json', '--time-zone', 'Europe/Prague')
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(readTallies(stdout)['activation']).toEqual({ found: 3, imported: 3, alreadyThere: 0, leftOut: 0 })
    const times = await on(target.databaseUrl, ({ db }) => db.selectFrom('activation').select('created_at').execute())
    for (const { created_at } of times) expect(created_at).toEqual(new Date('2026-01-02T02:04:05.678Z'))
  })

  test.skipIf(!hasPgbouncer).each(['session', 'transaction'] as const)('both behind PgBouncer in %s mode', async (mode) => {
    const [before, behind] = [await openPgbouncer(source.databaseUrl, mode), await openPgbouncer(target.databaseUrl, mode)]
    Object.assign(env, { DATABASE_URL: behind.url, PAWL_DATABASE_POOLER: mode, PAWL_DATABASE_POOL_SIZE: '2' })
    const { code, stdout, stderr } = await importIt('--from', before.url, '--json')
    await before.close()
    await behind.close()
    // A pooler in transaction mode passes on the hostile settings of the role.
    if (mode === 'transaction' && process.env['PAWL_TEST_DATABASE_HOSTILE']) {
      expect({ code, stderr }).toEqual({
        code: 3,
        stderr: expect.stringMatching(/a pooler in transaction mode does not pass on/) as unknown,
      })
      return
    }
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(readTallies(stdout)['activation']).toMatchObject({ imported: 3 })
  })

  test('a source that ends what takes long', async () => {
    const limits = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
    await runAll(
      source.adminUrl,
      limits.map((name) => `alter database ${source.name} set ${name} = '1500'`),
    )
    await beforeActivations('perform pg_sleep(1)')
    const { code, stdout, stderr } = await importIt('--json')
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(readTallies(stdout)['activation']).toMatchObject({ imported: 3 })
  })

  test('a source that does not know what its bytes mean', async () => {
    const name = `pawl_test_ascii_${randomBytes(6).toString('hex')}`
    await runAll(serverUrl() ?? '', [`create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`])
    const url = urlOf(serverUrl() ?? '', { database: name })
    const { activationId } = await on(url, async ({ db }) => {
      const own = await createReferenceDatabase(db, MASTER_DB_KEY)
      await own.addPhone('3.3', { row: { activation_name: 'Telefon Václava' } })
      const latin = await own.addPhone('3.3')
      await sql`update pa_activation set user_id = E'Nov\\xe1k' where activation_id = ${latin.activationId}`.execute(db)
      return latin
    })
    const { code, stdout } = await importIt('--from', url, '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      tallies: { activation: { found: 2, imported: 1, leftOut: 1 } },
      leftOut: [{ kind: 'activation', ids: [activationId], reason: 'its user id is blank, or has control characters' }],
    })
    const names = await on(target.databaseUrl, ({ db }) => db.selectFrom('activation').select('name').execute())
    expect(names).toEqual([{ name: 'Telefon Václava' }])
    await runAll(serverUrl() ?? '', [`drop database ${name} with (force)`])
  })

  /** What a statement of PL/pgSQL does before each activation is written. */
  const beforeActivations = (what: string) =>
    runAll(target.adminUrl, [
      `create or replace function meddle() returns trigger language plpgsql as $$ begin ${what}; return new; end $$`,
      'create or replace trigger meddle before insert on activation for each row execute function meddle()',
    ])

  describe('one import at a time', () => {
    test('the second of two says that it is one, and does nothing', async () => {
      await beforeActivations('perform pg_sleep(1)')
      await reference.addPhone('3.3', { row: { flags: 'x' } })
      const list = join(HOME, 'left-out.jsonl')
      writeFileSync(list, 'of an earlier run\n')
      const words = ['--json', '--left-out-file', list]
      const ends = await Promise.all([importIt(...words), importIt(...words)])
      const [done, refused] = ends.toSorted((a, b) => a.code - b.code)
      expect([done?.code, refused?.code, refused?.stdout]).toEqual([0, 1, ''])
      expect(refused?.stderr).toMatch(/another import into .* is under way: wait for its end; this one did nothing/)
      expect(readTallies(done?.stdout ?? '')['activation']).toMatchObject({ imported: 3, leftOut: 1 })
      expect(readFileSync(list, 'utf8')).toMatch(
        /^\{"kind":"activation","id":"[0-9a-f-]{36}","reason":"its flags are not a list of names"\}\n$/,
      )
    })

    test.each(['--dry-run', '--live-only'])('also with %s; when the first has ended, it goes on', async (option) => {
      await on(target.databaseUrl, ({ db }) =>
        inTransaction(db, async (tx) => {
          expect(await lockImport(tx)).toBe(true)
          expect(await importIt(option)).toMatchObject({ code: 1, stderr: expect.stringMatching('is under way') as unknown })
        }),
      )
      expect(await importIt(option)).toMatchObject({ code: 0 })
      expect(await importIt(option)).toMatchObject({ code: 0 })
    })
  })

  describe('a database that fails', () => {
    test.each([
      ['loses its connection', 'perform pg_terminate_backend(pg_backend_pid())', 'terminat'],
      ['has no room', `raise exception using errcode = '53100', message = 'no space left'`, 'no space left'],
      ['takes no writes', `raise exception using errcode = '25006', message = 'read-only'`, 'read-only'],
    ])('pawl’s, which %s: named, with how far it came and what to do; then it goes on', async (_what, how, said) => {
      await beforeActivations(how)
      const { code, stdout, stderr } = await importIt()
      expect([code, stdout]).toEqual([3, ''])
      expect(stderr).toMatch(/^pawl's database \(.*\) failed: /m)
      expect(stderr).toMatch(said)
      expect(stderr).toContain(target.name)
      expect(stderr).toMatch(/^in pawl so far: applications 1 of 1; versions 1 of 1; activations 0 of 3$/m)
      expect(stderr).toMatch(/^what to do: .*run the same command again: what is in pawl is skipped$/m)
      await runAll(target.adminUrl, ['drop trigger meddle on activation'])
      const again = await importIt('--json')
      expect(again.code).toBe(0)
      expect(readTallies(again.stdout)).toMatchObject({
        application: { found: 1, alreadyThere: 1 },
        version: { found: 1, alreadyThere: 1 },
        activation: { found: 3, imported: 3 },
      })
    })

    test('the reference’s, which loses its connection halfway', async () => {
      await runAll(source.adminUrl, [
        'alter table pa_token rename to kept',
        'create view pa_token as select * from kept union all select k.* from kept k where pg_terminate_backend(pg_backend_pid())',
      ])
      await sql`insert into kept select 't', 'x', activation_id, 'POSSESSION', now() from pa_activation limit 1`.execute(
        origin.db,
      )
      const { code, stderr } = await importIt()
      expect(code).toBe(3)
      expect(stderr).toMatch(/^the reference's database \(.*\) failed: /m)
      expect(stderr).toContain(source.name)
      expect(stderr).toMatch(/^in pawl so far: applications 1 of 1; versions 1 of 1/m)
      expect(stderr).toMatch(/^what to do: /m)
    })

    test('the reference’s, which does not let the role read', async () => {
      const role = `pawl_test_reader_${randomBytes(6).toString('hex')}`
      const { rows } = await sql<{ schema: string }>`select quote_ident(current_schema()) as schema`.execute(origin.db)
      const schema = String(rows[0]?.schema)
      await runAll(source.adminUrl, [
        `create role ${role} login password 'x'`,
        `alter role ${role} set search_path = ${schema}`,
        `grant usage on schema ${schema} to ${role}`,
        `grant select on all tables in schema ${schema} to ${role}`,
        `revoke select on pa_token from ${role}`,
      ])
      const { code, stderr } = await importIt('--from', urlOf(source.databaseUrl, { role, password: 'x' }))
      expect(code).toBe(3)
      expect(stderr).toMatch(/^the reference's database \(.*\) failed: permission denied for table pa_token$/m)
      expect(stderr).toMatch(/^what to do: when that is mended \(--from, or POWERAUTH_DATABASE_URL/m)
      await runAll(source.adminUrl, [`drop owned by ${role}`, `drop role ${role}`])
    })

    test('pawl’s, which is not there', async () => {
      env['DATABASE_URL'] = urlOf(target.databaseUrl, { database: 'pawl_test_none' })
      const { code, stderr } = await importIt()
      expect(code).toBe(3)
      expect(stderr).toMatch(/^pawl's database \(.*\) failed: .*pawl_test_none/m)
      expect(stderr).toMatch(/^nothing was imported$/m)
      expect(stderr).toMatch(/DATABASE_URL: .* has no such database/)
      expect(stderr).toMatch(/^what to do: when that is mended, run the same command again/m)
    })

    test('the file of what is left out, which is full', async () => {
      await sql`update pa_activation set flags = 'x'`.execute(origin.db)
      const { code, stderr } = await importIt('--left-out-file', '/dev/full')
      expect(code).toBe(6)
      expect(stderr).toMatch(/--left-out-file: ENOSPC/)
    })
  })

  test('into an embedded database, and once more', async () => {
    delete env['DATABASE_URL']
    env['PAWL_DATA_DIR'] = join(HOME, 'data')
    const first = await importIt('--json')
    expect([first.code, readTallies(first.stdout)['activation']]).toEqual([
      0,
      { found: 3, imported: 3, alreadyThere: 0, leftOut: 0 },
    ])
    const again = await importIt('--json')
    expect(readTallies(again.stdout)['activation']).toEqual({ found: 3, imported: 0, alreadyThere: 3, leftOut: 0 })
  })

  test('what is left out and what was changed is listed for people, odd ids included', async () => {
    await reference.addPhone('3.3', { row: { activation_id: '' } })
    await reference.addPhone('3.3', { row: { activation_id: 'a\u001b[2Jb' } })
    await sql`update pa_application set roles = '{'`.execute(origin.db)
    const { code, stdout } = await importIt()
    expect(code).toBe(0)
    expect(stdout).toMatch(/^left out:\n {2}2 activations: its id is no UUID in lower case \(/m)
    expect(stdout).toContain('""')
    expect(stdout).toContain(String.raw`a\u{1b}[2Jb`)
    expect(stdout).toMatch(
      /^taken with a change:\n {2}1 application: taken without those of its roles that are no names \(bank-app\)$/m,
    )
  })
})
