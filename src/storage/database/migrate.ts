// Brings the schema up to date. One process migrates at a time, also when several start at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { migrations } from '../../../migrations/index.ts'
import { StartError } from '../../lib/errors.ts'
import { adviceOf } from './failure.ts'
import { type Database, type Db, isLockTimeout, isUniqueViolation } from './database.ts'
import { codeOf } from './postgres-connection.ts'

export interface MigrateOptions {
  /** For tests: the migrations of this version; default: all of them. */
  readonly known?: Readonly<Record<string, Migration>>
  /** The number of attempts to lock a table that others use, one second apart. */
  readonly attemptsMax?: number
  /** Called when the migration has to wait or takes long: at once, and again each minute while it lasts. */
  readonly onDelay?: (delay: MigrationDelay) => void
  /** Ends the wait for another process, and rolls back the running migration. */
  readonly signal?: AbortSignal | undefined
}

export type MigrationDelay =
  /** `holder` describes the session that migrates, for people, as far as the database shows it. */
  | { readonly kind: 'others'; readonly holder: string }
  | { readonly kind: 'table'; readonly migration: string }
  | { readonly kind: 'running'; readonly migration: string }

/** The text of a delay for log lines and for answers to probes. */
export const DELAYS: Readonly<Record<MigrationDelay['kind'], string>> = {
  others: 'the start waits for the migrations of another process',
  table: 'the start waits for a table that others use, to migrate it',
  running: 'the start waits for a migration that runs',
}

/**
 * Runs the missing migrations and returns the names of those that ran. Each runs in a transaction of its own, but for an empty database. A database
 * that is one migration ahead is left as it is: migrations only add, so that the previous version can serve while the next one starts. While
 * another process migrates, the call waits. Throws StartError on failure and on a schema that is further ahead. Throws the reason of `signal` when
 * that aborts.
 */
export async function migrate(db: Db, options: MigrateOptions = {}): Promise<string[]> {
  const { known = migrations, attemptsMax = ATTEMPTS_MAX, onDelay = () => undefined, signal } = options
  const names: string[] = []
  const tell = tellSeldom(onDelay)
  for (let attempt = 1; ; ) {
    signal?.throwIfAborted()
    const schema = await findSchema(db)
    const [next] = await findPending(db, known, schema)
    if (next === undefined) return names
    requireTarget(schema)
    const running = setInterval(() => tell({ kind: 'running', migration: next }), LONG_MS)
    try {
      const outcome = await runStep(db, known, signal).finally(() => clearInterval(running))
      if ('ran' in outcome) {
        names.push(...outcome.ran)
        attempt = 1
      } else {
        tell({ kind: 'others', holder: outcome.holder })
        await wait(OTHERS_MS, signal)
      }
    } catch (error) {
      signal?.throwIfAborted()
      const isTableHeld = error instanceof StartError && (isLockTimeout(error.cause) || isListMade(error.cause))
      if (!isTableHeld || attempt >= attemptsMax) throw error
      tell({ kind: 'table', migration: next })
      attempt += 1
      await wait(RETRY_MS, signal)
    }
  }
}

/**
 * Runs the next migration, or all of them, in one transaction that takes the lock with its first statement. Returns the names of those that ran, or
 * a description of the session that holds the lock when another process has it.
 */
