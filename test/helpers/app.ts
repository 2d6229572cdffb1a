// Starts a listening server on a fresh database: embedded in memory, or PostgreSQL when PAWL_TEST_DATABASE_URL names a server.
import { randomBytes, randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { MasterKeys } from '../../src/domain/secrets/record-keys.ts'
import { buildApp } from '../../src/app.ts'
import { parseConfig } from '../../src/config/parser.ts'
import type { Secrets } from '../../src/config/secrets.ts'
import type { Config } from '../../src/config/config.ts'
import { type Context, createContext } from '../../src/context.ts'
import { describeApis } from '../../src/description.ts'
import { createLog } from '../../src/log/log.ts'
import type { Platform } from '../../src/lib/platform.ts'
import { type Database, openDatabase, openInMemory } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { watchAnswers } from './documented.ts'
import { lendInstance, readTar } from './lent-database.ts'
import { runAll, SCHEMA, urlOf } from './hostile.ts'
import { followLog } from './logged.ts'

export interface TestServer {
  /** http://127.0.0.1:PORT */
  readonly url: string
  readonly admin: { readonly user: string; readonly password: string }
  readonly clock: TestClock
  readonly context: Context
  /** The server's log so far, at level debug. */
  readonly log: () => string
  /** Rejects when the server has given an answer that is not in the description of the APIs. */
  readonly close: () => Promise<void>
}

export interface TestClock {
  /** Moves all clocks. A negative number sets them back, which nothing within a process does. */
  readonly advance: (ms: number) => void
  /** Moves the clock of the process, and not that of the database. */
  readonly step: (ms: number) => void
  /** The time of a database that has a clock of its own. */
  readonly databaseNow: () => number
  /** Stops the clocks until `go`; only `advance` moves them then. */
  readonly stop: () => void
  readonly go: () => void
}

export interface TestServerOptions {
  /** Environment variables, as for the real process. */
  readonly env?: Record<string, string>
  /** A PostgreSQL database of the caller, for several servers on one database; it is not dropped. */
  readonly databaseUrl?: string
  /** A database of the caller of any kind, for several servers on it; it is not closed. */
  readonly database?: Database
  readonly masterKeys?: MasterKeys
  /** Puts something between the server and its database. */
  readonly alterDatabase?: (database: Database) => Database
  /** Gives the database a clock of its own, as PostgreSQL has. The server's clock is ahead of it by so many milliseconds. */
  readonly aheadOfDatabase?: number
  /** False leaves housekeeping and webhooks to the test, which calls runHousekeeping and deliverDue. */
  readonly worksInBackground?: boolean
}

/** Limits of one address are out of reach, because all phones of a test share an address, and many tests are about refusals. */
const TEST_ENV = {
  PAWL_PORT: '0',
  PAWL_LOG_LEVEL: 'debug',
  PAWL_SOURCE_FAILURES_PER_MINUTE: '1000000',
  PAWL_TEMPORARY_KEYS_PER_MINUTE: '1000000',
}

const UNDOCUMENTED =
  'the description of the APIs is wrong (an error that a handler answers belongs into `errors` of its endpoint):'

/** Starts one server; close it in afterAll. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const clock = createClock()
  // A generated password is checked without the slow hash. Servers that share a database need the same password, so theirs is given.
  const isShared = options.databaseUrl !== undefined || options.database !== undefined
  const adminPassword = isShared ? 'chosen for the tests' : undefined
  const { config, secrets: given } = parseConfig({ ...TEST_ENV, ...options.env }, () => '')
  const secrets: Secrets = {
    ...given,
    masterKeys: options.masterKeys ?? [randomBytes(32)],
    ...(adminPassword !== undefined && { adminPassword }),
  }
  const { database, drop } = options.database ? lend(options.database) : await openTestDatabase(options.databaseUrl)
  const lines: string[] = []
  const log = createLog(config.logLevel, { write: (line: string) => lines.push(line) })
  // A test moves the clock of its server, and cannot move that of PostgreSQL.
  const readTime = options.aheadOfDatabase === undefined ? undefined : async () => clock.databaseNow()
  clock.step(options.aheadOfDatabase ?? 0)
  const context = await createContext(config, secrets, {
    platform: clock.platform,
    log,
    database: { ...(options.alterDatabase?.(database) ?? database), readTime },
    worksInBackground: options.worksInBackground ?? true,
  })
  const app = await buildApp(context)
  const documented = watchAnswers(app.server, describe(config))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const password = adminPassword ?? (await context.createFirstAdmin())
  if (password === undefined) throw new Error('the database has an administrator already')
  const unfollowLog = followLog(lines)
  return {
    url: `http://127.0.0.1:${port}`,
    admin: { user: config.adminUser, password },
    clock,
    context,
    log: () => lines.join(''),
    close: async () => {
      app.server.closeAllConnections()
      await app.close()
      await context.close()
      await drop()
      unfollowLog()
      const undocumented = documented.undocumented()
      if (undocumented.length > 0) throw new Error(`${UNDOCUMENTED}\n${undocumented.join('\n')}`)
    },
  }
}

export interface PostgresDatabase {
  /** The URL for pawl. */
  readonly databaseUrl: string
  /** The URL for the test: of a superuser with usual settings and the same search path. */
  readonly adminUrl: string
  readonly name: string
  readonly drop: () => Promise<void>
}

