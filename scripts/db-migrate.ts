// npm run db:migrate: brings the schema up to date and ends.
import { migrate } from '../src/storage/migrate.ts'
import { withDatabase } from './open-database.ts'

await withDatabase({ mustExist: false }, async ({ db, location }) => {
  const names = await migrate(db)
  process.stdout.write(`${location}: ${names.length === 0 ? 'up to date' : `migrated, ${names.join(', ')}`}\n`)
})
