// Makes the pool of PostgreSQL connections. Every text with parameters becomes a prepared statement.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresPool } from 'kysely'
import pg from 'pg'
import { parseDatabaseUrl } from '../../lib/database-url.ts'
import { codeOf, NO_ROOM, READ_ONLY, type WatchedConnection, watchConnection } from './postgres-connection.ts'
import { createHosts, type Hosts } from './postgres-hosts.ts'
import { composeSet, parseBytea, parseTime, POOLED_SETTINGS, SESSION_SETTINGS } from './session-settings.ts'

/** Records that the disk of the database was full. */
export interface Room {
  /** True when a statement failed for lack of disk space since the last call of `found`. */
  readonly isMissing: () => boolean
  readonly found: () => void
}

/** Counts of a pool's connections, and of the callers that wait for one. */
export interface PoolUse {
  readonly open: number
  /** The most connections that the pool may open. */
  readonly max: number
  readonly idle: number
  readonly waiting: number
}

interface Connected {
  readonly pool: PostgresPool
  readonly location: string
  readonly room: Room
  readonly use: () => PoolUse
  /** Ends all connections, because their server takes no writes. A connection with a running statement ends after that statement. */
  readonly leaveServer: () => void
}

/** The kind of pooler between pawl and PostgreSQL: it gives a client a server connection for its session, or for each transaction. */
export type Pooler = 'none' | 'session' | 'transaction'

export interface PostgresOptions {
  readonly poolSize: number
  readonly pooler?: Pooler
  readonly onConnectionError?: (error: Error) => void
  /** Called when the server has no room for another connection. */
  readonly onNoRoom?: (error: unknown) => void
  /** Called when a caller found no idle connection, with the time that it waited, in milliseconds. */
  readonly onConnection?: (ms: number) => void
  /** Called when a statement has no answer in time: the database ended it, or the process stopped waiting. */
  readonly onTimeout?: (by: 'database' | 'process') => void
  /** True for migrations: building an index over a large table takes longer than any request may. */
  readonly isPatient?: boolean
}

/**
 * Makes a pool for `databaseUrl`; connections are made when first needed. `location` leaves out user and password.
 *
 * When one connection does not answer in time, all connections that have been silent since leave the pool with it. When one connection is lost,
 * others probably are as well, and each would cost a request the full time limit. When the URL names several hosts, a late statement makes the pool
 * look for another host that has become the primary.
 */
export function connectPostgres(databaseUrl: string, options: PostgresOptions): Connected {
  const { isPatient = false, pooler = 'none' } = options
  const address = parseDatabaseUrl(databaseUrl)
  if (address === undefined) throw new TypeError('not the URL of a database')
  const { urls, mustWrite, location } = address
  const hosts = createHosts({ urls, mustWrite, ...SETTINGS_OF[pooler]({ ...SESSION_SETTINGS, ...limitsOf(isPatient) }) })
  const pool = new pg.Pool({
    Client: hosts.Client,
    max: options.poolSize,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'pawl',
    types: ROW_TYPES,
  })
  const watched = new Map<pg.PoolClient, WatchedConnection>()
  const nameOf = pooler === 'transaction' ? () => undefined : createNames()
  let turn = 0
  let isRoomMissing = false
  const watchOptions = {
    answerMs: isPatient ? undefined : ANSWER_MS,
    nextTurn: () => ++turn,
    onSilence: (sentAt: number) => {
      options.onTimeout?.('process')
      for (const connection of watched.values()) connection.endIfSilentSince(sentAt)
    },
    onFailure: (error: unknown) => {
      const code = codeOf(error)
      if (code === DISK_FULL) isRoomMissing = true
      if (code === QUERY_CANCELED) options.onTimeout?.('database')
      // The other connections lead to the same server, or were made while it still took writes.
      if (code === READ_ONLY) leaveServer('the server takes no writes')
    },
    nameOf,
  }
  const leaveServer = (reason: string): void => {
    for (const connection of watched.values()) connection.retire(reason)
  }
  pool.on('error', (error) => options.onConnectionError?.(error))
  pool.on('connect', (client) => {
    watched.set(client, watchConnection(client, watchOptions))
    // The pool handles errors of idle connections only. An error of a connection in use fails its query, and would end the process without a
    // listener.
    client.on('error', () => undefined)
  })
  pool.on('remove', (client) => watched.delete(client))
  const connect = async () => {
    const askedAt = pool.idleCount > 0 ? undefined : performance.now()
    const client = await hosts.connect(() => connectWithin(pool, watched, options))
    if (askedAt !== undefined) options.onConnection?.(performance.now() - askedAt)
    return watched.get(client) ?? client
  }
  const stopLooking = urls.length > 1 && !isPatient ? lookForPrimary(hosts, watched) : () => undefined
  const end = () => {
    stopLooking()
    return pool.end()
  }
  return {
    pool: { connect, end, options: pool.options } as PostgresPool,
    use: () => ({ open: pool.totalCount, max: options.poolSize, idle: pool.idleCount, waiting: pool.waitingCount }),
    leaveServer: () => leaveServer('the server takes no writes'),
    location,
    room: {
      isMissing: () => isRoomMissing,
      found: () => {
        isRoomMissing = false
      },
    },
  }
}

