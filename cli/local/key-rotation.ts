// Lists how many values of the configured database are sealed under each master key, and seals all of them anew under the first key.
import { rotateRecords } from '../../src/domain/secrets/rotation.ts'
import type { RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import type { Database } from '../../src/storage/database/database.ts'
import { requireMigrated } from '../../src/storage/database/migrate.ts'
import { countByKey } from '../../src/storage/secrets/sealed-columns.ts'
import type { Answer, Terminal } from '../command.ts'
import { layOutTable } from '../output.ts'
import { tellNowAndThen } from '../progress.ts'
import { requireFit } from './keys.ts'
import { openOwnedRecordKeys, openRecordKeys, patiently, withDatabase } from './database.ts'

interface KeyUse {
  readonly keyId: string
  /** `seals`: the first key of the settings; `opens`: another key of the settings. */
  readonly use: 'seals' | 'opens' | 'not given'
  readonly values: number
  /** The numbers of values by `table.column`. */
  readonly places: Readonly<Record<string, number>>
}

/** Lists every key of the settings, and every key under which a value of the database is sealed. */
export const listKeys = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings) => {
    await requireMigrated(database.db)
    const keys = await readKeyUse(database, await openRecordKeys(database, settings))
    const rows = keys.map(({ keyId, use, values }) => ({ id: keyId, use, values }))
    const free = keys.filter(({ use, values }) => use === 'opens' && values === 0)
    const advice = free.map(({ keyId }) => `nothing is under ${keyId}: it may leave the settings\n`)
    return { json: { keys }, text: layOutTable(rows) + advice.join('') }
  })

/** Counts values by key, without a time limit, because it reads every value. */
async function readKeyUse(database: Database, recordKeys: RecordKeys): Promise<readonly KeyUse[]> {
  const counts = await patiently(database, countByKey)
  const ids = new Set([...recordKeys.keyIds, ...counts.map(({ keyId }) => keyId)])
  return [...ids].map((keyId) => {
    const found = counts.filter((count) => count.keyId === keyId)
    const use = keyId === recordKeys.keyIds[0] ? 'seals' : recordKeys.keyIds.includes(keyId) ? 'opens' : 'not given'
    const places = Object.fromEntries(found.map(({ place, values }) => [place, values]))
    return { keyId, use, values: found.reduce((sum, { values }) => sum + values, 0), places }
  })
}

/** Seals every value under the first key. The exit code is 1 when a value is still under another key at the end. */
export const rotateKeys = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings, platform) => {
    const { db } = database
    await requireMigrated(db)
    const recordKeys = await openOwnedRecordKeys(database, settings, platform)
    await requireFit(database, recordKeys)
    const [keyId] = recordKeys.keyIds
    const tell = tellNowAndThen(terminal.note)
    const { replaced, left, unopened } = await rotateRecords({ db, recordKeys }, (progress) =>
      tell(() => `${progress.table}: ${progress.seen} rows looked at, ${progress.replaced} sealed anew in all`),
    )
    const problems = [
      ...(left === 0 ? [] : [`${left} rows are still under another key: a server seals under it; run this again when none does`]),
      ...unopened.map((place) => `${place} opens under none of the keys`),
    ]
    const text = [`${replaced} rows sealed anew under ${keyId}`, ...problems].map((line) => `${line}\n`).join('')
    return { json: { keyId, replaced, left, unopened }, text, exitCode: problems.length === 0 ? 0 : 1 }
  })
