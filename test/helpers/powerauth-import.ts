// Imports a database of the reference into that of a running server, as the command does.
import { importAll } from '../../cli/import/import.ts'
import { createRecordOpener } from '../../cli/import/records.ts'
import { createRecorder, type Told } from '../../cli/import/report.ts'
import { readSource } from '../../cli/import/source.ts'
import { type Database, openDatabase } from '../../src/storage/database/database.ts'
import { createPostgresDatabase, openMigratedInMemory, serverUrl, type TestServer } from './app.ts'

/** A database of the reference; on PostgreSQL if the tests run on it. */
export interface Origin {
  readonly database: Database
  /** The URL on PostgreSQL; undefined for an embedded database. */
  readonly databaseUrl: string | undefined
  /** Drops the database, after it was closed. */
  readonly drop: () => Promise<void>
}

/** Opens an empty database. */
export async function openOrigin(): Promise<Origin> {
  if (serverUrl() === undefined)
    return { database: await openMigratedInMemory(), databaseUrl: undefined, drop: async () => undefined }
  const { databaseUrl, drop } = await createPostgresDatabase({ isEmpty: true })
  return { database: await openDatabase({ databaseUrl, dataDir: '', poolSize: 4 }), databaseUrl, drop }
}

export interface ImportRun {
  readonly from: Database
  readonly into: Pick<TestServer, 'context'>
  readonly masterDbKey: Uint8Array | undefined
  readonly isDryRun?: boolean
  readonly isLiveOnly?: boolean
  readonly timeZone?: string
}

/** Imports into the running server's database. `reasonOf`: the reason why a row was left out; `mendsOf`: the changes of an imported row. */
export async function importInto({ from, into, masterDbKey, isDryRun = false, isLiveOnly = false, timeZone = 'UTC' }: ImportRun) {
  const told: Told[] = []
  const report = await readSource(from.db, timeZone, (source) =>
    importAll(
      {
        source,
        openRecord: createRecordOpener(masterDbKey),
        hasMasterDbKey: masterDbKey !== undefined,
        record: createRecorder((row) => told.push(row)),
        isDryRun,
        isLiveOnly,
        note: () => undefined,
      },
      (work) => work(into.context),
    ),
  )
  const linesOf = (id: string): readonly Told[] => told.filter((row) => row.id === id)
  return {
    ...report,
    told,
    reasonOf: (id: string) => linesOf(id).flatMap((row) => ('reason' in row ? [row.reason] : []))[0],
    mendsOf: (id: string) => linesOf(id).flatMap((row) => ('mended' in row ? [row.mended] : [])),
  }
}