/**
 * Gets a connection. When the server has no room for another one, the pool keeps to its present connections for a while: a caller waits until one
 * of them is idle. Without any connection the caller tries again until the server has room, or until CONNECT_MS have passed.
 */
async function connectWithin(
  pool: pg.Pool,
  living: ReadonlyMap<unknown, unknown>,
  { poolSize, onNoRoom }: PostgresOptions,
): Promise<pg.PoolClient> {
  const until = performance.now() + CONNECT_MS
  for (;;) {
    try {
      return await pool.connect()
    } catch (error) {
      if (codeOf(error) !== NO_ROOM || performance.now() > until) throw error
      onNoRoom?.(error)
      if (pool.options.max === poolSize) setTimeout(() => (pool.options.max = poolSize), NO_ROOM_MS).unref()
      pool.options.max = Math.max(1, living.size)
      if (living.size === 0) await sleep(NO_ROOM_STEP_MS)
    }
  }
}

/** The time limits of the database for a statement, and for an idle open transaction. */
const limitsOf = (isPatient: boolean): Settings => ({
  statement_timeout: isPatient ? '0' : `${STATEMENT_MS}ms`,
  // After this time the locks of a process that has disappeared are free again.
  idle_in_transaction_session_timeout: `${IDLE_IN_TRANSACTION_MS}ms`,
  // Requests about one phone wait for each other, and the pool has idle sessions. Limits of server, database or role would fail such requests.
  lock_timeout: '0',
  idle_session_timeout: '0',
})

/**
 * How a connection gets its settings. A pooler refuses most of them at the start of a connection. In transaction mode a later SET would reach
 * another client's session, so the role must have the remaining settings (requireDatabase checks this).
 */
const SETTINGS_OF: Readonly<Record<Pooler, (settings: Settings) => { startup?: Settings; prepare?: string }>> = {
  none: (settings) => ({ startup: settings }),
  session: (settings) => ({ prepare: composeSet(settings) }),
  transaction: () => ({ startup: POOLED_SETTINGS }),
}
type Settings = Readonly<Record<string, string>>

/**
 * Looks for another primary whenever a statement is late. When there is one, the connections to the earlier host are ended: a hung primary keeps
 * its connections open, and their statements would wait for the whole time limit. Returns a function that stops the looking.
 */
function lookForPrimary(hosts: Hosts, watched: ReadonlyMap<pg.PoolClient, WatchedConnection>): () => void {
  let isLooking = false
  const look = async (): Promise<void> => {
    const longest = Math.max(0, ...[...watched.values()].map((connection) => connection.waitedMs()))
    if (isLooking || longest < LATE_MS) return
    isLooking = true
    const isFound = await hosts.findOther()
    isLooking = false
    if (!isFound) return
    for (const [client, connection] of watched)
      if (!hosts.isCurrent(client)) connection.end('another host has become the primary')
  }
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return () => clearInterval(timer)
}

/**
 * Returns a name for every text with parameters, so that PostgreSQL parses and plans it once per connection. Texts without parameters (BEGIN,
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

/** The parsers of node-postgres, but for bytes, which get memory of their own, and times, which node-postgres may fail to read without an error. */
const ROW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && OWN_PARSERS.get(oid)) || (pg.types.getTypeParser(oid, format) as never),
}
const OWN_PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [pg.types.builtins.BYTEA, parseBytea],
  [pg.types.builtins.TIMESTAMPTZ, parseTime],
])

const CONNECT_MS = 5_000
// A refused connection costs the server a process, so not every request may try to connect.
const NO_ROOM_MS = 10_000
const NO_ROOM_STEP_MS = 100
const LOOK_MS = 250
// Few statements take this long, and a late one only causes a look at the other hosts.
const LATE_MS = 1_000
// With the time for a new connection and one second for late statements, all requests are served again within 15 s.
const STATEMENT_MS = 8_000
// The process has a limit of its own, because a network that drops packets would also drop the error from the database's limit.
const ANSWER_MS = 9_000
const IDLE_IN_TRANSACTION_MS = 10_000
const KEEP_ALIVE_MS = 10_000
// SQLSTATE query_canceled: statement_timeout ended a statement.
const QUERY_CANCELED = '57014'
// SQLSTATE disk_full.
const DISK_FULL = '53100'
