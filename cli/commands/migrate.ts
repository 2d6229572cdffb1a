// pawl migrate: brings the schema up to date and ends.
import { command } from '../command.ts'

export const migrate = command({
  name: 'migrate',
  summary: 'Brings the schema of the configured database up to date and ends',
  more: 'For PAWL_MIGRATE=never, where no start of a server does it.',
  examples: ['migrate'],
  run: async ({ terminal }) => (await import('../local/migration.ts')).migrateLocal(terminal),
})
