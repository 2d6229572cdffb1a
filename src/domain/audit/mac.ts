// The MACs that make the audit log tamper-evident (cloud §7): HMAC-SHA-256 under the installation's key over unambiguous encodings.
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hmac.ts'
import { equalConstantTime } from '../../lib/bytes.ts'
import type { ChainPlace, ChainRow, ChainState } from '../../storage/audit-chain.ts'
import type { SealableRow } from '../../storage/audit-rows.ts'
import { encodeTexts } from '../secrets/row-mac.ts'

/** The place before the first row of a chain. */
export const CHAIN_BEGINNING: ChainPlace = { position: 0, seal: new Uint8Array(32) }

/** The place of a row that follows `previous`: its seal covers the previous seal, the chain, the position and every column of the row. */
export function sealRow(key: KeyObject, chain: string, previous: ChainPlace, { sequence, fields }: SealableRow): ChainPlace {
  const position = previous.position + 1
  return { position, seal: hmac(key, encodeTexts(previous.seal, ['row', chain, String(position), String(sequence), ...fields])) }
}

/** A chain's state with its MAC, so that nobody without the key sets its head back or its start forward. */
export function authenticateChain(key: KeyObject, state: Omit<ChainState, 'authentication'>): ChainState {
  return { ...state, authentication: hmac(key, encodeState(state)) }
}

/** Whether a chain's state is as it was stored. */
export const isChainAuthentic = (key: KeyObject, chain: ChainState): boolean =>
  equalConstantTime(hmac(key, encodeState(chain)), chain.authentication)

/** Nobody altered the chain's state, cut its end, or set its head back. */
export const isExtensible = (key: KeyObject, chain: ChainRow): boolean =>
  isChainAuthentic(key, chain) && chain.lastPosition === chain.head.position

const encodeState = ({ name, start, head }: Omit<ChainState, 'authentication'>): Uint8Array =>
  encodeTexts(CHAIN_BEGINNING.seal, ['chain', name, ...encodePlace(start), ...encodePlace(head)])

const encodePlace = ({ position, seal }: ChainPlace): string[] => [String(position), Buffer.from(seal).toString('hex')]
