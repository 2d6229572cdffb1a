// Makes and checks the MACs that make the audit log tamper-evident (cloud §7): HMAC-SHA-256 under the installation's key over unambiguous
// encodings.
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hash.ts'
import { equalConstantTime, toHex } from '../../lib/bytes.ts'
import { isJsonObject } from '../../lib/json.ts'
import type { ChainPlace, ChainRow, ChainState } from '../../storage/audit/chain.ts'
import type { RowFields, SealableRow, SealedRow } from '../../storage/audit/rows.ts'
import { readJson } from '../../storage/database/columns.ts'
import { encodeTexts } from '../secrets/row-mac.ts'

/** The place before the first row of a chain. */
export const CHAIN_BEGINNING: ChainPlace = { position: 0, seal: new Uint8Array(32) }

/**
 * Seals a row that follows `previous`, and returns its place. The seal covers the previous seal, the chain, the position and every column of
 * the row. If the row has the key of a user, the seal covers user and data only through that key: without it, nobody can tell whose row it was.
 */
export function sealRow(key: KeyObject, chain: string, previous: ChainPlace, row: SealableRow): ChainPlace {
  const position = previous.position + 1
  const { sequence, userKey, fields } = row
  if (userKey === null) {
    const covered = ['row', chain, String(position), String(sequence), ...fields, ...verifierOf(row)]
    return { position, seal: sealFields(key, previous, covered) }
  }
  const [application, user, activation, type, data, time] = fields
  const person = toHex(hmac(key, encodeTexts(userKey, ['person', user, data])))
  const covered = [
    'row of a user',
    chain,
    String(position),
    String(sequence),
    application,
    activation,
    type,
    time,
    person,
    ...verifierOf(row),
  ]
  return { position, seal: sealFields(key, previous, covered) }
}

/** The credential in `verified_by`, if there is one. It adds two texts, so that no row of another kind has as many. */
const verifierOf = ({ verifiedBy }: Pick<SealableRow, 'verifiedBy'>): readonly string[] =>
  verifiedBy === null ? [] : ['verified by', verifiedBy]

/** Whether a row follows `previous` and is either as it was sealed, or erased by somebody with the key (user-data/user-data.ts). */
export function isSealed(key: KeyObject, chain: string, previous: ChainPlace, row: SealedRow): boolean {
  if (row.position !== previous.position + 1) return false
  const isAs = (sealed: SealableRow): boolean => equalConstantTime(sealRow(key, chain, previous, sealed).seal, row.seal)
  // Rows of a user may be older than the user's key.
  return isAs(row) || (row.userKey !== null && isAs({ ...row, userKey: null })) || isErased(key, chain, previous, row)
}

/**
 * Returns the columns of a sealed row after parts of it were erased. The seal stays, because the next seal covers it, but the columns no longer
 * give it. So the data of the row get a MAC over the seal, the place of the row, and the columns that are left.
 */
export function certifyErasure(key: KeyObject, chain: string, previous: ChainPlace, row: SealedRow): RowFields {
  const left = Object.fromEntries(Object.entries(parseData(dataOf(row.fields))).filter(([name]) => name !== 'erased'))
  const covered = coveredByErasure(chain, row, withData(row.fields, JSON.stringify(left)))
  return withData(row.fields, JSON.stringify({ ...left, erased: toHex(sealFields(key, previous, covered)) }))
}

function isErased(key: KeyObject, chain: string, previous: ChainPlace, row: SealedRow): boolean {
  const data = dataOf(row.fields)
  if (!/"erased":"[0-9a-f]{64}"\}$/.test(data)) return false
  return equalConstantTime(Buffer.from(data), Buffer.from(dataOf(certifyErasure(key, chain, previous, row))))
}

const coveredByErasure = (chain: string, row: SealedRow, left: RowFields): readonly (string | null)[] => [
  'erased row',
  chain,
  String(row.position),
  String(row.sequence),
  toHex(row.seal),
  ...left,
  ...verifierOf(row),
]

const dataOf = ([, , , , data]: RowFields): string => data ?? ''

/** Returns the fields of a row with other data: the data of an event, or the state after an administrator's change. */
export const withData = ([f0, f1, f2, f3, , f5]: RowFields, data: string): RowFields => [f0, f1, f2, f3, data, f5]

/** The members of a row's data; none if the data are no JSON object. */
export function parseData(data: string): Readonly<Record<string, unknown>> {
  const parsed = readJson(data)
  return isJsonObject(parsed) ? parsed : {}
}

const sealFields = (key: KeyObject, previous: ChainPlace, texts: readonly (string | null)[]): Uint8Array =>
  hmac(key, encodeTexts(previous.seal, texts))

/** Adds the MAC to the state of a chain. Without the key nobody can set its head back or its start forward. */
export function authenticateChain(key: KeyObject, state: Omit<ChainState, 'authentication'>): ChainState {
  return { ...state, authentication: hmac(key, encodeState(state)) }
}

/** Whether a chain's state is as it was stored. */
export const isChainAuthentic = (key: KeyObject, chain: ChainState): boolean =>
  equalConstantTime(hmac(key, encodeState(chain)), chain.authentication)

/** Whether nobody has altered the chain's state, cut its end, or set its head back. */
export const isExtensible = (key: KeyObject, chain: ChainRow): boolean =>
  isChainAuthentic(key, chain) && chain.lastPosition === chain.head.position

const encodeState = ({ name, start, head }: Omit<ChainState, 'authentication'>): Uint8Array =>
  encodeTexts(CHAIN_BEGINNING.seal, ['chain', name, ...encodePlace(start), ...encodePlace(head)])

const encodePlace = ({ position, seal }: ChainPlace): string[] => [String(position), toHex(seal)]
