// Counts the statements of requests, by the texts that reach the database.
import { Kysely, PGliteDialect } from 'kysely'
import { createInMemory, type Embedded } from '../../src/storage/database/embedded.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { readTemplate, startTestServer, type TestServer, type TestServerOptions } from './app.ts'
import { lendInstance } from './lent-database.ts'

/** The statements of one request. */
export interface Statements {
  readonly reads: number
  readonly writes: number
  /** The number of transactions. Each also has a begin and a commit, which are not counted. */
  readonly transactions: number
  readonly texts: readonly string[]
}

export interface CountedServer {
  readonly server: TestServer
  /** Runs `work`, and returns the statements that reached the database meanwhile. */
  readonly count: <T>(work: () => Promise<T>) => Promise<{ readonly result: T; readonly statements: Statements }>
}

/** Starts a server on an embedded database whose statements are counted, without background work. */
export async function startCountedServer(options: TestServerOptions = {}): Promise<CountedServer> {
  let texts: string[] = []
  let transactions = 0
  const { pglite } = await createInMemory(lendInstance(readTemplate()))
  const db = new Kysely({ dialect: new PGliteDialect({ pglite: watch(pglite) }) }) as unknown as Pool
  const server = await startTestServer({
    ...options,
    worksInBackground: false,
    alterDatabase: (database) => ({
      ...database,
      db,
      close: async () => {
        await db.destroy()
        await database.close()
      },
    }),
  })
  return {
    server,
    count: async (work) => {
      texts = []
      transactions = 0
      const result = await work()
      const writes = texts.filter((text) => WRITE.test(text)).length
      return { result, statements: { reads: texts.length - writes, writes, transactions, texts } }
    },
  }

  function watch(instance: Embedded['pglite']): Embedded['pglite'] {
    const watched = <Q extends { query: Embedded['pglite']['query'] }>(inner: Q): Q['query'] =>
      ((text: string, parameters?: unknown[], queryOptions?: object) => {
        texts.push(text)
        return inner.query(text, parameters, queryOptions)
      }) as Q['query']
    return {
      get closed() {
        return instance.closed
      },
      get ready() {
        return instance.ready
      },
      get waitReady() {
        return instance.waitReady
      },
      close: () => instance.close(),
      query: watched(instance),
      transaction: (work) => {
        transactions += 1
        return instance.transaction((tx) => work({ ...tx, query: watched(tx) }))
      },
    }
  }
}

// It also matches a write within a `with`. pawl uses no functions that write.
const WRITE =
  /^\s*(insert|update|delete)\b|\b(insert into|update [a-z_]+ (?:as )?[a-z_]* ?set|delete from)\b|\bfor (no key )?update\b/i
