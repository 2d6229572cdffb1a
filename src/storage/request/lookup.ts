// Reads the rows that a device request names: the version of its app and its activation; the temporary key of an envelope, the token, and whether
// their values were used before; at a door, also the earlier answer to the same key. A name that the request lacks is looked up as a value that no
// row has. One statement reads everything, and concurrent requests share it.
import { type RawBuilder, sql } from 'kysely'
import { defineAskedRows, type GivenType } from '../database/bulk-statement.ts'
import type { Db } from '../database/database.ts'
import { isValueUsed } from '../activation/unique-values.ts'
import { type ActivationRow, type ReadActivationRow, selectActivation } from '../activation/find.ts'
import {
  joinTemporaryKey,
  TEMPORARY_KEY_COLUMNS,
  type TemporaryKeyColumns,
  type TemporaryKeyRow,
  toTemporaryKey,
} from '../application/temporary-keys.ts'
import { joinVersion, toVersion, VERSION_COLUMNS, type VersionColumns, type VersionRow } from '../application/version.ts'
import { joinToken, type TokenColumns, type TokenRow, toToken } from '../token/tokens.ts'
import { joinKnownVerdict, KNOWN_VERDICT, type KnownVerdict, type KnownVerdictColumns, toKnownVerdict } from './door-verdicts.ts'

/** A part of a look-up. */
export interface Part<Names extends object, Columns, Found> {
  /** The names in a request, as columns of the table `i`. */
  readonly given: Readonly<Record<keyof Names & string, GivenType>>
  readonly select: RawBuilder<unknown>
  /** The joins to the table `i`, which keep each of its rows once. */
  readonly join: RawBuilder<unknown>
  readonly read: (row: Columns) => Found
}

/** Puts two parts together. The joins of the second may use the tables of the first. */
export const both = <N extends object, C, F, M extends object, D, G>(
  one: Part<N, C, F>,
  other: Part<M, D, G>,
): Part<N & M, C & D, F & G> => ({
  given: { ...one.given, ...other.given } as Part<N & M, C & D, F & G>['given'],
  select: sql`${one.select}, ${other.select}`,
  join: sql`${one.join}
  ${other.join}`,
  read: (row) => ({ ...one.read(row), ...other.read(row) }),
})

/** Defines a look-up: one statement for all requests, with one answer for each, in their order. */
export function defineLookup<Names extends object, Columns, Found>({ given, select, join, read }: Part<Names, Columns, Found>) {
  const statement = defineAskedRows<Names>(given).define(
    (asked) => sql`
  select ${select}
  from ${asked} as i
  ${join}
  order by i.position`,
  )
  return async function lookUpAll(db: Db, names: readonly Names[]): Promise<readonly Found[]> {
    const { rows } = await db.executeQuery<Columns>(statement(names))
    return rows.map(read)
  }
}

/** The version and the activation of a request; either may be missing. */
export interface RequestParties {
  readonly version: VersionRow | undefined
  readonly activation: ActivationRow | undefined
}

/** The parties as read from the database. */
export interface ReadParties extends RequestParties {
  readonly activation: ReadActivationRow | undefined
}

/** The names in a request, and the time at which the activation is seen. `activationId` is empty when the request names none. */
export interface PartyNames {
  readonly applicationKey: string
  readonly activationId: string
  readonly at: Date
}

/** The columns of selectActivation in an outer join. */
export type ActivationColumns = { readonly [K in keyof ReadActivationRow]: ReadActivationRow[K] | null }

/** Returns the activation of a row; undefined without one. */
export const toActivation = (row: ActivationColumns): ReadActivationRow | undefined =>
  row.activationId === null ? undefined : (row as ReadActivationRow)

export const PARTIES: Part<PartyNames, ActivationColumns & VersionColumns, { readonly parties: ReadParties }> = {
  given: { applicationKey: 'text', activationId: 'text', at: 'timestamptz' },
  select: sql`${VERSION_COLUMNS}, ${selectActivation(sql`i.at`)}`,
  join: sql`${joinVersion(sql`i."applicationKey"`)}
  left join activation a on a.activation_id = i."activationId"`,
  read: (row) => ({ parties: { version: toVersion(row), activation: toActivation(row) } }),
}

/** The id of an envelope's key, empty without one, and the hash of the value that it uses up, 32 bytes, null without one. */
export interface EnvelopeNames {
  readonly temporaryKeyId: string
  readonly envelopeValue: Uint8Array | null
}

export interface FoundEnvelope {
  /** The key, also when it has expired. */
  readonly temporaryKey: TemporaryKeyRow | undefined
  readonly isEnvelopeUsed: boolean
}

export const ENVELOPE: Part<EnvelopeNames, TemporaryKeyColumns & Pick<FoundEnvelope, 'isEnvelopeUsed'>, FoundEnvelope> = {
  given: { temporaryKeyId: 'text', envelopeValue: 'bytea' },
  select: sql`${TEMPORARY_KEY_COLUMNS},
    ${isValueUsed(sql`i."envelopeValue"`)} as "isEnvelopeUsed"`,
  join: joinTemporaryKey(sql`i."temporaryKeyId"`),
  read: (row) => ({ temporaryKey: toTemporaryKey(row), isEnvelopeUsed: row.isEnvelopeUsed }),
}

/** The id of a token, empty without one, and the hash of the value that its header uses up, 32 bytes, null without one. */
export interface TokenNames {
  readonly tokenId: string
  readonly tokenValue: Uint8Array | null
  readonly at: Date
}

export interface FoundToken {
  readonly token: TokenRow | undefined
  readonly isTokenUsed: boolean
}

export const TOKEN: Part<TokenNames, TokenColumns & Pick<FoundToken, 'isTokenUsed'>, FoundToken> = {
  given: { tokenId: 'text', tokenValue: 'bytea', at: 'timestamptz' },
  select: sql`k.*, ${isValueUsed(sql`i."tokenValue"`)} as "isTokenUsed"`,
  join: joinToken(sql`i."tokenId"`, sql`i.at`),
  read: (row) => ({ token: toToken(row), isTokenUsed: row.isTokenUsed }),
}

/** The hash of the Idempotency-Key with which a bank passes on a request (cloud §12): 32 bytes, null without one. */
export interface VerdictNames {
  readonly verdictKey: Uint8Array | null
}

/** The earlier answer to the same key. */
export interface FoundVerdict {
  readonly known: KnownVerdict | undefined
}

export const VERDICT: Part<VerdictNames, KnownVerdictColumns, FoundVerdict> = {
  given: { verdictKey: 'bytea' },
  select: KNOWN_VERDICT,
  join: joinKnownVerdict(sql`i."verdictKey"`),
  read: (row) => ({ known: toKnownVerdict(row) }),
}

export const findParties = defineLookup(PARTIES)

/** The parties of a request, its temporary key, and its token. */
export interface Proofs extends FoundEnvelope, FoundToken {
  readonly parties: ReadParties
}
export type ProofNames = PartyNames & EnvelopeNames & TokenNames

export const PROOFS = both(PARTIES, both(ENVELOPE, TOKEN))
export const findProofs = defineLookup(PROOFS)

/** The rows for a request that a phone sent to the bank. */
export interface DoorParties extends FoundVerdict {
  readonly parties: ReadParties
}
export type DoorNames = PartyNames & VerdictNames

export const DOOR = both(PARTIES, VERDICT)
export const findDoorParties = defineLookup(DOOR)
