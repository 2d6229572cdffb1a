// The pool of PostgreSQL connections, with prepared statements for every text that has parameters.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresPool } from 'kysely'
import pg from 'pg'
import { parseDatabaseUrl } from '../../lib/database-url.ts'
import { codeOf, NO_ROOM, READ_ONLY, type WatchedConnection, watchConnection } from './postgres-connection.ts'
import { createHosts, type Hosts } from './postgres-hosts.ts'
import { composeSet, parseBytea, parseTime, POOLED_SETTINGS, SESSION_SETTINGS } from './session-settings.ts'

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

interface Connected {
  readonly pool: PostgresPool
  readonly location: string
  readonly room: Room
  readonly use: () => PoolUse
  /** Ends all connections, because the server behind them takes no writes; those that have a statement on its way end with it. */
  readonly leaveServer: () => void
}

/** What stands between pawl and PostgreSQL; a pooler gives a server to a client for its session, or for each transaction. */
export type Pooler = 'none' | 'session' | 'transaction'

export interface PostgresOptions {
  readonly poolSize: number
  readonly pooler?: Pooler
  readonly onConnectionError?: (error: Error) => void
  /** Told that the server has no room for another connection. */
  readonly onNoRoom?: (error: unknown) => void
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
 * has disappeared, others have as well, and each would cost a request the whole time. Where the URL names several hosts, a statement that
 * is late is reason enough to look whether another host has become the primary.
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
      // The others lead to the same server, or were made while it still took writes.
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
    // The pool listens to idle connections only; one that breaks in use fails its query, and without a listener the process.
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
 * Gets a connection. Where the server has no room for another one, those that there are have to do for a while, and somebody who finds none idle
 * waits for the next that is; without any, for the room.
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

/** How long the database lets a statement, and an open transaction without one, last. */
const limitsOf = (isPatient: boolean): Settings => ({
  statement_timeout: isPatient ? '0' : `${STATEMENT_MS}ms`,
  // Locks of a process that has disappeared without a word are free again then.
  idle_in_transaction_session_timeout: `${IDLE_IN_TRANSACTION_MS}ms`,
})

/**
 * How a connection gets its settings. A pooler refuses most of them at the start of a connection; what is set later would be somebody else's in
 * its transaction mode, so there the role has to have the others (requireSettings).
 */
const SETTINGS_OF: Readonly<Record<Pooler, (settings: Settings) => { startup?: Settings; prepare?: string }>> = {
  none: (settings) => ({ startup: settings }),
  session: (settings) => ({ prepare: composeSet(settings) }),
  transaction: () => ({ startup: POOLED_SETTINGS }),
}
type Settings = Readonly<Record<string, string>>

/**
 * Looks for another primary whenever a statement is late, and ends the connections to the host before when there is one: a primary that
 * stands still keeps its connections open, and what waits for its answer would wait to the end. Returns what ends it.
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

/** As node-postgres has them, but for bytes, which may be remembered, and times, which are none where it cannot read them. */
const ROW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && OWN_PARSERS.get(oid)) || (pg.types.getTypeParser(oid, format) as never),
}
const OWN_PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [pg.types.builtins.BYTEA, parseBytea],
  [pg.types.builtins.TIMESTAMPTZ, parseTime],
])

const CONNECT_MS = 5_000
// A connection that is refused costs the server a process, so that is not tried for every request.
const NO_ROOM_MS = 10_000
const NO_ROOM_STEP_MS = 100
const LOOK_MS = 250
// Few statements take so long, and then nothing but a look at the other hosts follows.
const LATE_MS = 1_000
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
