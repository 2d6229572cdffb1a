// Shares one embedded database between several servers, each with connections of its own. A sent statement waits until the schedule runs it,
// loses it on its way there or back, or runs it after its sender gave up. PostgreSQL would run transactions side by side. Here an open
// transaction keeps the others waiting, as its locks would do when they need the same rows.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import type { Database, Db, Pool } from '../../src/storage/database/database.ts'
import type { Embedded } from '../../src/storage/database/embedded.ts'
import type { Schema } from '../../src/storage/database/schema.ts'
import type { Breakage } from './breakage.ts'

/**
 * The fate of a statement. before: statement and connection are lost on the way. after: the statement runs, and its answer is lost with
 * the connection. late: the sender gets the error of a lost connection at once, and the statement runs later.
 */
export type StatementFault = 'none' | 'before' | 'after' | 'late'

/** A statement that was sent and waits. */
export interface Statement {
  readonly server: string
  readonly text: string
  readonly perform: (fault: StatementFault) => Promise<void>
}

export interface SharedDatabase {
  /** Opens the database for a server; its connections end with `cut`. */
  readonly connect: (server: string) => Database
  /** Kills a server: its sent statements run if `isDone` says so, and are lost otherwise. It sends nothing more. */
  readonly cut: (server: string, isDone: (statement: Statement) => boolean) => Promise<void>
  /** The statements that may run now, in the order in which they were sent. */
  readonly ready: () => readonly Statement[]
  /** A count that grows with every event, so that the schedule sees when nothing happens. */
  readonly activity: () => number
  /** Ends an idle transaction for which others wait, as PostgreSQL does after a time limit; false when there is none. */
  readonly endIdleTransaction: () => Promise<boolean>
  /** The number of statements that ran after their sender had given up. */
  readonly lateStatements: () => number
  /** The database itself, without faults. */
  readonly direct: Db
}

type Physical = Embedded['pglite']

/** One run of a server, from its start to its kill. */
interface Life {
  isOver: boolean
}

interface Connection extends DatabaseConnection {
  readonly server: string
  isDead: boolean
  /** True on a wrong server after a statement was lost, while the transaction is still open. */
  isLeftOpen: boolean
}

