// Whether the configured master key belongs to the configured database. Nothing is written: a key that is missing is not made.
import { loadMasterKey } from '../../src/domain/secrets/master-key.ts'
import { createRecordKeys, SealedRecordError } from '../../src/domain/secrets/record-keys.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import type { Database } from '../../src/storage/database.ts'
import { findWrappedKey } from '../../src/storage/wrapped-keys.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { type Settings, withDatabase } from './database.ts'

/** Any of the keys that the first start makes. */
const PURPOSE = 'credential-hash'

/** True or false; undefined where no server has started on the database, so that nothing is under any key. */
export async function findWhetherKeyFits({ db, kind }: Database, { config, secrets }: Settings): Promise<boolean | undefined> {
  const wrapped = await findWrappedKey(db, PURPOSE)
  if (wrapped === undefined) return undefined
  const recordKeys = createRecordKeys(loadMasterKey(secrets.masterKey, kind, config.dataDir, platform), platform)
  try {
    recordKeys.open({ table: 'wrapped_key', column: 'wrapped_key', row: PURPOSE }, wrapped)
    return true
  } catch (error) {
    if (error instanceof SealedRecordError) return false
    throw error
  }
}

/** Throws a Fault when it opens nothing there. */
export const checkKey = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings) => {
    const doesFit = await findWhetherKeyFits(database, settings)
    if (doesFit === false) throw new Fault('refused', `the master key is not the one that ${database.location} was written with`)
    const said = doesFit === true ? 'the master key opens it' : 'no server has started on it, so nothing is under any key'
    return { json: { database: database.location, isOpened: doesFit ?? null }, text: `${database.location}: ${said}\n` }
  })
