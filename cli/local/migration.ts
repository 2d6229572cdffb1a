// The schema of the configured database, brought up to date.
import { migrateDatabase } from '../../src/storage/migrate.ts'
import type { Answer, Terminal } from '../command.ts'
import { withDatabase } from './database.ts'

/** An embedded database that is not there is created. */
export const migrateLocal = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: false }, async (database) => {
    const migrations = await migrateDatabase(database)
    const done = migrations.length === 0 ? 'up to date' : `migrated, ${migrations.join(', ')}`
    return { json: { database: database.location, migrations }, text: `${database.location}: ${done}\n` }
  })
