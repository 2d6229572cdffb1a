// npm run db:migrate: brings the schema up to date and ends.
import { migrateDatabase } from '../src/storage/migrate.ts'
import { runCommand } from './command-line.ts'
import { withDatabase } from './open-database.ts'

const usage = `Brings the schema of the configured database up to date and ends:
  npm run db:migrate`

await runCommand({ usage }, () =>
  withDatabase({ mustExist: false }, async (database) => {
    const names = await migrateDatabase(database)
    process.stdout.write(`${database.location}: ${names.length === 0 ? 'up to date' : `migrated, ${names.join(', ')}`}\n`)
  }),
)
