// What a device request names, as it is stored: the version of its app and its activation; where it has an envelope or a token, the temporary key,
// the token, and whether their values were used before; at a door, what was answered to the same key before. What it does not name is asked for
// under a name that nobody has. One statement reads it, for one request and for all that come at the same time.
import { type RawBuilder, sql } from 'kysely'
import { defineAskedRows } from '../database/bulk-statement.ts'
import type { Db } from '../database/database.ts'
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

/** The version and the activation; either may be missing. */
export interface RequestParties {
  readonly version: VersionRow | undefined
  readonly activation: ActivationRow | undefined
}

/** The same as it was read. */
export interface ReadParties extends RequestParties {
  readonly activation: ReadActivationRow | undefined
}

/** The names in a request, and the time at which the activation is seen. `activationId` is empty where a request names none. */
export interface PartyNames {
  readonly applicationKey: string
  readonly activationId: string
  readonly at: Date
}

/** One row for each of the names, with the columns of its version and its activation: null where there is none. */
export type PartiesRow = { [K in keyof ReadActivationRow]: ReadActivationRow[K] | null } & VersionColumns

/** Splits a row into its parties. */
export const toParties = (row: PartiesRow): ReadParties => ({
  version: toVersion(row),
  activation: row.activationId === null ? undefined : (row as ReadActivationRow),
})

/** What a statement that finds parties is given. */
const PARTY_NAMES = { applicationKey: 'text', activationId: 'text', at: 'timestamptz' } as const
export const ASKED = defineAskedRows<PartyNames>(PARTY_NAMES)
/** What such a statement selects. */
export const PARTIES = sql`${VERSION_COLUMNS}, ${selectActivation(sql`i.at`)}`
/** From where: a row for each that is asked for in the table `asked`. */
export const fromAsked = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`from ${asked} as i
  ${joinVersion(sql`i."applicationKey"`)}
  left join activation a on a.activation_id = i."activationId"`

/** The names in a request. A text is empty, and a hash null, where it names none. */
export interface ProofNames extends PartyNames {
  readonly temporaryKeyId: string
  /** Of the envelope; 32 bytes. */
  readonly envelopeValue: Uint8Array | null
  readonly tokenId: string
  /** Of the token header; 32 bytes. */
  readonly tokenValue: Uint8Array | null
}

/** The parties, and what the envelope and the token of a request name. */
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

/** The names in a request that a phone sent to the bank, and the key that it may be repeated under (cloud §12): 32 bytes, null without one. */
export interface DoorNames extends PartyNames {
  readonly verdictKey: Uint8Array | null
}

/** What a door reads of such a request: its parties, and what was answered to the same key before. */
export interface DoorParties {
  readonly parties: ReadParties
  readonly known: KnownVerdict | undefined
}

/** DOOR_COLUMNS. */
export type DoorColumns = PartiesRow & KnownVerdictColumns

/** Splits a row into what it tells. */
export const toDoorParties = (row: DoorColumns): DoorParties => ({
  parties: toParties(row),
  known: toKnownVerdict(row),
})

/** Reads all of them, in their order. */
export async function findDoorParties(db: Db, names: readonly DoorNames[]): Promise<readonly DoorParties[]> {
  const { rows } = await db.executeQuery<DoorColumns>(FIND_AT_DOOR(names))
  return rows.map(toDoorParties)
}

/** What a statement that finds parties for a door is given. */
export const DOOR_NAMES = { ...PARTY_NAMES, verdictKey: 'bytea' } as const
/** What such a statement selects, and from where. */
export const DOOR_COLUMNS = sql`${PARTIES}, ${KNOWN_VERDICT}`
export const fromDoorNames = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`${fromAsked(asked)}
  ${joinKnownVerdict(sql`i."verdictKey"`)}`

const FIND_AT_DOOR = defineAskedRows<DoorNames>(DOOR_NAMES).define(
  (asked) => sql`
  select ${DOOR_COLUMNS}
  ${fromDoorNames(asked)}
  order by i.position`,
)
