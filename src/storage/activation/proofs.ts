// What a request with an envelope or a token names, in one statement: its parties, the temporary key of the envelope, the token, and whether
// its values were used before. What it does not name is asked for under a name that nobody has.
import { type RawBuilder, sql } from 'kysely'
import { defineGivenRows } from '../given-rows.ts'
import {
  joinTemporaryKey,
  TEMPORARY_KEY_COLUMNS,
  type TemporaryKeyColumns,
  type TemporaryKeyRow,
  toTemporaryKey,
} from '../temporary-keys.ts'
import type { TokenRow } from '../tokens.ts'
import { fromAsked, PARTIES, type PartiesRow, type PartyNames, type RequestParties, toParties } from './parties.ts'
import { stateAt } from './seen-state.ts'

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
  readonly parties: RequestParties
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
export interface ProofColumns extends PartiesRow, TemporaryKeyColumns, Pick<Proofs, 'isEnvelopeUsed' | 'isTokenUsed'> {
  readonly tokenId: string | null
  readonly tokenActivationId: string | null
  readonly tokenApplicationId: string | null
  readonly tokenUserId: string | null
  readonly tokenFactors: string | null
  readonly tokenSecret: Buffer | null
  readonly tokenState: TokenRow['state'] | null
}

/** Splits a row into what it tells. */
export const toProofs = (row: ProofColumns): Proofs => ({
  parties: toParties(row),
  temporaryKey: toTemporaryKey(row),
  isEnvelopeUsed: row.isEnvelopeUsed,
  token: toToken(row),
  isTokenUsed: row.isTokenUsed,
})

function toToken(row: ProofColumns): TokenRow | undefined {
  const { tokenId, tokenActivationId, tokenApplicationId, tokenUserId, tokenFactors, tokenSecret, tokenState } = row
  if (tokenId === null || tokenActivationId === null || tokenApplicationId === null || tokenUserId === null) return undefined
  if (tokenFactors === null || tokenSecret === null || tokenState === null) return undefined
  return {
    tokenId,
    activationId: tokenActivationId,
    applicationId: tokenApplicationId,
    userId: tokenUserId,
    factors: tokenFactors,
    tokenSecret,
    state: tokenState,
  }
}

/** What a statement that finds proofs is given; `position`: its place among the answers. */
export const ASKED_PROOFS = defineGivenRows<ProofNames & { readonly position: number }>({
  applicationKey: 'text',
  activationId: 'text',
  at: 'timestamptz',
  position: 'int',
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
  left join lateral (
    select token.token_id as "tokenId", token.activation_id as "tokenActivationId", bearer.application_id as "tokenApplicationId",
      bearer.user_id as "tokenUserId", token.factors as "tokenFactors", token.token_secret as "tokenSecret",
      ${stateAt(sql`i.at`)} as "tokenState"
    from token join activation bearer on bearer.activation_id = token.activation_id
    where token.token_id = i."tokenId"
  ) as k on true`

export const FIND_PROOFS = ASKED_PROOFS.define(
  (asked) => sql`
  select ${PROOFS}
  ${fromAskedProofs(asked)}
  order by i.position`,
)
