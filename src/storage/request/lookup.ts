// Reads what a request with an envelope or a token names, in one statement: its parties, the temporary key of the envelope, the token, and
// whether its values were used before. What it does not name is asked for under a name that nobody has.
import { type RawBuilder, sql } from 'kysely'
import { defineAskedRows } from '../database/bulk-statement.ts'
import {
  joinTemporaryKey,
  TEMPORARY_KEY_COLUMNS,
  type TemporaryKeyColumns,
  type TemporaryKeyRow,
  toTemporaryKey,
} from '../application/temporary-keys.ts'
import { joinToken, type TokenColumns, type TokenRow, toToken } from '../token/tokens.ts'
import { fromAsked, PARTIES, type PartiesRow, PARTY_NAMES, type PartyNames, type ReadParties, toParties } from './parties.ts'

/** The names in a request. A text is empty, and a hash null, where it names none. */
export interface ProofNames extends PartyNames {
  readonly temporaryKeyId: string
  /** Of the envelope; 32 bytes. */
  readonly envelopeValue: Uint8Array | null
  readonly tokenId: string
  /** Of the token header; 32 bytes. */
  readonly tokenValue: Uint8Array | null
}

/** What a request names, as it is stored. */
export interface Proofs extends FoundEnvelope, FoundToken {
  readonly parties: ReadParties
}

export interface FoundEnvelope {
  /** Expired or not. */
  readonly temporaryKey: TemporaryKeyRow | undefined
  readonly isEnvelopeUsed: boolean
}

export interface FoundToken {
  readonly token: TokenRow | undefined
  readonly isTokenUsed: boolean
}

/** A row for each of the names. */
export type ProofColumns = PartiesRow & TemporaryKeyColumns & TokenColumns & Pick<Proofs, 'isEnvelopeUsed' | 'isTokenUsed'>

/** Splits a row into what it tells. */
export const toProofs = (row: ProofColumns): Proofs => ({
  parties: toParties(row),
  temporaryKey: toTemporaryKey(row),
  isEnvelopeUsed: row.isEnvelopeUsed,
  token: toToken(row),
  isTokenUsed: row.isTokenUsed,
})

/** What a statement that finds proofs is given. */
export const ASKED_PROOFS = defineAskedRows<ProofNames>({
  ...PARTY_NAMES,
  temporaryKeyId: 'text',
  envelopeValue: 'bytea',
  tokenId: 'text',
  tokenValue: 'bytea',
})
/** What such a statement selects. */
export const PROOFS = sql`${PARTIES}, ${TEMPORARY_KEY_COLUMNS}, k.*,
    exists (select from unique_value u where u.value_hash = i."envelopeValue") as "isEnvelopeUsed",
    exists (select from unique_value u where u.value_hash = i."tokenValue") as "isTokenUsed"`
/** From where: a row for each that is asked for in the table `asked`. */
export const fromAskedProofs = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`${fromAsked(asked)}
  ${joinTemporaryKey(sql`i."temporaryKeyId"`)}
  ${joinToken(sql`i."tokenId"`, sql`i.at`)}`

export const FIND_PROOFS = ASKED_PROOFS.define(
  (asked) => sql`
  select ${PROOFS}
  ${fromAskedProofs(asked)}
  order by i.position`,
)
