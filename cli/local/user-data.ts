// Runs pawl user export and pawl user erase on the database itself.
import { AlteredLogError, eraseUser, exportUser } from '../../src/domain/user-data/user-data.ts'
import { loadInstallationKeys } from '../../src/domain/installation-keys.ts'
import type { RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import type { Platform } from '../../src/lib/platform.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { requireMigrated } from '../../src/storage/database/migrate.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { openRecordKeys, patiently, withDatabase } from './database.ts'
import { requireFit } from './keys.ts'

/** Prints everything that is stored on the user as JSON. */
export const exportLocal = (terminal: Terminal, userId: string): Promise<Answer> =>
  withKeys(terminal, async (db, recordKeys, platform) => {
    const json = await exportUser({ db, platform, recordKeys }, userId)
    return { json, text: `${JSON.stringify(json, null, 2)}\n` }
  })

/** Erases the user, and prints the pseudonym that the audit logs have from now on. */
export const eraseLocal = (terminal: Terminal, userId: string): Promise<Answer> =>
  withKeys(terminal, async (db, recordKeys, platform) => {
    const installationKeys = await loadInstallationKeys(db, recordKeys, platform)
    const json = await eraseUser({ db, platform, installationKeys }, userId, CLOSED_MS).catch((error: unknown) => {
      throw error instanceof AlteredLogError ? new Fault('refused', error.message) : error
    })
    return { json }
  })

/** Runs `work` without a time limit, because it reads tables without an index by user as a whole. */
const withKeys = (
  terminal: Terminal,
  work: (db: Pool, recordKeys: RecordKeys, platform: Platform) => Promise<Answer>,
): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings, platform) => {
    await requireMigrated(database.db)
    const recordKeys = await openRecordKeys(database, settings)
    await requireFit(database, recordKeys, { mustBeUsed: true })
    return patiently(database, (db) => work(db, recordKeys, platform))
  })

// The user's name stays closed for so long, so that requests that were under way at the end of the erasure are refused, too.
const CLOSED_MS = 2_000
