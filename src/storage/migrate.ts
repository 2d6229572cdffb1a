// Brings the schema up to date; safe when several processes start at once (Kysely's advisory lock on PostgreSQL).
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { migrations } from '../../migrations/index.ts'
import { StartError } from '../lib/errors.ts'
import { type Database, type Db, isLockTimeout, isUndefinedName } from './database.ts'

export interface MigrateOptions {
  /** For tests: the migrations that this version knows; all of them without it. */
  readonly known?: Readonly<Record<string, Migration>>
  /** How often a table that others use is asked for, a second apart, or looked at while they change it. */
  readonly attemptsMax?: number
}

/**
 * Runs what is missing, each migration in a transaction of its own where there is data, and returns the names of those that ran. A
 * database that is one migration ahead is left as it is: migrations only add, so that the version before serves on while the next one
 * starts. Throws StartError on failure and on a schema that is further ahead.
 */
export async function migrate(
  db: Db,
  { known = migrations, attemptsMax = ATTEMPTS_MAX }: MigrateOptions = {},
): Promise<string[]> {
  const names: string[] = []
  const schema = await findSchema(db)
  const pending = await findPending(db, known, schema)
  if (pending.length === 0) return names
  requireTarget(schema)
  const isEmpty = pending.length === Object.keys(known).length
  const impatient = Object.fromEntries(Object.entries(known).map(([name, migration]) => [name, limitWaits(migration)]))
  // Without its name, Kysely takes the list of another schema for its own.
  const migrationTableSchema = schema.name
  const migrator = new Migrator({ db, provider: { getMigrations: async () => impatient }, migrationTableSchema })
  for (let attempt = 1; ; ) {
    // Nobody uses the tables of an empty database; there it is quicker all at once.
    const { error, results } = await (isEmpty ? migrator.migrateToLatest() : migrator.migrateUp())
    if (error === undefined) {
      if (!results?.length) return names
      names.push(...results.map(({ migrationName }) => migrationName))
      attempt = 1
      continue
    }
    // Kysely looks at the columns of all tables before it takes its lock, and another process' migration may take one away meanwhile. An
    // error of a migration comes with results.
    const isOvertaken = results === undefined && isUndefinedName(error)
    if (!(isOvertaken || isLockTimeout(error)) || attempt >= attemptsMax) throw explain(error)
    attempt += 1
    await sleep(isOvertaken ? OVERTAKEN_MS : RETRY_MS)
  }
}

/** The same for an open database: on a connection of its own where the statements of requests are limited in time. */
export async function migrateDatabase({ db, openPatient }: Database, options?: MigrateOptions): Promise<string[]> {
  if (openPatient === undefined) return migrate(db, options)
  const patient = openPatient()
  try {
    return await migrate(patient.db, options)
  } finally {
    await patient.close()
  }
}

/** For a start that does not migrate. Throws StartError when a migration is missing, and when the schema is too far ahead. */
export async function requireMigrated(db: Db, known: Readonly<Record<string, Migration>> = migrations): Promise<void> {
  const pending = await findPending(db, known, await findSchema(db))
  if (pending.length > 0)
    throw new StartError(`the database lacks ${countOf(pending)}; run pawl migrate, or start with PAWL_MIGRATE=start`)
}

/** The migrations that are to run; none when the database is one ahead. Throws StartError when it is further ahead. */
async function findPending(db: Db, known: Readonly<Record<string, Migration>>, schema: FoundSchema): Promise<string[]> {
  const names = Object.keys(known).toSorted()
  const done = await readDone(db, schema)
  const unknown = done.filter((name) => !(name in known))
  if (unknown.length === 0) return names.filter((name) => !done.includes(name))
  const isOneAhead = unknown.length === 1 && names.every((name) => done.includes(name) && name < String(unknown[0]))
  if (isOneAhead) return []
  throw new StartError(
    `the database has ${countOf(unknown)} that this version of pawl does not know; start the version that made it, or one that is one migration older at most`,
  )
}

interface FoundSchema {
  /** Where the tables of pawl are, or are to be: the search path may lead to others with a list of their own. */
  readonly name: string
  /** Where a new table goes. */
  readonly target: string
  readonly hasList: boolean
}

/** The first schema of the search path that has tables of pawl and a list of migrations; where none has, the one for new tables. */
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

/** Throws StartError where new tables would lie apart from those that there are. */
function requireTarget({ name, target }: FoundSchema): void {
  if (name !== target)
    throw new StartError(
      `the tables of pawl are in the schema ${name}, and new ones would go to ${target}; alter role ... set search_path = ${name}`,
    )
}

/** What has run here, in its order; an empty database has no list. */
async function readDone(db: Db, { name, hasList }: FoundSchema): Promise<string[]> {
  if (!hasList) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.id(name, 'kysely_migration')} order by name collate "C"`.execute(db)
  return rows.map((row) => row.name)
}

const countOf = (names: readonly string[]): string =>
  names.length === 1 ? `migration ${names.join()}` : `${names.length} migrations (${names.join(', ')})`

/**
 * A migration that waits for a table holds up all statements behind it, so it gives up soon and tries again a second later. Another
 * process' migrations are waited for.
 */
const limitWaits = (migration: Migration): Migration => ({
  up: async (db) => {
    await sql.raw(`set local lock_timeout = '${LOCK_WAIT_MS}ms'`).execute(db)
    // The limit of the role, behind a pooler, is that of requests.
    await sql.raw('set local statement_timeout = 0').execute(db)
    await migration.up(db)
  },
})

function explain(error: unknown): StartError {
  const reason = error instanceof Error ? error.message : String(error)
  const advice = isLockTimeout(error) ? '; something holds a table for long, end it and start again' : ''
  return new StartError(`the database could not be migrated: ${reason}${advice}`, { cause: error })
}

const LOCK_WAIT_MS = 300
const RETRY_MS = 1_000
const OVERTAKEN_MS = 100
const ATTEMPTS_MAX = 120
