// Pawl shares its database with other programs, and the letters of other languages are none of its own.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { migrations } from '../../migrations/index.ts'
import { newestBin } from '../../bench/http/postgres.ts'
import { type Database, type Db, openDatabase } from '../../src/storage/database/database.ts'
import { findPartitions } from '../../src/storage/audit/partitions.ts'
import { migrate, requireMigrated } from '../../src/storage/database/migrate.ts'
import { COUNT_WAITING, serverUrl } from '../helpers/app.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'
import { ANOTHER_PROGRAM, runAll, urlOf } from '../helpers/hostile.ts'

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  const server = serverUrl() ?? ''
  const id = randomUUID().replaceAll('-', '')
  const role = `pawl_test_sharing_${id}`
  const names: string[] = []
  const opened: Database[] = []
  beforeAll(() => runAll(server, [`create role ${role} login password 'p'`]))
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close()
    for (const name of names.splice(0)) await runAll(server, [`drop database ${name} with (force)`])
  })
  afterAll(() => runAll(server, [`drop role ${role}`]))

  /** An empty database of the role; returns the URLs of a superuser and of the role. */
  const make = async (how = ''): Promise<{ adminUrl: string; roleUrl: string; name: string }> => {
    const name = `pawl_test_${randomUUID().replaceAll('-', '')}`
    names.push(name)
    await runAll(server, [`create database ${name} owner ${role} ${how}`])
    const adminUrl = urlOf(server, { database: name })
    return { adminUrl, roleUrl: urlOf(adminUrl, { role, password: 'p' }), name }
  }
  const open = async (databaseUrl: string): Promise<Db> => {
    const database = await openDatabase({ databaseUrl, dataDir: '', poolSize: 2 })
    opened.push(database)
    return database.db
  }
  const all = Object.keys(migrations)

  describe('beside a program that keeps its migrations in the same way', () => {
    test.each(['pawl', 'pawl, public', '"Pawl & Co", public', '"$user"'])('with the search path %s', async (path) => {
      const { adminUrl, roleUrl, name } = await make()
      const schema = path.includes('$user') ? `"${role}"` : (path.split(',')[0] ?? '')
      await runAll(adminUrl, [
        ANOTHER_PROGRAM,
        `create schema ${schema} authorization ${role}`,
        `alter role ${role} in database ${name} set search_path = ${path}`,
      ])
      const db = await open(roleUrl)
      await expect(requireMigrated(db)).rejects.toThrow(`the database lacks ${all.length} migrations`)
      expect(await migrate(db)).toEqual(all)
      expect(await migrate(db)).toEqual([])
      await expect(requireMigrated(db)).resolves.toBeUndefined()
      const { rows } = await sql`select count(*)::int as rows from public.kysely_migration`.execute(await open(adminUrl))
      expect(rows).toEqual([{ rows: 2 }])
    })

    test('with a search path in the URL', async () => {
      const { adminUrl, roleUrl } = await make()
      await runAll(adminUrl, [ANOTHER_PROGRAM, `create schema bank authorization ${role}`])
      const url = new URL(roleUrl)
      url.searchParams.set('options', '-c search_path=bank')
      expect(await migrate(await open(url.toString()))).toEqual(all)
    })

    test('that lies in the way of none, pawl stays where it is', async () => {
      const { adminUrl, roleUrl } = await make()
      await runAll(adminUrl, ['create schema other', ANOTHER_PROGRAM.replaceAll('public.', 'other.')])
      expect(await migrate(await open(roleUrl))).toEqual(all)
    })
  })

  test('without a schema the start says so', async () => {
    const { roleUrl } = await make()
    const url = new URL(roleUrl)
    url.searchParams.set('options', '-c search_path=nowhere')
    await expect(migrate(await open(url.toString()))).rejects.toThrow('no schema of the search_path is there, or may be used')
  })

  test('new tables are not made apart from those that there are', async () => {
    const { adminUrl, roleUrl } = await make()
    const before = Object.fromEntries(Object.entries(migrations).slice(0, -1))
    await migrate(await open(roleUrl), { known: before })
    await runAll(adminUrl, [`create schema "${role}" authorization ${role}`])
    const db = await open(roleUrl)
    await expect(requireMigrated(db, before)).resolves.toBeUndefined()
    await expect(migrate(db)).rejects.toThrow(`the tables of pawl are in the schema public, and new ones would go to ${role}`)
  })

  test('a list of migrations that a process of version 0.2 makes meanwhile is no failure', async () => {
    const { adminUrl, roleUrl } = await make()
    const [db, other, admin] = [await open(roleUrl), await open(roleUrl), await open(adminUrl)]
    const migrated = await other.transaction().execute(async (tx) => {
      await sql`create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)`.execute(tx)
      const migrating = migrate(db).catch((error: unknown) => error)
      await vi.waitFor(async () => expect((await sql.raw(COUNT_WAITING).execute(admin)).rows).toEqual([{ waiting: 1 }]), {
        timeout: PATIENCE_MS,
        interval: 5,
      })
      return { migrating }
    })
    expect(await migrated.migrating).toEqual(all)
  })

  test('a partition of the audit log without an end is an error, and neither over nor endless', async () => {
    const { roleUrl } = await make()
    const db = await open(roleUrl)
    await migrate(db)
    await sql`create table rest partition of audit_log default`.execute(db)
    await expect(findPartitions(db)).rejects.toThrow('the partition rest of audit_log has no end that can be read; detach it')
  })

  test.each(['tr-TR', 'az', 'lt', 'und-u-ks-level2'])('names of events are the same in a database of %s', async (locale) => {
    const { roleUrl } = await make(`template template0 encoding 'UTF8' locale_provider icu icu_locale '${locale}' locale 'C'`)
    const db = await open(roleUrl)
    await migrate(db)
    await fill(db)
    for (const status of ['EXPIRED', 'REJECTED', 'FAILED']) await sql`update operation set status = ${status}`.execute(db)
    for (const state of ['PENDING_COMMIT', 'BLOCKED']) await sql`update activation set state = ${state}`.execute(db)
    const { rows } = await sql<{ event: string }>`
      select payload::json ->> 'event' as event from webhook_delivery order by sequence`.execute(db)
    expect(rows.map(({ event }) => event)).toEqual('created created expired rejected failed pending_commit blocked'.split(' '))
  })

  test.each(['public', 'bank', '"Bank & Co"'])('a dump of the data alone is put back into the schema %s', async (schema) => {
    const places = [await make(), await make()] as const
    for (const { adminUrl, name } of places)
      await runAll(adminUrl, [
        ...(schema === 'public' ? [] : [`create schema ${schema} authorization ${role}`]),
        `alter database ${name} set search_path = ${schema}`,
      ])
    const [from, to] = [await open(places[0].roleUrl), await open(places[1].roleUrl)]
    for (const db of [from, to]) await migrate(db)
    await fill(from)
    const run = (program: string, args: readonly string[], input = '') =>
      execFileSync(join(newestBin(), program), args, { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] })
    const dump = run('pg_dump', ['--data-only', '--table=*.activation', '--table=*.operation', places[0].adminUrl])
    expect(dump).toContain(`set_config('search_path', ''`)
    run('psql', ['--set=ON_ERROR_STOP=1', '--quiet', places[1].adminUrl], dump)
    const count = sql<{
      rows: number
    }>`select (select count(*) from activation)::int + (select count(*) from operation)::int as rows`
    expect((await count.execute(to)).rows).toEqual([{ rows: 2 }])
  })
})

