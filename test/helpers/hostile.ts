// Makes PostgreSQL databases whose settings differ as much from the defaults as a bank's may, so that all tests show false assumptions of pawl.
// PAWL_TEST_DATABASE_HOSTILE=1 switches it on.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { openDatabase } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'

/** Settings of the roles, for every session that does not set others. */
export const HOSTILE_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'German, DMY',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu',
  standard_conforming_strings: 'off',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  array_nulls: 'off',
  transform_null_equals: 'on',
  default_transaction_isolation: 'serializable',
}

/** A locale that lower-cases I as Turkish does, and sorts otherwise than by bytes. */
export const TURKISH = `template template0 encoding 'UTF8' locale_provider icu icu_locale 'tr-TR' locale 'C.UTF-8'`

/** Tables of another program in the same database, which keeps its migrations as pawl does. */
export const ANOTHER_PROGRAM = `
  create table public.kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null);
  create table public.kysely_migration_lock (id varchar(255) primary key, is_locked integer not null default 0);
  insert into public.kysely_migration values ('0001_initial', '2026-01-01T00:00:00.000Z'), ('0002_users', '2026-01-01T00:00:00.000Z');
  insert into public.kysely_migration_lock values ('migration_lock', 0)`

export interface HostileServer {
  /** Databases to copy: one that no server has started on, and one with the newest schema. */
  readonly empty: string
  readonly migrated: string
  /** The URL of the role that serves, which is not the role that has migrated. */
  readonly roleUrl: string
  readonly drop: () => Promise<void>
}

/** Makes roles and databases to copy. `server`: the URL of a superuser. */
export async function makeHostileServer(server: string): Promise<HostileServer> {
  const id = randomBytes(6).toString('hex')
  const [owner, serving, empty, migrated] = ['owner', 'serving', 'empty', 'migrated'].map((name) => `pawl_test_${name}_${id}`)
  if (owner === undefined || serving === undefined || empty === undefined || migrated === undefined)
    throw new TypeError('no names')
  const password = randomBytes(12).toString('hex')
  await runAll(server, [
    ...[owner, serving].flatMap((role) => [
      `create role ${role} login password '${password}'`,
      ...Object.entries({ ...HOSTILE_SETTINGS, search_path: SCHEMA }).map(
        ([name, value]) => `alter role ${role} set ${name} = '${value}'`,
      ),
    ]),
    `grant ${owner} to ${serving}`,
    `create database ${empty} ${TURKISH}`,
  ])
  await runAll(urlOf(server, { database: empty }), [`create schema "${SCHEMA}" authorization ${owner}`, ANOTHER_PROGRAM])
  await runAll(server, [`create database ${migrated} template ${empty}`])
  const { db, close } = await openDatabase({
    databaseUrl: urlOf(server, { database: migrated, role: owner, password }),
    dataDir: '',
    poolSize: 1,
  })
  await migrate(db)
  await close()
  return {
    empty,
    migrated,
    roleUrl: urlOf(server, { role: serving, password }),
    drop: () =>
      runAll(server, [
        ...[empty, migrated].map((database) => `drop database ${database} with (force)`),
        ...[serving, owner].map((role) => `drop role ${role}`),
      ]),
  }
}

/** The schema of pawl's tables. Its name has to be quoted. */
export const SCHEMA = 'Bank ğ'

interface Place {
  readonly database?: string
  readonly role?: string
  readonly password?: string
}

/** The URL of the same server with another database or role. */
export function urlOf(server: string, { database, role, password }: Place): string {
  const url = new URL(server)
  if (database !== undefined) url.pathname = `/${database}`
  if (role !== undefined) url.username = role
  if (password !== undefined) url.password = password
  return url.toString()
}

/** Runs statements one after the other on a new connection. */
export async function runAll(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}
