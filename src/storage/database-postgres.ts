// The pool of PostgreSQL connections, with prepared statements for every text that has parameters.
import { createHash } from 'node:crypto'
import pg from 'pg'

export interface PostgresOptions {
  readonly poolSize: number
  readonly onConnectionError?: (error: Error) => void
  /** True for migrations: building an index over a large table takes longer than any request may. */
  readonly isPatient?: boolean
}

/** A pool for `databaseUrl`; connections are made when first needed. `location` leaves out user and password. */
export function connectPostgres(databaseUrl: string, options: PostgresOptions): { pool: pg.Pool; location: string } {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: options.poolSize,
    connectionTimeoutMillis: 5_000,
    // For a network that swallows packets there is a limit of our own: that of the server is not heard then.
    ...(options.isPatient !== true && { statement_timeout: 10_000, query_timeout: 12_000 }),
    idle_in_transaction_session_timeout: 30_000,
    application_name: 'pawl',
    Client: PreparingClient,
  })
  pool.on('error', (error) => options.onConnectionError?.(error))
  // The pool listens to idle connections only; one that breaks in use fails its query, and without a listener the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const url = new URL(databaseUrl)
  return { pool, location: `${url.protocol}//${url.host}${url.pathname}` }
}

/**
 * Names every parametrised text, so that PostgreSQL parses and plans it once a connection. Texts without parameters (BEGIN,
 * COMMIT, migrations) stay unnamed. The number of texts is that of the queries in src/storage, so the map stays small.
 */
class PreparingClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: pg's overloads of query cannot be named
  override query(text: any, values?: any, callback?: any): any {
    if (typeof text === 'string' && Array.isArray(values) && values.length > 0) {
      return super.query({ name: nameOf(text), text, values }, callback)
    }
    return super.query(text, values, callback)
  }
}

const names = new Map<string, string>()

function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('hex').slice(0, 40)
    names.set(text, name)
  }
  return name
}