/** A phone, an operation and a webhook for each, by the columns that must have a value. */
async function fill(db: Db): Promise<void> {
  await sql`insert into application (application_id, created_at) values ('app', now())`.execute(db)
  for (const kind of ['OPERATION', 'ACTIVATION'])
    await sql`insert into webhook (webhook_id, application_id, name, kind, url, attributes, secret, created_at)
      values (${kind}, 'app', ${kind}, ${kind}, 'https://bank.example', '', decode('00', 'hex'), now())`.execute(db)
  await fillTable(db, 'activation', { application_id: 'app', state: 'CREATED' })
  await fillTable(db, 'operation', { application_id: 'app', status: 'PENDING' })
}

/** One row, in whose other columns any value of their type will do. */
async function fillTable(db: Db, table: string, given: Readonly<Record<string, string>>): Promise<void> {
  const { rows: columns } = await sql<{ name: string; type: string }>`
    select column_name as name, data_type as type from information_schema.columns
    where table_schema = current_schema() and table_name = ${table} and is_nullable = 'NO' and column_default is null
      and is_generated = 'NEVER' and column_name <> all (${Object.keys(given)})`.execute(db)
  const valueOf = (type: string) => sql.raw(ANY_VALUE[type] ?? `'x'`)
  const values = [...Object.values(given).map((value) => sql`${value}`), ...columns.map(({ type }) => valueOf(type))]
  const names = [...Object.keys(given), ...columns.map(({ name }) => name)]
  await sql`insert into ${sql.table(table)} (${sql.join(names.map((name) => sql.ref(name)))}) values (${sql.join(values)})`.execute(
    db,
  )
}

const ANY_VALUE: Readonly<Record<string, string>> = {
  integer: '1',
  bigint: '1',
  smallint: '1',
  boolean: 'true',
  bytea: `decode('00', 'hex')`,
  'timestamp with time zone': 'now()',
}
