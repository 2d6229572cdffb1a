// One embedded database that several servers share, each over connections of its own. A statement does not run when it is sent: it waits
// until the schedule lets it run, loses it on its way there or back, or lets it arrive after its sender gave up. PostgreSQL would let
// transactions run side by side; here one that has begun keeps the others waiting, which its locks would do where they meet.
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
 * What becomes of a statement. before: it is lost on its way, and the connection with it. after: it is done, and the answer is lost with
 * the connection. late: its sender is told of a lost connection at once, and it is done later.
 */
export type StatementFault = 'none' | 'before' | 'after' | 'late'

/** One that was sent and waits. */
export interface Statement {
  readonly server: string
  readonly text: string
  readonly perform: (fault: StatementFault) => Promise<void>
}

export interface SharedDatabase {
  /** Connections of a server; they end with `cut`. */
  readonly connect: (server: string) => Database
  /** A server is killed: what it has sent is lost or, where `isDone` says so, done, and it sends nothing more. */
  readonly cut: (server: string, isDone: (statement: Statement) => boolean) => Promise<void>
  /** What may run now, in the order it was sent. */
  readonly ready: () => readonly Statement[]
  /** Counts what happens, so that a schedule sees when nothing does. */
  readonly activity: () => number
  /** Ends a transaction that others wait for and in which nobody sends anything, as PostgreSQL does in time; false when there is none. */
  readonly endIdleTransaction: () => Promise<boolean>
  /** How many statements came after their sender had given up. */
  readonly lateStatements: () => number
  /** The database itself, past all faults. */
  readonly direct: Db
}

type Physical = Embedded['pglite']

/** From the start of a server to its kill. */
interface Life {
  isOver: boolean
}

interface Connection extends DatabaseConnection {
  readonly server: string
  isDead: boolean
  /** Of a wrong server: a statement was lost, and the transaction is still open. */
  isLeftOpen: boolean
}

/** `breakage` spoils the statements or the connections as a wrong server would have them. */
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
    // Wherever it is done: by the schedule, or as its server is killed.
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
    // A wrong server keeps the connection, and with it the transaction.
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
    // What belongs to a transaction does not outlive its connection.
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
            // A process that was killed sends nothing, though what it would have done next still runs here.
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
  /** Its sender has given up. */
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
