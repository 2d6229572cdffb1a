// Seals all values anew, under the first master key and in the form of binding.ts. It takes a page of rows at a time, while servers work on the
// same rows. It may be stopped at any moment. The next run skips finished values.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../storage/database/database.ts'
import {
  readSealedRows,
  type Replacement,
  type RowOwner,
  replaceSealedRows,
  SEALED_TABLES,
  type SealedRow,
  type SealedTable,
} from '../../storage/secrets/sealed-columns.ts'
import type { Place, RecordKeys } from './record-keys.ts'
import { ifOpens, type KeyParts, places } from './secrets.ts'

interface Rotation {
  /** The number of rows whose values were sealed anew. */
  readonly replaced: number
  /** The number of rows under an older key that the last pass could not replace, because others changed them at that moment. */
  readonly left: number
  /** Places of records that open under none of the keys, at most 20. */
  readonly unopened: readonly string[]
}

export interface RotationTerms {
  /** The tables to rotate; all of them by default. */
  readonly tables?: readonly SealedTable[]
  /** Whether a value stays as it is. */
  readonly isDone?: (place: Place, value: Uint8Array) => boolean
  /** An abort ends the rotation between two pages with an exception. */
  readonly signal?: AbortSignal
}

interface Progress {
  readonly table: string
  /** The number of rows of this table that this pass has read. */
  readonly seen: number
  /** The number of rows sealed anew so far, of all tables and passes. */
  readonly replaced: number
}

/**
 * Seals every value anew that `seal` would now seal differently. Servers go on writing, so it makes several passes over all tables, until one finds
 * nothing to do. A server that still seals under an older key prevents that; after some passes `left` counts its rows. After each page with work it
 * rests as long as the page took.
 */
export async function rotateRecords(
  parts: Pick<KeyParts, 'db' | 'recordKeys'>,
  onPage: (progress: Progress) => void = () => undefined,
  { tables = SEALED_TABLES, isDone = parts.recordKeys.isSealedAsNow, signal }: RotationTerms = {},
): Promise<Rotation> {
  let replaced = 0
  let left = 0
  const unopened = new Set<string>()
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    left = 0
    let foundInPass = 0
    for (const table of tables) {
      let seen = 0
      for await (const page of readPages(parts.db, table)) {
        const startedAt = performance.now()
        signal?.throwIfAborted()
        const due = page.flatMap((row) => sealAnew(parts.recordKeys, isDone, table, row, unopened))
        const done = due.length === 0 ? 0 : await replaceSealedRows(parts.db, table, due)
        seen += page.length
        replaced += done
        left += due.length - done
        foundInPass += due.length
        onPage({ table: table.table, seen, replaced })
        if (due.length > 0) await sleep(performance.now() - startedAt)
      }
    }
    if (foundInPass === 0) break
  }
  return { replaced, left, unopened: [...unopened] }
}

async function* readPages(db: Db, table: SealedTable): AsyncGenerator<readonly SealedRow[]> {
  let after: readonly string[] | undefined
  for (;;) {
    const rows = await readSealedRows(db, table, after, PAGE_ROWS)
    if (rows.length > 0) yield rows
    after = rows.at(-1)?.key
    if (rows.length < PAGE_ROWS) return
  }
}

/** Seals the values of a row anew. Returns no replacement when all values stay. A value that does not open stays as it is. */
function sealAnew(
  recordKeys: RecordKeys,
  isDone: Required<RotationTerms>['isDone'],
  table: SealedTable,
  row: SealedRow,
  unopened: Set<string>,
): readonly Replacement[] {
  const { columns, sealedFor = table.table } = table
  // `places` names a row with a key of two columns in the same way.
  const name = row.key.length === 1 ? String(row.key[0]) : JSON.stringify(row.key)
  const next = columns.map((column, i) => {
    const value = row.values[i]
    const place = ownPlaceOf(`${sealedFor}.${column}`, row) ?? { table: sealedFor, column, row: name }
    if (!value || isDone(place, value)) return value ?? null
    const opened = ifOpens(() => recordKeys.open(place, value))
    if (opened !== undefined) return recordKeys.seal(place, opened)
    if (unopened.size < UNOPENED_MAX) unopened.add(`${table.table}.${column} of ${place.row}`)
    return value
  })
  return next.every((value, i) => value === (row.values[i] ?? null)) ? [] : [{ ...row, next }]
}

const ownPlaceOf = (column: string, { key, owner }: SealedRow): Place | undefined =>
  owner === null ? PLACES_OF_KEYS[column]?.(key) : OWN_PLACES[column]?.(owner, String(key[0]))

const PLACES_OF_KEYS: Readonly<Record<string, (key: readonly string[]) => Place>> = {
  'oidc_provider.credentials': ([applicationId = '', providerId = '', settings = '']) =>
    places.oidcCredentials(applicationId, providerId, settings),
}

const OWN_PLACES: Readonly<Record<string, (owner: RowOwner, key: string) => Place>> = {
  'activation.activation_qr_code': places.activationQrCode,
  'activation.server_private_key': ({ codeHash, ...owner }) =>
    codeHash ? places.waitingServerKey({ ...owner, codeHash: Buffer.from(codeHash, 'hex') }) : places.serverPrivateKey(owner),
  'activation.master_secret': places.masterSecret,
  'token.token_secret': ({ factors = '', ...owner }, tokenId) => places.tokenSecret({ ...owner, factors, tokenId }),
  'push_registration.push_token': places.pushToken,
}

const PAGE_ROWS = 200
const PASSES_MAX = 5
const UNOPENED_MAX = 20
