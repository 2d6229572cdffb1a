// Chooses among several PostgreSQL hosts, one of which takes writes at a time. node-postgres supports one host. When a connection cannot be made,
// or its server takes no writes, the next host is tried.
import { callbackify } from 'node:util'
import pg from 'pg'
import { codeOf, NO_ROOM, NOT_SENT } from './postgres-connection.ts'

interface HostsOptions {
  /** One URL for each host, in the order in which they are tried. */
  readonly urls: readonly string[]
  /** True: a server that takes no writes is refused. */
  readonly mustWrite: boolean
  /** Settings that each connection asks for at its start. */
  readonly startup?: Readonly<Record<string, string>>
  /** Statements that run on each new connection before its first use, to set its session. */
  readonly prepare?: string
}

export interface Hosts {
  /** The client class for the pool: connects to the host that was last known to take writes, and only when the server is fit for use. */
  readonly Client: new () => pg.Client
  /** Gets a connection by `connect`, to the host that takes writes. Rejects after two attempts for each host, or after 5 s. */
  readonly connect: <T>(connect: () => Promise<T>) => Promise<T>
  /** Looks for another host that takes writes, and makes it the current one. False when there is none. */
  readonly findOther: () => Promise<boolean>
  /** True when the connection leads to the current host. */
  readonly isCurrent: (client: pg.ClientBase) => boolean
}

export function createHosts({ urls, mustWrite, startup, prepare }: HostsOptions): Hosts {
  const hasSeveral = urls.length > 1
  const hostOf = new WeakMap<pg.ClientBase, number>()
  let current = 0

  /** Passes the options of the pool on to node-postgres. */
  class HostClient extends pg.Client {
    constructor(...[options]: readonly pg.ClientConfig[]) {
      const own = { ...options, ...(hasSeveral && { connectionTimeoutMillis: HOST_MS }) }
      let unread: unknown
      try {
        super({ ...own, connectionString: urls[current] })
      } catch (error) {
        // A file that the URL names cannot be read. The pool does not catch what the constructor throws, so `connect` reports the error.
        unread = error
        super(own)
      }
      const host = current
      hostOf.set(this, host)
      // Until the pool has the connection, an error event without this listener would end the process.
      this.on('error', () => undefined)
      const connect = this.connect.bind(this) as () => Promise<unknown>
      const connectFit = async (): Promise<void> => {
        try {
          if (unread !== undefined) throw unread
          await connect()
          await makeFit(this)
        } catch (error) {
          // The next host becomes the current one, unless another connection has already moved on, or this host is only full.
          if (current === host && codeOf(error) !== NO_ROOM) current = (host + 1) % urls.length
          throw error
        }
      }
      // The pool connects with a callback.
      this.connect = callbackify(connectFit) as typeof this.connect
    }

    /**
     * Adds settings to those that node-postgres sends at the start of a connection. Its types lack this method, and it supports few settings
     * itself.
     */
    getStartupConf(): object {
      return { ...startupOf.call(this), ...startup }
    }
  }

  const makeFit = async (client: pg.Client): Promise<void> => {
    if (!mustWrite && prepare === undefined) return
    const { stream } = (client as pg.Client & pg.PoolClient).connection
    // A hung server accepts connections and does not answer.
    const timer = setTimeout(() => stream.destroy(new Error('the server did not answer')), HOST_MS)
    try {
      if (mustWrite && !(await takesWrites(client))) throw new Error('the server takes no writes')
      if (prepare !== undefined) await client.query(prepare)
    } catch (error) {
      stream.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  const connect = async <T>(connectOnce: () => Promise<T>): Promise<T> => {
    const until = performance.now() + CONNECT_MS
    for (let left = mustWrite ? 2 * urls.length : 1; ; left -= 1) {
      try {
        return await connectOnce()
      } catch (error) {
        if (left <= 1 || performance.now() > until || isPoolFull(error)) throw explain(error, mustWrite)
      }
    }
  }

  const findOther = async (): Promise<boolean> => {
    const left = current
    const found = await Promise.all(urls.map(async (url, host) => host !== left && (await isWriter(url))))
    const other = found.indexOf(true)
    if (other === -1 || current !== left) return false
    current = other
    return true
  }

  return { Client: HostClient, connect, findOther, isCurrent: (client) => hostOf.get(client) === current }
}

const { getStartupConf: startupOf } = pg.Client.prototype as pg.Client & { getStartupConf: (this: pg.Client) => object }

async function isWriter(url: string): Promise<boolean> {
  let client: pg.Client | undefined
  try {
    client = new pg.Client({ connectionString: url, connectionTimeoutMillis: HOST_MS, query_timeout: HOST_MS })
    client.on('error', () => undefined)
    await client.connect()
    return await takesWrites(client)
  } catch {
    return false
  } finally {
    void client?.end().catch(() => undefined)
  }
}

async function takesWrites(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ does: boolean }>(
    `select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as does`,
  )
  return rows[0]?.does === true
}

/** True when all connections of the pool are in use, so that no host is to blame. */
const isPoolFull = (error: unknown): boolean =>
  error instanceof Error && error.message === 'timeout exceeded when trying to connect'

function explain(error: unknown, mustWrite: boolean): unknown {
  if (!(error instanceof Error) || isPoolFull(error)) return error
  if (error.message.startsWith('unsupported startup parameter'))
    return Object.assign(new Error(`${error.message}; behind a pooler, PAWL_DATABASE_POOLER says its mode`), { code: NOT_SENT })
  const message = error.message || String(codeOf(error))
  return Object.assign(new Error(mustWrite ? `no host takes writes: ${message}` : message, { cause: error }), { code: NOT_SENT })
}

// A host that stops without closing its connections delays a request by this time, once; then the next host is tried.
const HOST_MS = 1_500
const CONNECT_MS = 5_000
