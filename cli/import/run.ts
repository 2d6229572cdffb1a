// Runs the import into the database of the settings: opens both databases, and prints the report.
import { closeSync, fstatSync, ftruncateSync, openSync, writeFileSync } from 'node:fs'
import { databaseUrl } from '../../src/config/kinds.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import type { Platform } from '../../src/lib/platform.ts'
import { lockImport } from '../../src/storage/activation/import.ts'
import { type Database, inTransaction, openDatabase } from '../../src/storage/database/database.ts'
import { migrateDatabase } from '../../src/storage/database/migrate.ts'
import { reasonOf } from '../../src/storage/database/failure.ts'
import { codeOf } from '../../src/storage/database/postgres-connection.ts'
import type { Answer, Terminal } from '../command.ts'
import { explainFault, Fault, type FaultKind, orFault, usageFault } from '../fault.ts'
import { layOutTable, printable } from '../output.ts'
import {
  explainDatabase,
  openInstallationKeys,
  openOwnedRecordKeys,
  patiently,
  type Settings,
  withDatabase,
} from '../local/database.ts'
import { readSecret } from '../secret-argument.ts'
import { importAll, type ImportReport, type WithTarget } from './import.ts'
import type { TargetParts } from './parts.ts'
import { createRecordOpener } from './records.ts'
import { createRecorder, KINDS, type Reasoned, type Report } from './report.ts'
import { readSource, SourceFailure } from './source.ts'

export interface ImportOptions {
  readonly from: string | undefined
  readonly masterDbKeyFile: string | undefined
  readonly timeZone: string | undefined
  readonly dryRun: boolean
  readonly liveOnly: boolean
  readonly leftOutFile: string | undefined
}

/** Imports into the configured database; the exit code is 0 also when rows were left out. */
export async function importPowerauth(terminal: Terminal, options: ImportOptions): Promise<Answer> {
  const url = options.from ?? terminal.env[URL_NAME]
  const parsed = url === undefined ? undefined : databaseUrl.parse(url)
  if (url === undefined || parsed === undefined || 'problem' in parsed)
    throw usageFault(
      `give the PostgreSQL URL of the reference's database with --from or ${URL_NAME}${parsed && 'problem' in parsed ? `: ${parsed.problem}` : ''}`,
    )
  const masterDbKey = readMasterDbKey(terminal.env, options.masterDbKeyFile)
  const list = openList(options.leftOutFile)
  // A scan of a large table lasts longer than a request may. The transaction makes the other settings, so that it works through a pooler.
  const origin = await openDatabase({ databaseUrl: url, dataDir: '', poolSize: 1, pooler: 'transaction' })
  const { db, close } = origin.openPatient?.() ?? origin
  const record = createRecorder(list.write)
  let into: string | undefined
  const explain = (error: unknown): unknown =>
    explainFailure(error, { from: origin.location, into, isDryRun: options.dryRun, ...record.report() })
  try {
    const from = {
      openRecord: createRecordOpener(masterDbKey),
      hasMasterDbKey: masterDbKey !== undefined,
      record,
      isDryRun: options.dryRun,
      isLiveOnly: options.liveOnly,
      note: terminal.note,
    }
    const withTarget: WithTarget = (work) => {
      into = 'the database of the settings'
      return withDatabase(terminal, { mustExist: false }, (database, settings, platform) => {
        into = database.location
        return alone(database, async () => {
          // Not earlier: an import that is still running may write to the same file.
          list.begin()
          return work(await openTarget(database, settings, platform))
        }).catch((error: unknown) => {
          // Explained here, because readSource would take every error for one of the reference's database.
          throw explain(error)
        })
      })
    }
    const report = await readSource(db, options.timeZone ?? 'UTC', (source) => importAll({ source, ...from }, withTarget))
    const json = { from: origin.location, into, isDryRun: options.dryRun, ...report }
    return { json, text: render(json) }
  } catch (error) {
    throw explain(error)
  } finally {
    list.close()
    await close()
    await origin.close()
  }
}

/** Runs `work` while no other import may run. An embedded database is open in one process anyway. */
async function alone<T>(database: Database, work: () => Promise<T>): Promise<T> {
  if (database.kind === 'embedded') return work()
  return patiently(database, (db) =>
    inTransaction(db, async (tx) => {
      if (await lockImport(tx)) return work()
      throw new Fault('refused', `another import into ${database.location} is under way: wait for its end; this one did nothing`)
    }),
  )
}

/** Opens the target. It is migrated for a dry run, too, which reads its tables. */
async function openTarget(database: Database, settings: Settings, platform: Platform): Promise<TargetParts> {
  await migrateDatabase(database)
  const recordKeys = await openOwnedRecordKeys(database, settings, platform)
  const installationKeys = await openInstallationKeys(database, settings, platform)
  return { db: database.db, platform, recordKeys, installationKeys, settings: settings.config }
}

