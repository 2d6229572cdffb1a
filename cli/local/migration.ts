// pawl migrate: brings the schema of the configured database up to date.
import { DELAYS, migrateDatabase, type MigrateOptions } from '../../src/storage/database/migrate.ts'
import type { Answer, Terminal } from '../command.ts'
import { explainFault, Fault } from '../fault.ts'
import { withDatabase } from './database.ts'

/** Prints a line when a migration has to wait. */
const tellDelays = ({ note }: Pick<Terminal, 'note'>): MigrateOptions => ({
  onDelay: ({ kind, ...of }) => note(`${DELAYS[kind]}: ${'holder' in of ? of.holder : of.migration}`),
})

/** Creates a missing embedded database. A signal also ends the statement in PostgreSQL, which would go on without this process. */
export const migrateLocal = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: false }, async (database) => {
    const signal = terminal.interruption()
    const migrations = await migrateDatabase(database, { ...tellDelays(terminal), signal }).catch((error: unknown) => {
      if (error !== signal.reason) throw error
      throw new Fault('refused', `${explainFault(error)}: migrations that were done stay, and pawl migrate runs the others`)
    })
    const done = migrations.length === 0 ? 'up to date' : `migrated, ${migrations.join(', ')}`
    return { json: { database: database.location, migrations }, text: `${database.location}: ${done}\n` }
  })
