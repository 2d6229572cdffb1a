// The database: PostgreSQL behind a pool, or PGlite in the data directory. One set of SQL for both.
//
// Locks are taken in the order application, activation, operation. Inside inTransaction only the given Tx may be used:
// the embedded database has one connection, and a query beside the transaction would wait for its own end.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Kysely,
  type KyselyConfig,
  type LogEvent,
  PGliteDialect,
  PostgresAdapter,
  PostgresDialect,
  type PostgresDialectConfig,
  sql,
  type Transaction,
} from 'kysely'
import { failureOf, startSpan } from '../../lib/trace.ts'
import { connectPostgres, type Pooler, type PoolUse, type PostgresOptions, type Room } from './postgres.ts'
import type { Embedded } from './embedded.ts'
import { codeOf } from './postgres-connection.ts'
import type { Schema } from './schema.ts'

declare const kind: unique symbol

/** Anything a query may run on: the database or a transaction. */
export type Db = Kysely<Schema>
/**
 * The database itself: every statement is a transaction of its own. Functions that open a transaction take this type, and those that go
 * on after a statement has failed: a failed statement ends the transaction it runs in.
 */
export type Pool = Kysely<Schema> & { readonly [kind]: 'database' }
/** A transaction; functions that need one take this type. */
export type Tx = Transaction<Schema> & { readonly [kind]: 'transaction' }

interface DatabaseOptions extends Omit<PostgresOptions, 'isPatient'> {
  /** PostgreSQL connection URL; without it the embedded database in `dataDir` is opened. */
  readonly databaseUrl?: string | undefined
  readonly dataDir: string
  /** True where requests have traces: each has the statements that it causes. */
  readonly isTraced?: boolean
}

export interface Database {
  readonly db: Pool
  readonly kind: 'embedded' | 'postgresql'
  /** For people: where the data lies, without credentials. */
  readonly location: string
  /** Of PostgreSQL: its time, in milliseconds since 1970. The clock of the embedded database is that of the process. */
  readonly readTime?: (() => Promise<number>) | undefined
  /** Of PostgreSQL. */
  readonly room?: Room
  /** Of PostgreSQL. */
  readonly poolUse?: () => PoolUse
  /** Of PostgreSQL: gives up all connections, for a server that takes no writes. */
  readonly leaveServer?: () => void
  /** A connection whose statements take as long as they need; absent where all of them may. */
  readonly openPatient?: () => Pick<Database, 'db' | 'close'>
  readonly close: () => Promise<void>
}

/** Opens the database; nothing is migrated yet. Throws StartError when the directory is in use by another process. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { databaseUrl, isTraced = false } = options
  const log = isTraced ? { log: traceStatement } : {}
  if (databaseUrl !== undefined) {
    const { pool, location, room, use, leaveServer } = connectPostgres(databaseUrl, options)
    const db = new Kysely<Schema>({ dialect: createDialect({ pool }), ...log }) as Pool
    const openPatient = () => openPatientPostgres(databaseUrl, options.pooler)
    const close = () => db.destroy()
    return { db, kind: 'postgresql', location, readTime: () => readTime(db), room, poolUse: use, leaveServer, openPatient, close }
  }
  const { openEmbedded } = await loadEmbedded()
  return fromEmbedded(await openEmbedded(options.dataDir), options.dataDir, log)
}

/** Kysely's, but for the lock of migrations, which migrate.ts takes. */
function createDialect(config: PostgresDialectConfig): PostgresDialect {
  const nothing = async (): Promise<void> => undefined
  const adapter = Object.assign(new PostgresAdapter(), { acquireMigrationLock: nothing, releaseMigrationLock: nothing })
  return Object.assign(new PostgresDialect(config), { createAdapter: () => adapter })
}

function openPatientPostgres(databaseUrl: string, pooler: Pooler = 'none'): Pick<Database, 'db' | 'close'> {
  const { pool } = connectPostgres(databaseUrl, { poolSize: 2, pooler, isPatient: true })
  const db = new Kysely<Schema>({ dialect: createDialect({ pool }) }) as Pool
  return { db, close: () => db.destroy() }
}

/** An embedded database that is gone when it is closed; `template` is the dump of an empty one. */
export async function openInMemory(template?: Blob): Promise<Database> {
  const { createInMemory } = await loadEmbedded()
  return fromEmbedded(await createInMemory(template), 'memory')
}

/** PGlite is half a megabyte of code that a server on PostgreSQL never runs. */
const loadEmbedded = () => import('./embedded.ts')

function fromEmbedded({ pglite, release }: Embedded, location: string, log: Pick<KyselyConfig, 'log'> = {}): Database {
  const db = new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }), ...log }) as Pool
  const close = async () => {
    // Kysely closes an instance only when a query has run on it.
    await db.destroy()
    if (!pglite.closed) await pglite.close()
    await release()
  }
  return { db, kind: 'embedded', location, close }
}