/** Shares `pglite`. `breakage` changes statements or connections into those of a wrong server. */
export function shareDatabase(pglite: Physical, breakage: Breakage): SharedDatabase {
  let waiting: Waiting[] = []
  let owner: Connection | undefined
  let activity = 0
  let late = 0
  const lives = new Map<string, Life>()

  const execute = async (text: string, parameters: readonly unknown[]): Promise<QueryResult<never>> => {
    const { rows, affectedRows } = await pglite.query<never>(text, [...parameters])
    return { rows, ...(affectedRows !== undefined && { numAffectedRows: BigInt(affectedRows) }) }
  }
  const run = async (connection: Connection, { text, parameters, isLate }: Waiting): Promise<QueryResult<never>> => {
    // Counted here, because the schedule or the kill of its server may run it.
    if (isLate) late += 1
    if (text === 'begin') owner = connection
    try {
      return await execute(breakage.patch(text), parameters)
    } finally {
      if (text === 'commit' || text === 'rollback') owner = undefined
    }
  }
  const rollBack = async (): Promise<void> => {
    owner = undefined
    await execute('rollback', [])
  }
  const lose = async (connection: Connection): Promise<void> => {
    // A wrong server keeps the connection with its open transaction.
    if (breakage.keepsBrokenConnections && owner === connection) {
      connection.isLeftOpen = true
      return
    }
    connection.isDead = true
    if (owner === connection) await rollBack()
  }

  const perform = async (one: Waiting, fault: StatementFault): Promise<void> => {
    activity += 1
    const { connection } = one
    // A statement of a transaction cannot run after the end of its connection.
    const isLate = fault === 'late' && owner !== connection && one.text !== 'begin'
    waiting = waiting.filter((other) => other !== one)
    if (isLate) {
      connection.isDead = true
      const ignore = (): void => undefined
      waiting.push({ ...one, isLate, connection: { ...connection, isDead: false }, resolve: ignore, reject: ignore })
      one.reject(connectionLost())
    } else if (fault === 'none') {
      const result = await run(connection, one).catch((error: unknown) => error as Error)
      if (result instanceof Error) one.reject(result)
      else one.resolve(result)
    } else {
      if (fault === 'after') await run(connection, one).catch(() => undefined)
      await lose(connection)
      one.reject(connectionLost())
    }
    activity += 1
  }
  const toStatement = (one: Waiting): Statement => ({
    server: one.connection.server,
    text: one.text,
    perform: (fault) => perform(one, fault),
  })

  const connect = (server: string): Database => {
    const idle: Connection[] = []
    const life: Life = { isOver: false }
    lives.set(server, life)
    const open = (): Connection => {
      const connection: Connection = {
        server,
        isDead: false,
        isLeftOpen: false,
        executeQuery: <R>({ sql: text, parameters }: CompiledQuery) =>
          new Promise<QueryResult<R>>((resolve, reject) => {
            activity += 1
            // A killed process sends nothing, though its code still runs in this process.
            if (life.isOver) return
            if (connection.isDead) reject(connectionLost())
            else waiting.push({ connection, text, parameters, isLate: false, resolve: resolve as Waiting['resolve'], reject })
          }),
        streamQuery: () => {
          throw new Error('nothing is streamed')
        },
      }
      return connection
    }
    const send = async (connection: DatabaseConnection, text: string): Promise<void> => {
      await connection.executeQuery({ sql: text, parameters: [] } as unknown as CompiledQuery)
    }
    const driver: Driver = {
      init: async () => undefined,
      acquireConnection: async () => {
        let connection = idle.pop()
        while (connection?.isDead) connection = idle.pop()
        return connection ?? open()
      },
      beginTransaction: (connection) => send(connection, 'begin'),
      commitTransaction: (connection) => send(connection, 'commit'),
      rollbackTransaction: async (given) => {
        const connection = given as Connection
        if (connection.isLeftOpen) connection.isLeftOpen = false
        else await send(connection, 'rollback')
      },
      releaseConnection: async (connection) => {
        const one = connection as Connection
        if (!one.isDead) idle.push(one)
      },
      destroy: async () => undefined,
    }
    const db = new Kysely<Schema>({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => driver,
        createIntrospector: (one) => new PostgresIntrospector(one),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    }) as Pool
    return { db, kind: 'postgresql', location: 'simulated', close: async () => undefined }
  }

  return {
    connect,
    cut: async (server, isDone) => {
      const life = lives.get(server)
      if (life) life.isOver = true
      const sent = waiting.filter(({ connection }) => connection.server === server)
      for (const one of sent) {
        const isFree = owner === undefined || owner === one.connection
        if (isFree && isDone(toStatement(one))) await run(one.connection, one).catch(() => undefined)
        one.connection.isDead = true
      }
      waiting = waiting.filter(({ connection }) => connection.server !== server)
      if (owner?.server === server) await rollBack()
      activity += 1
    },
    ready: () => waiting.filter(({ connection }) => owner === undefined || owner === connection).map(toStatement),
    activity: () => activity,
    lateStatements: () => late,
    endIdleTransaction: async () => {
      if (owner === undefined || waiting.length === 0) return false
      owner.isDead = true
      await rollBack()
      return true
    },
    direct: new Kysely<Schema>({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => directDriver(execute),
        createIntrospector: (one) => new PostgresIntrospector(one),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    }),
  }
}

interface Waiting {
  readonly connection: Connection
  readonly text: string
  readonly parameters: readonly unknown[]
  /** Whether its sender has given up. */
  readonly isLate: boolean
  readonly resolve: (result: QueryResult<never>) => void
  readonly reject: (error: Error) => void
}

type Execute = (text: string, parameters: readonly unknown[]) => Promise<QueryResult<never>>

function directDriver(execute: Execute): Driver {
  const refuse = async (): Promise<never> => {
    throw new Error('looks at the database open no transactions')
  }
  const connection = {
    executeQuery: ({ sql, parameters }: CompiledQuery) => execute(sql, parameters),
    streamQuery: () => {
      throw new Error('nothing is streamed')
    },
  } as unknown as DatabaseConnection
  return {
    init: async () => undefined,
    acquireConnection: async () => connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    releaseConnection: async () => undefined,
    destroy: async () => undefined,
  }
}

const connectionLost = (): Error => Object.assign(new Error('the connection was cut'), { code: 'ECONNRESET' })
