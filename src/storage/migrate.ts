// Brings the schema up to date; safe when several processes start at once (Kysely's advisory lock on PostgreSQL).
import { sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { migrations } from '../../migrations/index.ts'
import { StartError } from '../lib/errors.ts'
import type { Database, Db } from './database.ts'

/** Runs what is missing and returns the names of the migrations that ran. Throws StartError on failure or an unknown newer schema. */
export async function migrate(db: Db): Promise<string[]> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => impatient } })
  const { error, results = [] } = await migrator.migrateToLatest()
  if (error !== undefined) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`the database could not be migrated: ${reason}`, { cause: error })
  }
  return results.map((result) => result.migrationName)
}

/** The same for an open database: on a connection of its own where the statements of requests are limited in time. */
export async function migrateDatabase({ db, openPatient }: Database): Promise<string[]> {
  if (openPatient === undefined) return migrate(db)
  const patient = openPatient()
  try {
    return await migrate(patient.db)
  } finally {
    await patient.close()
  }
}

/** Whoever waits for a table holds up all that come behind: rather give up and start again. Another process' migrations are waited for. */
const limitWaits = (migration: Migration): Migration => ({
  up: async (db) => {
    await sql`set local lock_timeout = '10s'`.execute(db)
    await migration.up(db)
  },
})

const impatient = Object.fromEntries(Object.entries(migrations).map(([name, migration]) => [name, limitWaits(migration)]))