async function runStep(
  db: Db,
  known: Readonly<Record<string, Migration>>,
  signal: AbortSignal | undefined,
): Promise<{ readonly ran: readonly string[] } | { readonly holder: string }> {
  return db.transaction().execute(async (tx) => {
    const { isMine, holder, session } = await takeLock(tx)
    if (!isMine) return { holder }
    const stop = (): void => void end(db, session)
    signal?.addEventListener('abort', stop)
    try {
      const schema = await findSchema(tx)
      requireTarget(schema)
      const pending = await findPending(tx, known, schema)
      // Nobody uses the tables of an empty database, and one transaction for all migrations is faster.
      const ran = pending.length === Object.keys(known).length ? pending : pending.slice(0, 1)
      await limitWaits(tx)
      if (!schema.hasList) await makeList(tx, schema.name)
      for (const name of ran) {
        await known[name]?.up(tx)
        await noteDone(tx, schema.name, name)
      }
      return { ran }
    } catch (error) {
      throw error instanceof StartError ? error : explain(error)
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  })
}

/** Makes the tables that Kysely's migrator makes, because version 0.2 uses it. */
async function makeList(tx: Db, schema: string): Promise<void> {
  const columns = sql`id varchar(255) primary key, is_locked integer not null default 0`
  await sql`create table if not exists ${listOf(schema)} (name varchar(255) primary key, timestamp varchar(255) not null)`.execute(
    tx,
  )
  await sql`create table if not exists ${sql.id(schema, 'kysely_migration_lock')} (${columns})`.execute(tx)
}

/** Adds a migration to the list, with its time in the form that Kysely's migrator writes. */
async function noteDone(tx: Db, schema: string, name: string): Promise<void> {
  await sql`
    insert into ${listOf(schema)} (name, timestamp)
    values (${name}, to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`.execute(tx)
}

/** True when a process of version 0.2 made the list at the same moment: it does so before it takes the lock. */
const isListMade = (error: unknown): boolean => isUniqueViolation(error, 'pg_type_typname_nsp_index')

const listOf = (schema: string) => sql.id(schema, 'kysely_migration')

/**
 * Tries to take the lock for the transaction. Kysely's migrator locks for the session; a pooler in transaction mode may send the unlocking statement
 * to another session, and every later process would wait for ever. The number is Kysely's, so that processes of older versions are kept out. The
 * statement does not wait for the lock: a wait would keep a server connection of the pooler, and outlive the process.
 */
async function takeLock(tx: Db): Promise<{ readonly isMine: boolean; readonly holder: string; readonly session: number }> {
  const { rows } = await sql<{ isMine: boolean; session: number }>`
    select pg_try_advisory_xact_lock(${sql.lit(LOCK)}) as "isMine", pg_backend_pid() as session`.execute(tx)
  const { isMine = false, session = 0 } = rows[0] ?? {}
  return { isMine, session, holder: isMine ? '' : await describeHolder(tx) }
}

/**
 * Describes the session that holds the lock. In pg_locks the number is split into two halves. The database may hide the sessions of other roles.
 */
async function describeHolder(tx: Db): Promise<string> {
  const { rows } = await sql<{ pid: number; host: string | null; role: string | null; seconds: number | null }>`
    select l.pid, host(a.client_addr) as host, a.usename as role, extract(epoch from now() - a.xact_start)::int as seconds
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and (l.classid::bigint << 32) + l.objid::bigint = ${sql.lit(LOCK)} limit 1`.execute(tx)
  const [holder] = rows
  if (holder === undefined) return 'a session that has just ended'
  const { pid, host, role, seconds } = holder
  return [
    `session ${pid}`,
    ...(role === null ? [] : [`of ${role}`]),
    ...(host === null ? [] : [`from ${host}`]),
    ...(seconds === null ? [] : [`for ${seconds} s`]),
  ].join(' ')
}

/** Ends a session of PostgreSQL. Its statement would otherwise run to its end, and keep its locks, after the process is gone. */
const end = async (db: Db, session: number): Promise<void> =>
  void (await sql`select pg_terminate_backend(${session})`.execute(db).catch(() => undefined))

/** Passes a new delay on at once, and the same delay again each minute. */
function tellSeldom(onDelay: (delay: MigrationDelay) => void): (delay: MigrationDelay) => void {
  let last: { readonly what: string; readonly at: number } | undefined
  return (delay) => {
    const what = `${delay.kind} ${delay.kind === 'others' ? '' : delay.migration}`
    if (last?.what === what && performance.now() - last.at < REMINDER_MS) return
    last = { what, at: performance.now() }
    onDelay(delay)
  }
}

const wait = async (ms: number, signal: AbortSignal | undefined): Promise<void> => {
  await sleep(ms, undefined, { ...(signal && { signal }) }).catch(() => undefined)
  signal?.throwIfAborted()
}

/** Migrates an open database. Where the statements of requests have a time limit, it uses connections without one. */
export async function migrateDatabase({ db, openPatient }: Database, options?: MigrateOptions): Promise<string[]> {
  if (openPatient === undefined) return migrate(db, options)
  const patient = openPatient()
  try {
    return await migrate(patient.db, options)
  } finally {
    await patient.close()
  }
}

/** Checks the schema for a start that does not migrate. Throws StartError when a migration is missing, and when the schema is too far ahead. */
export async function requireMigrated(db: Db, known: Readonly<Record<string, Migration>> = migrations): Promise<void> {
  const pending = await findPending(db, known, await findSchema(db))
  if (pending.length > 0)
    throw new StartError(`the database lacks ${countOf(pending)}; run pawl migrate, or start with PAWL_MIGRATE=start`)
}

/** Returns the migrations that are to run, in order; none when the database is one ahead. Throws StartError when it is further ahead. */
async function findPending(db: Db, known: Readonly<Record<string, Migration>>, schema: FoundSchema): Promise<string[]> {
  const names = Object.keys(known).toSorted()
  const done = await readDone(db, schema)
  const unknown = done.filter((name) => !(name in known))
  if (unknown.length === 0) {
    const pending = names.slice(done.length)
    if (pending.some((name) => done.includes(name)))
      throw new StartError('the list of migrations in the database has a gap; put back a backup')
    return pending
  }
  const isOneAhead = unknown.length === 1 && names.every((name) => done.includes(name) && name < String(unknown[0]))
  if (isOneAhead) return []
  throw new StartError(
    `the database has ${countOf(unknown)} that this version of pawl does not know; start the version that made it, or one that is one migration older at most`,
  )
}

interface FoundSchema {
  /** The schema of pawl's tables. The search path may lead to other schemas with a list of migrations of their own. */
  readonly name: string
  /** The schema in which PostgreSQL would create a new table. */
  readonly target: string
  readonly hasList: boolean
}

/** Finds the first schema of the search path that has pawl's tables and a list of migrations, else the schema for new tables. */
async function findSchema(db: Db): Promise<FoundSchema> {
  const has = (table: string) => sql`exists (select from pg_tables where schemaname = s.name and tablename = ${table})`
  const { rows } = await sql<FoundSchema>`
    select s.name, current_schema()::text as target, ${has('kysely_migration')} as "hasList"
    from unnest(current_schemas(false)) with ordinality as s (name, place)
    where s.place = 1 or ${has('kysely_migration')} and ${has('activation_history')}
    order by ${has('activation_history')} desc, s.place limit 1`.execute(db)
  const [schema] = rows
  if (schema === undefined)
    throw new StartError('no schema of the search_path is there, or may be used; create one for the role of pawl')
  return schema
}

/** Throws StartError when new tables would be created in another schema than the existing ones. */
function requireTarget({ name, target }: FoundSchema): void {
  if (name !== target)
    throw new StartError(
      `the tables of pawl are in the schema ${name}, and new ones would go to ${target}; alter role ... set search_path = ${name}`,
    )
}

/** Reads the names of the migrations that have run, in order. An empty database has no list. */
async function readDone(db: Db, { name, hasList }: FoundSchema): Promise<string[]> {
  if (!hasList) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${listOf(name)} order by name collate "C"`.execute(db)
  return rows.map((row) => row.name)
}

const countOf = (names: readonly string[]): string =>
  names.length === 1 ? `migration ${names.join()}` : `${names.length} migrations (${names.join(', ')})`

/**
 * Limits the wait of a migration for a lock on a table, because it holds up all later statements on the table; migrate tries again a second later.
 * The wait for the migrations of another process has no limit. Limits of server, database or role for statements and transactions are those for
 * requests, and do not hold. PostgreSQL before 17 has none for transactions.
 */
async function limitWaits(tx: Db): Promise<void> {
  await sql.raw(`set local lock_timeout = '${LOCK_WAIT_MS}ms'`).execute(tx)
  await sql`
    select set_config(name, '0', true) from unnest('{statement_timeout,transaction_timeout}'::text[]) as given (name)
    where current_setting(name, true) is not null`.execute(tx)
}

function explain(error: unknown): StartError {
  const reason = error instanceof Error ? error.message.replace(/\s*\n\s*/g, ' ') : String(error)
  const code = codeOf(error)
  const advice = isLockTimeout(error)
    ? 'something holds a table for long, end it and start again'
    : (adviceOf(error) ?? 'nothing of it was done, and the next start tries it again')
  const says = typeof code === 'string' ? `${code}: ${reason}` : reason
  return new StartError(`the database could not be migrated (${says}): ${advice}`, { cause: error })
}

/** The number of Kysely's migration lock. */
const LOCK = 3_853_314_791_062_309_107n
const LOCK_WAIT_MS = 300
const OTHERS_MS = 250
const LONG_MS = 2_000
const REMINDER_MS = 60_000
const RETRY_MS = 1_000
const ATTEMPTS_MAX = 120