/** The time of the database, in milliseconds since 1970, whatever the session's zone and style of dates. */
export async function readTime(db: Db): Promise<number> {
  const { rows } = await sql<{ time: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as time`.execute(db)
  const [row] = rows
  if (row === undefined) throw new TypeError('a statement without a row')
  return row.time
}

/** Runs `work` in one transaction; a throw rolls back. */
export const inTransaction = <T>(db: Pool, work: (tx: Tx) => Promise<T>): Promise<T> =>
  db.transaction().execute((tx) => work(tx as Tx))

/**
 * Runs one statement so that its failure undoes it and nothing else, and another attempt is possible: as it is, or in a savepoint of the given
 * transaction, which the failure would end.
 */
export const asOneStep = <T>(db: Pool | Tx, statement: (db: Db) => Promise<T>): Promise<T> =>
  isTx(db) ? inSavepoint(db, statement) : statement(db)

const isTx = (db: Db): db is Tx => db.isTransaction

/** Whether each statement is a transaction of its own. */
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

/** True for a violated unique index or primary key (of that name), by the SQLSTATE that both databases give. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (codeOf(error) !== '23505') return false
  return constraint === undefined || (error as { readonly constraint?: unknown }).constraint === constraint
}

/** True when a statement referred to a row that is not there (SQLSTATE 23503). */
export const isMissingReference = (error: unknown): boolean => codeOf(error) === '23503'

/** True when a lock was not given in time (SQLSTATE 55P03). */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === '55P03'

/** True for one of two that waited for each other (SQLSTATE 40P01). */
export const isDeadlock = (error: unknown): boolean => codeOf(error) === '40P01'

/** True when a statement named a column or a table that is not there (SQLSTATE 42703, 42P01). */
export const isUndefinedName = (error: unknown): boolean => ['42703', '42P01'].includes(String(codeOf(error)))

/** True when a statement made what is there already (SQLSTATE 42P07, 42710). */
export const isDuplicateName = (error: unknown): boolean => ['42P07', '42710'].includes(String(codeOf(error)))

/**
 * The database answered with an error, so the statement was rolled back. A lost connection tells nothing: what may have been stored is
 * not stored a second time, or a code that was accepted would be counted as a wrong one.
 */
export const isRolledBack = (error: unknown): boolean => {
  const code = codeOf(error)
  return typeof code === 'string' && ROLLED_BACK.test(code)
}

/** True when the database refused a statement, or ended it because it took too long (SQLSTATE 57014): it is there, and may answer the next one. */
export const isAnswered = (error: unknown): boolean => isRolledBack(error) || codeOf(error) === '57014'

/**
 * Resolves when the database answers and takes writes. Throws when it does not: a standby, one that is set to read only, one whose disk
 * is full, one whose synchronous standby is away. PostgreSQL is asked for a record in its log that nobody reads and, after a statement
 * that found no room, for room. A server that takes no writes loses its connections, so that the next ones find the one that does.
 */
export async function pingDatabase(database: Pick<Database, 'db' | 'kind' | 'room' | 'leaveServer'>): Promise<void> {
  if (database.kind === 'embedded') {
    await sql`select 1`.execute(database.db)
    return
  }
  const late = sleep(PING_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the database took no write within ${PING_MS} ms`)
  })
  await Promise.race([write(database), late])
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

/** Writes some 100 KiB into a table of this transaction; the room is free again afterwards. */
const takeRoom = (db: Pool): Promise<void> =>
  inTransaction(db, async (tx) => {
    await sql`create temporary table room on commit drop as select repeat('x', 1000) as x from generate_series(1, 100)`.execute(
      tx,
    )
  })

// Shorter than balancers wait, and so long that a busy database does not count as lost.
const PING_MS = 3_000
// SQLSTATE (which always has a digit, unlike EPIPE), but for 08 connection and 57 operator intervention, which end the connection.
const ROLLED_BACK = /^(?!08|57)(?=.*[0-9])[0-9A-Z]{5}$/

/**
 * Told of each statement when it is over: it stands in the trace of the request that caused it, with its text and placeholders, never with
 * its parameters, which may be secrets.
 */
function traceStatement(event: LogEvent): void {
  const { sql: text } = event.query
  const startedMsAgo = event.queryDurationMillis
  const attributes = { 'db.system.name': 'postgresql', 'db.query.text': text }
  const span = startSpan(nameStatement(text), { kind: 'client', attributes, startedMsAgo })
  span?.end({ failure: event.level === 'error' ? failureOf(event.error) : undefined })
}

/** What it does and to which table, of a text with several the first: `select activation`. */
function nameStatement(text: string): string {
  const { insert, remove, update, select } = VERB_AND_TABLE.exec(text)?.groups ?? {}
  if (insert) return `insert ${insert}`
  if (remove) return `delete ${remove}`
  if (update) return `update ${update}`
  return select ? `select ${select}` : (/\w+/.exec(text)?.[0].toLowerCase() ?? 'statement')
}

const VERB_AND_TABLE =
  /\b(?:insert\s+into\s+"?(?<insert>\w+)|delete\s+from\s+"?(?<remove>\w+)|update\s+"?(?<update>\w+)|select\b[^]*?\bfrom\s+"?(?<select>\w+))/i
