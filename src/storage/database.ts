// The database: PostgreSQL behind a pool, or PGlite in the data directory. One set of SQL for both.
//
// Locks are taken in the order application, activation, operation. Inside inTransaction only the given Tx may be used:
// the embedded database has one connection, and a query beside the transaction would wait for its own end.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Transaction, Kysely, PGliteDialect, PostgresDialect, sql } from 'kysely'
import { connectPostgres, type Room } from './database-postgres.ts'
import { createInMemory, type Embedded, openEmbedded } from './database-embedded.ts'
import type { Schema } from './schema.ts'

/** Anything a query may run on: the pool or a transaction. */
export type Db = Kysely<Schema>
/** A transaction; functions that need one take this type. */
export type Tx = Transaction<Schema>

export interface DatabaseOptions {
  /** PostgreSQL connection URL; without it the embedded database in `dataDir` is opened. */
  readonly databaseUrl?: string | undefined
  readonly dataDir: string
  readonly poolSize: number
  /** Told of connections that break while idle. */
  readonly onConnectionError?: (error: Error) => void
}

export interface Database {
  readonly db: Db
  readonly kind: 'embedded' | 'postgresql'
  /** For people: where the data lies, without credentials. */
  readonly location: string
  /** Of PostgreSQL. */
  readonly room?: Room
  /** A connection whose statements take as long as they need; absent where all of them may. */
  readonly openPatient?: () => Pick<Database, 'db' | 'close'>
  readonly close: () => Promise<void>
}

/** Opens the database; nothing is migrated yet. Throws StartError when the directory is in use by another process. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { databaseUrl } = options
  if (databaseUrl !== undefined) {
    const { pool, location, room } = connectPostgres(databaseUrl, options)
    const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
    const openPatient = () => openPatientPostgres(databaseUrl)
    return { db, kind: 'postgresql', location, room, openPatient, close: () => db.destroy() }
  }
  return fromEmbedded(await openEmbedded(options.dataDir), options.dataDir)
}

function openPatientPostgres(databaseUrl: string): Pick<Database, 'db' | 'close'> {
  const { pool } = connectPostgres(databaseUrl, { poolSize: 2, isPatient: true })
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  return { db, close: () => db.destroy() }
}

/** An embedded database that is gone when it is closed; `template` is the dump of an empty one. */
export const openInMemory = async (template?: Blob): Promise<Database> => fromEmbedded(await createInMemory(template), 'memory')

function fromEmbedded({ pglite, release }: Embedded, location: string): Database {
  const db = new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }) })
  const close = async () => {
    // Kysely closes an instance only when a query has run on it.
    await db.destroy()
    if (!pglite.closed) await pglite.close()
    await release()
  }
  return { db, kind: 'embedded', location, close }
}

/** Runs `work` in one transaction; a throw rolls back. Within a transaction it becomes part of that one. */
export const inTransaction = <T>(db: Db | Tx, work: (tx: Tx) => Promise<T>): Promise<T> =>
  db.isTransaction ? work(db as Tx) : db.transaction().execute(work)

/** Runs `work`; within a transaction a throw undoes what it did there and leaves the transaction usable. */
export async function inSavepoint<T>(db: Db | Tx, work: () => Promise<T>): Promise<T> {
  if (!db.isTransaction) return work()
  await sql`savepoint attempt`.execute(db)
  try {
    const result = await work()
    await sql`release savepoint attempt`.execute(db)
    return result
  } catch (error) {
    await sql`rollback to savepoint attempt`.execute(db)
    throw error
  }
}

/** True for a violated unique index or primary key (of that name), by the SQLSTATE that both databases give. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error) || error.code !== '23505') return false
  return constraint === undefined || ('constraint' in error && error.constraint === constraint)
}

/**
 * Resolves when the database answers and takes writes. Throws when it does not: a standby, one that is set to read only, one whose disk
 * is full, one whose synchronous standby is away. PostgreSQL is asked for a record in its log that nobody reads and, after a statement
 * that found no room, for room.
 */
export async function pingDatabase({ db, kind, room }: Pick<Database, 'db' | 'kind' | 'room'>): Promise<void> {
  if (kind === 'embedded') {
    await sql`select 1`.execute(db)
    return
  }
  const late = sleep(PING_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the database took no write within ${PING_MS} ms`)
  })
  await Promise.race([write(db, room), late])
}

async function write(db: Db, room: Room | undefined): Promise<void> {
  const { rows } = await sql<{ isReadOnly: boolean }>`
    select current_setting('transaction_read_only') = 'on' as "isReadOnly",
      case when current_setting('transaction_read_only') = 'off' then pg_logical_emit_message(true, 'pawl', 'ready') end`.execute(
    db,
  )
  if (rows[0]?.isReadOnly !== false) throw new Error('the database takes no writes')
  if (room?.isMissing() !== true) return
  await takeRoom(db)
  room.found()
}

/** Writes some 100 KiB into a table of this transaction; the room is free again afterwards. */
const takeRoom = (db: Db): Promise<void> =>
  inTransaction(db, async (tx) => {
    await sql`create temporary table room on commit drop as select repeat('x', 1000) as x from generate_series(1, 100)`.execute(
      tx,
    )
  })

// Shorter than balancers wait, and so long that a busy database does not count as lost.
const PING_MS = 3_000
