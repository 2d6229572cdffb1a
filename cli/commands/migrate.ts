// pawl migrate: brings the schema up to date and ends.
import { command } from '../command.ts'

export const migrate = command({
  name: 'migrate',
  summary: 'Brings the schema of the configured database up to date and ends',
  more: 'Use it with PAWL_MIGRATE=never, when no start of a server migrates the schema.',
  examples: ['migrate'],
  run: async ({ terminal }) => (await import('../local/migration.ts')).migrateLocal(terminal),
})
