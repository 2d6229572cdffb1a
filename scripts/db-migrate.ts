// npm run db:migrate: brings the schema up to date and ends.
import { migrateDatabase } from '../src/storage/migrate.ts'
import { withDatabase } from './open-database.ts'

await withDatabase({ mustExist: false }, async (database) => {
  const names = await migrateDatabase(database)
  process.stdout.write(`${database.location}: ${names.length === 0 ? 'up to date' : `migrated, ${names.join(', ')}`}\n`)
})
