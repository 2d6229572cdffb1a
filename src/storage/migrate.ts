// Brings the schema up to date; safe when several processes start at once (Kysely's advisory lock on PostgreSQL).
import { Migrator } from 'kysely/migration'
import { migrations } from '../../migrations/index.ts'
import { StartError } from '../lib/errors.ts'
import type { Db } from './database.ts'

/** Runs what is missing and returns the names of the migrations that ran. Throws StartError on failure or an unknown newer schema. */
export async function migrate(db: Db): Promise<string[]> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error, results = [] } = await migrator.migrateToLatest()
  if (error !== undefined) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`the database could not be migrated: ${reason}`, { cause: error })
  }
  return results.map((result) => result.migrationName)
}
