// pawl migrate: brings the schema of the configured database up to date.
import { DELAYS, migrateDatabase, type MigrationDelay } from '../../src/storage/database/migrate.ts'
import type { Answer, Terminal } from '../command.ts'
import { explainFault, Fault } from '../fault.ts'
import { withDatabase } from './database.ts'

/** Creates a missing embedded database. A signal also ends the statement in PostgreSQL, which would go on without this process. */
export const migrateLocal = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: false }, async (database) => {
    const signal = terminal.interruption()
    const onDelay = ({ kind, ...of }: MigrationDelay): void =>
      terminal.note(`${DELAYS[kind]}: ${'holder' in of ? of.holder : of.migration}`)
    const migrations = await migrateDatabase(database, { onDelay, signal }).catch((error: unknown) => {
      if (error !== signal.reason) throw error
      throw new Fault('refused', `${explainFault(error)}: migrations that were done stay, and pawl migrate runs the others`)
    })
    const done = migrations.length === 0 ? 'up to date' : `migrated, ${migrations.join(', ')}`
    return { json: { database: database.location, migrations }, text: `${database.location}: ${done}\n` }
  })
