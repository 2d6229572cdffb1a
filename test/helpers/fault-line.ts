// Loses a database at the n-th statement: on PostgreSQL it cuts the connection before the statement reaches the database, or before its answer
// reaches the server; the embedded database fails in the same two places. Also delays the answer to the n-th statement, so that
// something else can happen between two statements of a request.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { KyselyPlugin } from 'kysely'
import type { Pool } from '../../src/storage/database/database.ts'
import { createPostgresDatabase, serverUrl, startTestServer, type TestServer } from './app.ts'
import { readMessages } from './postgres-messages.ts'

/** Before the statement, or after it, so that its answer is lost. */
export type FaultPlace = 'before' | 'after'

export interface FaultLine {
  /** Loses the database at the `n`-th statement from now on; 1 is the next. */
  readonly arm: (n: number, place: FaultPlace) => void
  /** Ends that; false when there were fewer statements. */
  readonly disarm: () => boolean
}

/** Starts a server whose database can be lost, without background work. */
export async function startFaultyServer(): Promise<{ server: TestServer; faults: FaultLine; close: () => Promise<void> }> {
  const trap = createTrap()
  if (serverUrl() === undefined) {
    const plugin = failAt(trap)
    const server = await startTestServer({
      worksInBackground: false,
      alterDatabase: (database) => ({ ...database, db: database.db.withPlugin(plugin) as Pool }),
    })
    return { server, faults: trap, close: () => server.close() }
  }
  const { databaseUrl, drop } = await createPostgresDatabase()
  const proxy = await startProxy(databaseUrl, trap)
  const server = await startTestServer({ worksInBackground: false, databaseUrl: proxy.url })
  const close = async (): Promise<void> => {
    await server.close()
    await proxy.close()
    await drop()
  }
  return { server, faults: trap, close }
}

export interface HoldLine {
  /**
   * Sends a request, and delays the answer to its `n`-th statement (1 is the first) until `meanwhile` is over. The statement must be outside of
   * transactions, because the embedded database has one connection.
   */
  readonly meet: <T>(n: number, send: () => Promise<T>, meanwhile: () => Promise<unknown>) => Promise<Met<T>>
}

export interface Met<T> {
  readonly result: T
  /** False when the request had fewer statements: `meanwhile` did not happen. */
  readonly isMet: boolean
}

/** Starts a server whose requests can be held up between two statements, without background work. */
export async function startHeldServer(): Promise<{ server: TestServer; line: HoldLine }> {
  let left = 0
  let reach = (): void => undefined
  let released: Promise<void> = Promise.resolve()
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    // Statements are counted here, because constant texts skip transformQuery. The connection is free by now, and others may use it.
    transformResult: async ({ result }) => {
      left -= 1
      if (left === 0) {
        reach()
        await released
      }
      return result
    },
  }
  const server = await startTestServer({
    worksInBackground: false,
    alterDatabase: (database) => ({ ...database, db: database.db.withPlugin(plugin) as Pool }),
  })
  const meet: HoldLine['meet'] = async (n, send, meanwhile) => {
    const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    reach = reached.resolve
    released = release.promise
    left = n
    const sent = send()
    try {
      const isMet = await Promise.race([reached.promise.then(() => true), sent.then(() => false)])
      left = 0
      if (isMet) await meanwhile()
      release.resolve()
      return { result: await sent, isMet }
    } finally {
      release.resolve()
    }
  }
  return { server, line: { meet } }
}

interface Trap extends FaultLine {
  /** Counts a statement; returns where to lose it, if it is the chosen one. */
  readonly count: () => FaultPlace | undefined
}

function createTrap(): Trap {
  let left = 0
  let place: FaultPlace = 'before'
  return {
    arm: (n, where) => {
      left = n
      place = where
    },
    disarm: () => {
      const isSprung = left <= 0
      left = 0
      return isSprung
    },
    count: () => {
      left -= 1
      return left === 0 ? place : undefined
    },
  }
}

/** Makes the embedded database fail. Begin and commit are not counted: a transaction fails at each of its statements. */
function failAt(trap: Trap): KyselyPlugin {
  const counted = new WeakMap<object, FaultPlace | undefined>()
  const count = (queryId: object): FaultPlace | undefined => {
    if (!counted.has(queryId)) counted.set(queryId, trap.count())
    return counted.get(queryId)
  }
  return {
    transformQuery: ({ node, queryId }) => {
      if (count(queryId) === 'before') throw connectionLost()
      return node
    },
    // Constant texts come only here, so they are always lost after they ran.
    transformResult: async ({ result, queryId }) => {
      if (count(queryId) !== undefined) throw connectionLost()
      return result
    },
  }
}

const connectionLost = (): Error => Object.assign(new Error('the connection was cut'), { code: 'ECONNRESET' })

/** Starts a proxy between a server and PostgreSQL, which reads their messages to know where a statement ends. */
async function startProxy(databaseUrl: string, trap: Trap): Promise<{ url: string; close: () => Promise<void> }> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const listener = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => cut())
    }
    const cut = (): void => {
      for (const socket of [client, upstream]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    let isAnswerLost = false
    // The first message of a client has no type.
    const fromClient = readMessages(0)
    const fromServer = readMessages(1)
    client.on('data', (bytes: Buffer) => {
      for (const { type, message } of fromClient(bytes)) {
        // A statement is a Query, or the messages before a Sync, without which they have no effect.
        const place = type === 'Q' || type === 'S' ? trap.count() : undefined
        if (place === 'before') return cut()
        if (place === 'after') isAnswerLost = true
        upstream.write(message)
      }
    })
    upstream.on('data', (bytes: Buffer) => {
      for (const { type, message } of fromServer(bytes)) {
        if (isAnswerLost && type === 'Z') return cut()
        if (!isAnswerLost) client.write(message)
      }
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.toString(),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}