/** Makes a PostgreSQL database without rows, for tests that start several servers on it; with `isEmpty` it has no schema either. */
export async function createPostgresDatabase({ isEmpty = false } = {}): Promise<PostgresDatabase> {
  const server = serverUrl()
  if (server === undefined) throw new Error('PAWL_TEST_DATABASE_URL is not set')
  const name = `pawl_test_${randomUUID().replaceAll('-', '')}`
  const { PAWL_TEST_ROLE_URL: roleUrl, PAWL_TEST_EMPTY_TEMPLATE: emptyTemplate = 'template1' } = process.env
  await runAll(server, [`create database ${name} template ${isEmpty ? emptyTemplate : testTemplate()}`])
  const adminUrl = new URL(urlOf(server, { database: name }))
  // searchParams would write a space as +, which libpq does not read as a space.
  if (roleUrl !== undefined) adminUrl.search = `options=${encodeURIComponent(`-c search_path=${quoteOption(SCHEMA)}`)}`
  return {
    databaseUrl: urlOf(roleUrl ?? server, { database: name }),
    adminUrl: adminUrl.toString(),
    name,
    drop: () => runAll(server, [`drop database ${name} with (force)`]),
  }
}

/** Quotes a name as the settings within `options` need it. */
const quoteOption = (name: string): string => `"${name}"`.replaceAll(' ', String.raw`\ `)

/**
 * Counts the statements in a PostgreSQL database that wait for the end of another transaction. It must not run within a transaction, where the
 * list of connections does not change, so that new ones would never be counted.
 */
export const COUNT_WAITING = `
  select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

/** The folder or the database that global-setup.ts has made for this run. */
export const testTemplate = (): string => process.env['PAWL_TEST_TEMPLATE'] ?? ''

/** The PostgreSQL server of this run, if there is one. */
export const serverUrl = (): string | undefined => process.env['PAWL_TEST_DATABASE_URL'] || undefined

const lend = (database: Database) => ({
  database: { ...database, close: async () => undefined },
  drop: async () => undefined,
})

/** Opens a database of the kind that the tests run on. Call `drop` after the database was closed. */
export async function openTestDatabase(shared?: string): Promise<{ database: Database; drop: () => Promise<void> }> {
  if (shared !== undefined) return { database: await openPostgres(shared), drop: async () => undefined }
  if (serverUrl() === undefined) return { database: await openMigratedInMemory(), drop: async () => undefined }
  const { databaseUrl, drop } = await createPostgresDatabase()
  return { database: await openPostgres(databaseUrl), drop }
}

/** Opens an embedded database in memory with the newest schema, whatever the other tests run on. */
export async function openMigratedInMemory(): Promise<Database> {
  if (serverUrl() === undefined) return openInMemory(lendInstance(readTemplate()))
  const database = await openInMemory()
  await migrate(database.db)
  return database
}

/** The dump of an empty embedded database with the newest schema, which a worker reads once for its many tests. */
export const readTemplate = (): Blob => {
  template ??= readTar(join(testTemplate(), 'memory.tar'))
  return template
}

let template: Blob | undefined

const openPostgres = (databaseUrl: string): Promise<Database> => openDatabase({ databaseUrl, dataDir: '', poolSize: 8 })

/** The description of the APIs, one object for all servers whose description is the same. */
function describe({ publicUrl, internalPort, referenceApi }: Config): object {
  const settings = {
    referenceApi,
    ...(publicUrl !== undefined && { publicUrl }),
    ...(internalPort !== undefined && { internalPort }),
  }
  const key = JSON.stringify(settings)
  const description = descriptions.get(key) ?? describeApis(settings)
  descriptions.set(key, description)
  return description
}

const descriptions = new Map<string, object>()

function createClock(): TestClock & { readonly platform: Platform } {
  let offset = 0
  let passed = 0
  let stepped = 0
  let stoppedAt: number | undefined
  return {
    platform: {
      now: () => (stoppedAt ?? Date.now()) + offset + stepped,
      monotonic: () => (stoppedAt ?? Date.now()) + passed,
      randomBytes: (length) => randomBytes(length),
      uuid: () => randomUUID(),
    },
    databaseNow: () => (stoppedAt ?? Date.now()) + offset,
    advance: (ms) => {
      offset += ms
      passed += Math.max(0, ms)
    },
    step: (ms) => {
      stepped += ms
    },
    stop: () => {
      stoppedAt ??= Date.now()
    },
    go: () => {
      if (stoppedAt !== undefined) {
        offset += stoppedAt - Date.now()
        passed += stoppedAt - Date.now()
      }
      stoppedAt = undefined
    },
  }
}
