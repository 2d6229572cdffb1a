// The import on the database of the settings: opens both sides, and tells what was done.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { parseBase64 } from '../../../src/lib/base64.ts'
import type { Platform } from '../../../src/lib/platform.ts'
import { type Database, openDatabase } from '../../../src/storage/database.ts'
import { migrateDatabase } from '../../../src/storage/migrate.ts'
import type { Answer, Terminal } from '../../command.ts'
import { explainFault, Fault, usageFault } from '../../fault.ts'
import { layOutTable } from '../../output.ts'
import { explainDatabase, openInstallationKeys, openOwnedRecordKeys, type Settings, withDatabase } from '../database.ts'
import { importAll, type ImportReport, type WithTarget } from './import.ts'
import type { TargetParts } from './parts.ts'
import { createRecordOpener } from './records.ts'
import { createRecorder, KINDS } from './report.ts'
import { readSource } from './source.ts'

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
  if (url === undefined || !/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
    throw usageFault(`give the PostgreSQL URL of the reference's database with --from or ${URL_NAME}`)
  const masterDbKey = readMasterDbKey(terminal.env, options.masterDbKeyFile)
  const list = openList(options.leftOutFile)
  const origin = await openDatabase({ databaseUrl: url, dataDir: '', poolSize: 1 })
  // A scan of a large table lasts longer than a request may.
  const { db, close } = origin.openPatient?.() ?? origin
  let into = ''
  try {
    const from = {
      openRecord: createRecordOpener(masterDbKey),
      hasMasterDbKey: masterDbKey !== undefined,
      record: createRecorder(list.write),
      isDryRun: options.dryRun,
      isLiveOnly: options.liveOnly,
      note: terminal.note,
    }
    const withTarget: WithTarget = (work) =>
      withDatabase(terminal, { mustExist: false }, async (database, settings, platform) => {
        into = database.location
        return work(await openTarget(database, settings, platform))
      })
    const report = await readSource(db, options.timeZone ?? 'UTC', (source) => importAll({ source, ...from }, withTarget))
    const json = { from: origin.location, into, isDryRun: options.dryRun, ...report }
    return { json, text: render(json) }
  } catch (error) {
    throw explainOrigin(error)
  } finally {
    list.close()
    await close()
    await origin.close()
  }
}

/** A dry run needs the tables as well. */
async function openTarget(database: Database, settings: Settings, platform: Platform): Promise<TargetParts> {
  await migrateDatabase(database)
  const recordKeys = await openOwnedRecordKeys(database, settings, platform)
  const installationKeys = await openInstallationKeys(database, settings, platform)
  return { db: database.db, platform, recordKeys, installationKeys, settings: settings.config }
}

/** What PostgreSQL says of a name, password or right that is missing is no fault of pawl. */
function explainOrigin(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(28...|3D000|42501)$/.test(code)
    ? new Fault('unreachable', `the reference's database: ${explainFault(error)}`)
    : explainDatabase(error)
}

function readMasterDbKey(env: Terminal['env'], file: string | undefined): Uint8Array | undefined {
  const text = file === undefined ? env[KEY_NAME] : readText(file)
  if (text === undefined || text.trim() === '') return undefined
  const key = parseBase64(text.trim(), 16)
  if (key === undefined) throw new Fault('usage', 'the master DB encryption key is not Base64 of 16 bytes')
  return key
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Fault('usage', `the file of the master DB encryption key cannot be read: ${explainFault(error)}`)
  }
}

/** A JSON object a line. */
function openList(file: string | undefined): { readonly write: (row: object) => void; readonly close: () => void } {
  if (file === undefined) return { write: () => undefined, close: () => undefined }
  try {
    const handle = openSync(file, 'w', 0o600)
    return { write: (row) => writeSync(handle, `${JSON.stringify(row)}\n`), close: () => closeSync(handle) }
  } catch (error) {
    throw new Fault('usage', `--left-out-file: ${explainFault(error)}`)
  }
}

function render({
  from,
  into,
  isDryRun,
  tallies,
  leftOut,
  notTaken,
}: ImportReport & Readonly<Record<'from' | 'into', string>> & { isDryRun: boolean }): string {
  const imported = isDryRun ? 'would be imported' : 'imported'
  const rows = KINDS.map((kind) => {
    const { found, imported: count, alreadyThere, leftOut: out } = tallies[kind]
    return { '': `${kind}s`, found, [imported]: count, 'already there': alreadyThere, 'left out': out }
  })
  const reasons = leftOut.map(
    ({ kind, reason, count, ids }) =>
      `  ${count} ${kind}${count === 1 ? '' : 's'}: ${reason} (${ids.join(', ')}${count > ids.length ? ', …' : ''})\n`,
  )
  const others = `not taken over: ${notTaken.pendingOperations} pending operations, ${notTaken.recoveryCodes} recovery codes\n`
  const head = isDryRun ? 'dry run, nothing was written' : 'done'
  return `${from} -> ${into}: ${head}\n\n${layOutTable(rows)}\n${reasons.length > 0 ? `left out:\n${reasons.join('')}` : ''}${others}`
}

const URL_NAME = 'POWERAUTH_DATABASE_URL'
const KEY_NAME = 'POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY'
