// Once a run, before the template database is made: a PostgreSQL of its own. Workers inherit where it is and which process it is.
import { startPostgres } from '../../bench/http/postgres.ts'

let close: () => Promise<void> = async () => undefined

/** Sets PAWL_TEST_DATABASE_URL and PAWL_TEST_DATABASE_PID, whatever they were. */
export async function setup(): Promise<void> {
  const postgres = await startPostgres()
  close = postgres.close
  process.env['PAWL_TEST_DATABASE_URL'] = postgres.createDatabase('faults')
  process.env['PAWL_TEST_DATABASE_PID'] = String(postgres.pid)
}

export const teardown = (): Promise<void> => close()
