// Opens the database of the settings for a command, and explains in one line why that fails.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, parseConfig } from '../../src/config/parser.ts'
import type { Secrets } from '../../src/config/secrets.ts'
import type { Config } from '../../src/config/config.ts'
import { type BindingParts, followBinding } from '../../src/domain/secrets/binding.ts'
import { type InstallationKeys, isWritten, loadInstallationKeys } from '../../src/domain/installation-keys.ts'
import { findKeyOrigin, loadMasterKeys } from '../../src/domain/secrets/master-key.ts'
import { createRecordKeys, type RecordKeys, SealedRecordError } from '../../src/domain/secrets/record-keys.ts'
import { fromUtf8 } from '../../src/lib/bytes.ts'
import { createClock } from '../../src/lib/clock.ts'
import { PawlError, StartError } from '../../src/lib/errors.ts'
import { createEvents } from '../../src/log/events.ts'
import { createLog } from '../../src/log/log.ts'
import { type Platform, systemPlatform } from '../../src/lib/platform.ts'
import { explainDatabaseFailure } from '../../src/storage/database/failure.ts'
import { type Database, openDatabase, type Pool } from '../../src/storage/database/database.ts'
import { findBinding } from '../../src/storage/secrets/record-binding.ts'
import { DirectoryInUse } from '../../src/storage/database/directory-lock.ts'
import { requireDatabase } from '../../src/storage/database/requirements.ts'
import type { Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { withProgress } from '../progress.ts'

export interface Settings {
  readonly config: Config
  readonly secrets: Secrets
}

/** The settings of this process. Throws a Fault that lists every wrong one, one a line. */
export function readSettings({ env }: Pick<Terminal, 'env'>): Settings {
  try {
    return parseConfig(env, (path) => fromUtf8(readFileSync(path)))
  } catch (error) {
    throw error instanceof ConfigError ? new Fault('usage', error.problems.join('\n')) : error
  }
}

interface Opening {
  /** True: a missing embedded database is a fault. False: it is created. */
  readonly mustExist: boolean
  /** How to have a running server do the same, for the fault when it has the data directory. */
  readonly online?: string
}

/** For commands that a running server carries out when --local is left out. */
export const LOCAL: Opening = { mustExist: true, online: 'without --local a running server does this' }

/**
 * Runs `work` on the database that the server would open with the same environment. Long work prints a line every five seconds. The clock of
 * `platform` is that of the database.
 */
export async function withDatabase<T>(
  terminal: Pick<Terminal, 'env' | 'note'>,
  opening: Opening,
  work: (database: Database, settings: Settings, platform: Platform) => Promise<T>,
): Promise<T> {
  const settings = readSettings(terminal)
  const database = await openConfigured(settings, opening)
  try {
    await requireDatabase(database)
    const platform = await openPlatform(terminal, database)
    return await withProgress(terminal.note, `at work on ${database.location}`, () => work(database, settings, platform))
  } catch (error) {
    throw explainDatabase(error, database)
  } finally {
    await database.close()
  }
}

/** The platform of a command. Its clock follows the database's, as in servers. */
async function openPlatform({ note }: Pick<Terminal, 'note'>, { readTime }: Database): Promise<Platform> {
  const clock = createClock(systemPlatform, {
    clockDiffers: ({ seconds }) =>
      note(
        `the clock of this machine is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} the database's, which holds`,
      ),
    clockAgrees: () => undefined,
  })
  if (readTime !== undefined) await clock.hear(readTime)
  return { ...systemPlatform, now: clock.now }
}

export const openRecordKeys = async ({ kind, db }: Pick<Database, 'kind' | 'db'>, settings: Settings): Promise<RecordKeys> =>
  createRecordKeys(await loadMasterKeys(settings, kind, systemPlatform, () => isWritten(db)), systemPlatform, {
    origin: findKeyOrigin(settings, kind),
  })

/**
 * Record encryption for a command that reads or seals records of activations. Throws a Fault while servers of an earlier version may run, which
 * cannot open a record that is bound to its owner.
 */
export async function openOwnedRecordKeys(database: Database, settings: Settings, platform: Platform): Promise<RecordKeys> {
  const recordKeys = await openRecordKeys(database, settings)
  if ((await findBinding(database.db, 0)) === undefined) return recordKeys
  const binding = await followBinding({ ...(await openBindingParts(database, settings, platform)), recordKeys })
  if (binding?.stage === 'OPEN')
    throw new Fault('refused', 'sealed records are not bound to their users yet: run pawl key bind first (docs/UPGRADE.md)')
  return recordKeys
}

export async function openBindingParts(database: Database, settings: Settings, platform: Platform): Promise<BindingParts> {
  const events = createEvents(createLog('silent', process.stderr))
  const recordKeys = await openRecordKeys(database, settings)
  return { db: database.db, recordKeys, installationKeys: await openInstallationKeys(database, settings, platform), events }
}

/** The keys of the installation, opened with the master keys of the settings. */
export const openInstallationKeys = async (
  database: Database,
  settings: Settings,
  platform: Platform,
): Promise<InstallationKeys> => loadInstallationKeys(database.db, await openRecordKeys(database, settings), platform)

/** Runs `work` on connections without a time limit for statements. */
export async function patiently<T>({ db, openPatient }: Database, work: (db: Pool) => Promise<T>): Promise<T> {
  const patient = openPatient?.()
  if (patient === undefined) return work(db)
  try {
    return await work(patient.db)
  } finally {
    await patient.close()
  }
}

async function openConfigured({ config, secrets }: Settings, { mustExist, online }: Opening): Promise<Database> {
  const { dataDir, databasePoolSize: poolSize, databasePooler: pooler } = config
  const { databaseUrl } = secrets
  if (mustExist && databaseUrl === undefined && !existsSync(join(dataDir, 'database')))
    throw new Fault('unreachable', `there is no database in ${dataDir}`)
  try {
    return await openDatabase({ databaseUrl, dataDir, poolSize, pooler })
  } catch (error) {
    if (error instanceof DirectoryInUse && online !== undefined) throw new Fault('unreachable', `${error.message}; ${online}`)
    throw explainDatabase(error)
  }
}

/** Turns the failure of a database, and a refusal of pawl's own rules, into a Fault; returns every other error unchanged. */
export function explainDatabase(error: unknown, database?: Pick<Database, 'kind' | 'location'>, setting?: string): unknown {
  if (error instanceof Fault) return error
  if (error instanceof PawlError || error instanceof SealedRecordError) return new Fault('refused', error.message)
  const explained = database === undefined ? error : explainDatabaseFailure(error, database, setting)
  return explained instanceof StartError ? new Fault('unreachable', explained.message) : explained
}
