// Opens the database, PostgreSQL behind a pool or PGlite in the data directory. Both run the same SQL.
//
// Locks are taken in the order application, activation, operation. Inside inTransaction only the given Tx may be used: the embedded database has
// one connection, and a query beside the transaction would wait for the transaction to end, which waits for the query.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Kysely,
  type KyselyConfig,
  type LogEvent,
  PGliteDialect,
  PostgresDialect,
  type RawBuilder,
  sql,
  type Transaction,
} from 'kysely'
import { failureOf, startSpan } from '../../lib/trace.ts'
import { connectPostgres, type Pooler, type PoolUse, type PostgresOptions, type Room } from './postgres.ts'
import type { Embedded, OpenInstance } from './embedded.ts'
import { codeOf } from './postgres-connection.ts'
import type { Schema } from './schema.ts'

declare const kind: unique symbol

/** Anything a query may run on: the database or a transaction. */
export type Db = Kysely<Schema>
/**
 * The database itself, on which every statement is a transaction of its own. A function takes this type when it opens a transaction, or when it
 * goes on after a failed statement: within a transaction a failed statement ends the transaction.
 */
export type Pool = Kysely<Schema> & { readonly [kind]: 'database' }
/** A transaction; functions that need one take this type. */
export type Tx = Transaction<Schema> & { readonly [kind]: 'transaction' }

interface DatabaseOptions extends Omit<PostgresOptions, 'isPatient'> {
  /** PostgreSQL connection URL; without it the embedded database in `dataDir` is opened. */
  readonly databaseUrl?: string | undefined
  readonly dataDir: string
  /** True when requests are traced: each statement is added to the trace of its request. */
  readonly isTraced?: boolean
}

export interface Database {
  readonly db: Pool
  readonly kind: 'embedded' | 'postgresql'
  /** The place of the data without credentials, for people to read. */
  readonly location: string
  /** PostgreSQL only: reads the time of the server, in milliseconds since 1970. The embedded database uses the clock of the process. */
  readonly readTime?: (() => Promise<number>) | undefined
  /** PostgreSQL only. */
  readonly room?: Room
  /** The embedded database only. */
  readonly writableBytes?: Embedded['writableBytes']
  /** PostgreSQL only. */
  readonly poolUse?: () => PoolUse
  /** PostgreSQL only: ends all connections to a server that takes no writes. */
  readonly leaveServer?: () => void
  /** Opens connections without a limit of time for a statement. Absent when no connection has that limit. */
  readonly openPatient?: () => Pick<Database, 'db' | 'close'>
  readonly close: () => Promise<void>
}

/** Opens the database without migrating it. Throws StartError when another process uses the directory. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { databaseUrl, isTraced = false } = options
  const log = isTraced ? { log: traceStatement } : {}
  if (databaseUrl !== undefined) {
    const { pool, location, room, use, leaveServer } = connectPostgres(databaseUrl, options)
    const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }), ...log }) as Pool
    const openPatient = () => openPatientPostgres(databaseUrl, options.pooler)
    const close = () => db.destroy()
    return { db, kind: 'postgresql', location, readTime: () => readTime(db), room, poolUse: use, leaveServer, openPatient, close }
  }
  const { openEmbedded } = await loadEmbedded()
  return fromEmbedded(await openEmbedded(options.dataDir), options.dataDir, log)
}

function openPatientPostgres(databaseUrl: string, pooler: Pooler = 'none'): Pick<Database, 'db' | 'close'> {
  const { pool } = connectPostgres(databaseUrl, { poolSize: 2, pooler, isPatient: true })
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }) as Pool
  return { db, close: () => db.destroy() }
}

/** Opens an embedded database in memory, which is lost when it is closed. `open` gives the instance, which is otherwise new and empty. */
export async function openInMemory(open?: OpenInstance): Promise<Database> {
  const { createInMemory } = await loadEmbedded()
  return fromEmbedded(await createInMemory(open), 'memory')
}

/** PGlite is half a megabyte of code that a server on PostgreSQL never runs. */
const loadEmbedded = () => import('./embedded.ts')

function fromEmbedded(
  { pglite, writableBytes, release }: Embedded,
  location: string,
  log: Pick<KyselyConfig, 'log'> = {},
): Database {
  const db = new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }), ...log }) as Pool
  const close = async () => {
    // Kysely closes an instance only when a query has run on it.
    await db.destroy()
    if (!pglite.closed) await pglite.close()
    await release()
  }
  return { db, kind: 'embedded', location, writableBytes, close }
}