interface Sides {
  readonly from: string
  /** The database of pawl; undefined until it is opened. */
  readonly into: string | undefined
  readonly isDryRun: boolean
}

/** A failure that `explainFailure` has explained already. */
class ImportFailure extends Fault {}

/** Explains a failure: which database failed, how far the import came, and what to do next. A bug of pawl, and every Fault, stays as it is. */
function explainFailure(error: unknown, { from, into, isDryRun, tallies }: Sides & Report): unknown {
  if (error instanceof ImportFailure || (error instanceof Fault && error.kind !== 'unreachable')) return error
  if (error instanceof TypeError || error instanceof RangeError) return error
  const isOfSource = error instanceof SourceFailure
  if (!isOfSource && into === undefined) return explainDatabase(error)
  const code = isOfSource ? error.code : String(codeOf(reasonOf(error)) ?? '')
  const who = isOfSource ? `the reference's database (${from})` : `pawl's database (${into})`
  const said = KINDS.filter((kind) => tallies[kind].found > 0).map((kind) => {
    const { found, imported, alreadyThere, leftOut } = tallies[kind]
    return `${kind}s ${imported + alreadyThere} of ${found}${leftOut > 0 ? `, ${leftOut} left out` : ''}`
  })
  const far = said.length === 0 || isDryRun ? 'nothing was imported' : `in pawl so far: ${said.join('; ')}`
  const setting = isOfSource ? `--from, or ${URL_NAME}` : 'DATABASE_URL'
  const hint = /^(28...|3D000|42501)$/.test(code) ? ` (${setting} names the role, its password and the database)` : ''
  const next = `when that is mended${hint}, run the same command again: what is in pawl is skipped`
  const kind = /^(?!42501)(22|23|42|XX)/.test(code) ? 'refused' : 'unreachable'
  return new ImportFailure(kind, `${who} failed: ${explainFault(error)}\n${far}\nwhat to do: ${next}`)
}

function readMasterDbKey(env: Terminal['env'], file: string | undefined): Uint8Array | undefined {
  const text = (readSecret('--master-db-key-file', undefined, file) ?? env[KEY_NAME])?.trim()
  if (!text) return undefined
  const key = parseBase64(text, 16)
  if (key === undefined) throw new Fault('usage', 'the master DB encryption key is not Base64 of 16 bytes')
  return key
}

interface List {
  /** Empties the file of an earlier run. */
  readonly begin: () => void
  readonly write: (row: object) => void
  readonly close: () => void
}

/** Opens a file of one JSON object a line. It is opened first of all, so that a wrong name is reported before the import begins. */
function openList(file: string | undefined): List {
  if (file === undefined) return { begin: () => undefined, write: () => undefined, close: () => undefined }
  const attempt = <T>(kind: FaultKind, step: () => T): T => orFault(kind, '--left-out-file', step)
  const handle = attempt('usage', () => openSync(file, 'a', 0o600))
  return {
    begin: () => attempt('usage', () => fstatSync(handle).isFile() && ftruncateSync(handle)),
    // writeSync may write only a part, and reports that only by its return value.
    write: (row) => attempt('output', () => writeFileSync(handle, `${JSON.stringify(row)}\n`)),
    close: () => closeSync(handle),
  }
}

function render({ from, into, isDryRun, tallies, leftOut, mended, notTaken }: ImportReport & Sides): string {
  const imported = isDryRun ? 'would be imported' : 'imported'
  const rows = KINDS.map((kind) => {
    const { found, imported: count, alreadyThere, leftOut: out } = tallies[kind]
    return { '': `${kind}s`, found, [imported]: count, 'already there': alreadyThere, 'left out': out }
  })
  const others = `not taken over: ${notTaken.pendingOperations} pending operations, ${notTaken.recoveryCodes} recovery codes\n`
  const head = isDryRun ? 'dry run, nothing was written' : 'done'
  const lists = `${renderReasons('left out', leftOut)}${renderReasons('taken with a change', mended)}`
  return `${from} -> ${into ?? ''}: ${head}\n\n${layOutTable(rows)}\n${lists}${others}`
}

function renderReasons(title: string, list: readonly Reasoned[]): string {
  const lines = list.map(({ kind, reason, count, ids }) => {
    const named = ids.map((id) => (id.trim() === '' ? JSON.stringify(id) : id)).join(', ')
    return printable(`  ${count} ${kind}${count === 1 ? '' : 's'}: ${reason} (${named}${count > ids.length ? ', …' : ''})`)
  })
  return lines.length > 0 ? `${title}:\n${lines.join('\n')}\n` : ''
}

const URL_NAME = 'POWERAUTH_DATABASE_URL'
const KEY_NAME = 'POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY'
