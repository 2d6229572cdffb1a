// Starts a PostgreSQL once for a run, before the template database is made. Workers inherit its URL and its process id.
import { startPostgres } from '../../bench/http/postgres.ts'

let close: () => Promise<void> = async () => undefined

/** Starts it, and sets PAWL_TEST_DATABASE_URL and PAWL_TEST_DATABASE_PID. */
export async function setup(): Promise<void> {
  const postgres = await startPostgres()
  close = postgres.close
  process.env['PAWL_TEST_DATABASE_URL'] = postgres.createDatabase('faults')
  process.env['PAWL_TEST_DATABASE_PID'] = String(postgres.pid)
}

export const teardown = (): Promise<void> => close()