/** Reads the time of the database, in milliseconds since 1970, independent of the session's time zone and DateStyle. */
export async function readTime(db: Db): Promise<number> {
  const { rows } = await sql<{ time: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as time`.execute(db)
  return onlyRow(rows).time
}

/** Returns the row of a statement that always has one. */
export function onlyRow<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new TypeError('a statement without a row')
  return row
}

/** Runs a statement, and returns how many rows it inserted, updated or deleted. */
export const countWritten = async (db: Db, statement: RawBuilder<unknown>): Promise<number> =>
  Number((await statement.execute(db)).numAffectedRows ?? 0)

/** Runs a statement. True when it inserted, updated or deleted a row. */
export const writesRow = async (db: Db, statement: RawBuilder<unknown>): Promise<boolean> =>
  (await countWritten(db, statement)) > 0

/** Runs `work` in one transaction, which is rolled back when `work` throws. */
export const inTransaction = <T>(db: Pool, work: (tx: Tx) => Promise<T>): Promise<T> =>
  db.transaction().execute((tx) => work(tx as Tx))

/**
 * Runs one statement so that a failure undoes that statement only, and the caller can try again. On a Tx the statement runs in a savepoint, because
 * a failure would otherwise end the transaction.
 */
export const asOneStep = <T>(db: Pool | Tx, statement: (db: Db) => Promise<T>): Promise<T> =>
  isTx(db) ? inSavepoint(db, statement) : statement(db)

const isTx = (db: Db): db is Tx => db.isTransaction

/** True when each statement on `db` is a transaction of its own. */
export const isPool = (db: Db): db is Pool => !isTx(db)

async function inSavepoint<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> {
  await sql`savepoint step`.execute(tx)
  try {
    const result = await work(tx)
    await sql`release savepoint step`.execute(tx)
    return result
  } catch (error) {
    await sql`rollback to savepoint step`.execute(tx)
    throw error
  }
}

/** True for a violation of a unique index or primary key, of `constraint` if given (SQLSTATE 23505). */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (codeOf(error) !== '23505') return false
  return constraint === undefined || (error as { readonly constraint?: unknown }).constraint === constraint
}

/** True when a statement referred to a row that is not there (SQLSTATE 23503). */
export const isMissingReference = (error: unknown): boolean => codeOf(error) === '23503'

/** True when a lock was not given in time (SQLSTATE 55P03). */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === '55P03'

/** True when PostgreSQL ended this transaction to resolve a deadlock (SQLSTATE 40P01). */
export const isDeadlock = (error: unknown): boolean => codeOf(error) === '40P01'

/**
 * True when the database answered with an error, so that the statement was rolled back. After a lost connection the outcome is unknown, and the
 * statement must not run again: an accepted code would then be counted as a wrong one.
 */
export const isRolledBack = (error: unknown): boolean => {
  const code = codeOf(error)
  return typeof code === 'string' && ROLLED_BACK.test(code)
}

/**
 * True when the database refused a statement, or ended it because it took too long (SQLSTATE 57014). The database is up, and may answer the next
 * one.
 */
export const isAnswered = (error: unknown): boolean => isRolledBack(error) || codeOf(error) === '57014'

/**
 * Resolves when the database answers and takes writes. Throws for a standby, a read-only server, a full disk, and a primary that waits for an
 * absent synchronous standby. The check writes a message that nobody reads to PostgreSQL's write-ahead log. After a statement has failed for lack of
 * disk space, the check also writes 100 KiB. When the server takes no writes, all its connections are ended, so that new ones find the primary. Of
 * the embedded database it reads, and looks whether the disk has room and can be written.
 */
export async function pingDatabase(
  database: Pick<Database, 'db' | 'kind' | 'room' | 'writableBytes' | 'leaveServer'>,
): Promise<void> {
  const late = sleep(PING_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the database took no write within ${PING_MS} ms`)
  })
  await Promise.race([database.kind === 'embedded' ? readEmbedded(database) : write(database), late])
}

async function readEmbedded({ db, writableBytes }: Pick<Database, 'db' | 'writableBytes'>): Promise<void> {
  await sql`select 1`.execute(db)
  const left = await writableBytes?.()
  if (left !== undefined && left < ROOM_MIN) throw new Error('the disk of the embedded database is full')
}

async function write({ db, room, leaveServer }: Pick<Database, 'db' | 'room' | 'leaveServer'>): Promise<void> {
  const { rows } = await sql<{ isReadOnly: boolean }>`
    select current_setting('transaction_read_only') = 'on' as "isReadOnly",
      case when current_setting('transaction_read_only') = 'off' then pg_logical_emit_message(true, 'pawl', 'ready') end`.execute(
    db,
  )
  if (rows[0]?.isReadOnly !== false) {
    leaveServer?.()
    throw new Error('the database takes no writes')
  }
  if (room?.isMissing() !== true) return
  await takeRoom(db)
  room.found()
}

/** Writes about 100 KiB into a temporary table, which is dropped with the transaction. */
const takeRoom = (db: Pool): Promise<void> =>
  inTransaction(db, async (tx) => {
    await sql`create temporary table room on commit drop as select repeat('x', 1000) as x from generate_series(1, 100)`.execute(
      tx,
    )
  })

// Two files of the write-ahead log. Once the log finds no room, the embedded database ends the process.
const ROOM_MIN = 32 * 2 ** 20
// Shorter than a load balancer waits, and long enough that a busy database does not count as lost.
const PING_MS = 3_000
// Matches any SQLSTATE but those of class 08 (connection) and 57 (operator intervention), which end the connection. A SQLSTATE always has a digit,
// unlike EPIPE.
const ROLLED_BACK = /^(?!08|57)(?=.*[0-9])[0-9A-Z]{5}$/

/** Adds each finished statement to the trace of its request, with text and placeholders. Parameters are left out, because they may be secrets. */
function traceStatement(event: LogEvent): void {
  const { sql: text } = event.query
  const startedMsAgo = event.queryDurationMillis
  const attributes = { 'db.system.name': 'postgresql', 'db.query.text': text }
  const span = startSpan(nameStatement(text), { kind: 'client', attributes, startedMsAgo })
  span?.end({ failure: event.level === 'error' ? failureOf(event.error) : undefined })
}

/** Names a span by the first verb and table in the text: `select activation`. */
function nameStatement(text: string): string {
  const { insert, remove, update, select } = VERB_AND_TABLE.exec(text)?.groups ?? {}
  if (insert) return `insert ${insert}`
  if (remove) return `delete ${remove}`
  if (update) return `update ${update}`
  return select ? `select ${select}` : (/\w+/.exec(text)?.[0].toLowerCase() ?? 'statement')
}

const VERB_AND_TABLE =
  /\b(?:insert\s+into\s+"?(?<insert>\w+)|delete\s+from\s+"?(?<remove>\w+)|update\s+"?(?<update>\w+)|select\b[^]*?\bfrom\s+"?(?<select>\w+))/i
