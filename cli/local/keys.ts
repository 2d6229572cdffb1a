// pawl key check: checks that the configured master key opens the configured database. It writes nothing, and makes no missing key.
import type { RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { ifOpens } from '../../src/domain/secrets/secrets.ts'
import type { Database, Db } from '../../src/storage/database/database.ts'
import { keyIdOf } from '../../src/lib/sealed-value.ts'
import { findWrappedKey } from '../../src/storage/secrets/wrapped-keys.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { openRecordKeys, type Settings, withDatabase } from './database.ts'

/** The purpose of the key that is tried. Any key that the first start makes would do. */
const PURPOSE = 'credential-hash'

export interface KeyFit {
  /** Undefined when no server has ever started on the database: then nothing is sealed. */
  readonly doesFit: boolean | undefined
  /** The ids of the keys in hex, the one that seals first. */
  readonly keyIds: readonly string[]
  /** Whether a rotation to the first key has begun or was never needed: it begins with the keys of the installation. */
  readonly isRotated: boolean
}

/** Tries the master keys on one key of the installation. */
export async function readKeyFit(database: Database, settings: Settings): Promise<KeyFit> {
  const wrapped = await findWrappedKey(database.db, PURPOSE)
  if (wrapped === undefined) return { doesFit: undefined, keyIds: [], isRotated: true }
  const recordKeys = await openRecordKeys(database, settings)
  const { keyIds } = recordKeys
  return { doesFit: await checkFit(database.db, recordKeys), keyIds, isRotated: keyIdOf(wrapped) === keyIds[0] }
}

/** Throws a Fault when the database was written with none of the keys, and with `mustBeUsed` also when no server has started on it. */
export async function requireFit({ db, location }: Database, recordKeys: RecordKeys, { mustBeUsed = false } = {}): Promise<void> {
  if ((await checkFit(db, recordKeys)) ?? !mustBeUsed) return
  throw new Fault('refused', `none of the master keys is one that ${location} was written with`)
}

/** Whether one of the keys opens the database; undefined when no server has started on it, so that nothing is sealed. */
async function checkFit(db: Db, recordKeys: RecordKeys): Promise<boolean | undefined> {
  const wrapped = await findWrappedKey(db, PURPOSE)
  if (wrapped === undefined) return undefined
  return ifOpens(() => recordKeys.open({ table: 'wrapped_key', column: 'wrapped_key', row: PURPOSE }, wrapped)) !== undefined
}

/** Throws a Fault when the master key does not open the database. */
export const checkKey = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings) => {
    const { doesFit } = await readKeyFit(database, settings)
    if (doesFit === false) throw new Fault('refused', `the master key is not the one that ${database.location} was written with`)
    const said = doesFit === true ? 'the master key opens it' : 'no server has started on it, so nothing is under any key'
    return { json: { database: database.location, isOpened: doesFit ?? null }, text: `${database.location}: ${said}\n` }
  })
