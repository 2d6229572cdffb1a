// The pool of PostgreSQL connections, with prepared statements for every text that has parameters.
import { createHash } from 'node:crypto'
import type { PostgresPool } from 'kysely'
import pg from 'pg'
import { codeOf, type WatchedConnection, watchConnection } from './postgres-connection.ts'

/** Room on the disk of the database. */
export interface Room {
  /** Whether a statement found none since the last call of `found`. */
  readonly isMissing: () => boolean
  readonly found: () => void
}

/** Connections of a pool, and who waits for one. */
export interface PoolUse {
  readonly open: number
  /** As many as it may open. */
  readonly max: number
  readonly idle: number
  readonly waiting: number
}

export interface Connected {
  readonly pool: PostgresPool
  readonly location: string
  readonly room: Room
  readonly use: () => PoolUse
}

export interface PostgresOptions {
  readonly poolSize: number
  readonly onConnectionError?: (error: Error) => void
  /** Told how long somebody waited who found no idle connection, in milliseconds. */
  readonly onConnection?: (ms: number) => void
  /** Told of a statement without an answer in time: the database has ended it, or the process does not wait any longer. */
  readonly onTimeout?: (by: 'database' | 'process') => void
  /** True for migrations: building an index over a large table takes longer than any request may. */
  readonly isPatient?: boolean
}

/**
 * A pool for `databaseUrl`; connections are made when first needed. `location` leaves out user and password.
 *
 * When one connection does not answer in time, all that have been silent since leave the pool with it: where one end of a connection
 * has disappeared, others have as well, and each would cost a request the whole time.
 */
export function connectPostgres(databaseUrl: string, options: PostgresOptions): Connected {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: options.poolSize,
    connectionTimeoutMillis: 5_000,
    ...(options.isPatient !== true && { statement_timeout: STATEMENT_MS }),
    // Locks of a process that has disappeared without a word are free again then.
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'pawl',
  })
  const watched = new Map<pg.PoolClient, WatchedConnection>()
  const nameOf = createNames()
  let turn = 0
  let isRoomMissing = false
  const watchOptions = {
    answerMs: options.isPatient === true ? undefined : ANSWER_MS,
    nextTurn: () => ++turn,
    onSilence: (sentAt: number) => {
      options.onTimeout?.('process')
      for (const connection of watched.values()) connection.endIfSilentSince(sentAt)
    },
    onFailure: (error: unknown) => {
      const code = codeOf(error)
      if (code === DISK_FULL) isRoomMissing = true
      if (code === QUERY_CANCELED) options.onTimeout?.('database')
    },
    nameOf,
  }
  pool.on('error', (error) => options.onConnectionError?.(error))
  pool.on('connect', (client) => {
    watched.set(client, watchConnection(client, watchOptions))
    // The pool listens to idle connections only; one that breaks in use fails its query, and without a listener the process.
    client.on('error', () => undefined)
  })
  pool.on('remove', (client) => watched.delete(client))
  const connect = async () => {
    const askedAt = pool.idleCount > 0 ? undefined : performance.now()
    const client = await pool.connect()
    if (askedAt !== undefined) options.onConnection?.(performance.now() - askedAt)
    return watched.get(client) ?? client
  }
  const url = new URL(databaseUrl)
  return {
    pool: { connect, end: () => pool.end(), options: pool.options } as PostgresPool,
    use: () => ({ open: pool.totalCount, max: options.poolSize, idle: pool.idleCount, waiting: pool.waitingCount }),
    location: `${url.protocol}//${url.host}${url.pathname}`,
    room: {
      isMissing: () => isRoomMissing,
      found: () => {
        isRoomMissing = false
      },
    },
  }
}

/**
 * A name for every parametrised text, so that PostgreSQL parses and plans it once a connection. Texts without parameters (BEGIN,
 * COMMIT, migrations) stay unnamed. The number of texts is that of the queries in src/storage, so the map stays small.
 */
function createNames(): (text: string) => string {
  const names = new Map<string, string>()
  return (text) => {
    let name = names.get(text)
    if (name === undefined) {
      name = createHash('sha256').update(text).digest('hex').slice(0, 40)
      names.set(text, name)
    }
    return name
  }
}

// Together with a new connection and a second for those who were late: under 15 s until all is served again.
const STATEMENT_MS = 8_000
// For a network that swallows packets there is a limit of our own, because the answer of the database's limit would not arrive.
const ANSWER_MS = 9_000
const IDLE_IN_TRANSACTION_MS = 10_000
const KEEP_ALIVE_MS = 10_000
// SQLSTATE query_canceled: what statement_timeout ends.
const QUERY_CANCELED = '57014'
// SQLSTATE disk_full.
const DISK_FULL = '53100'
