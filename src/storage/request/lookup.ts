// Reads the rows that a device request names: the version of its app and its activation; the temporary key of an envelope, the token, and whether
// their values were used before; at a door, also the earlier answer to the same key. A name that the request lacks is looked up as a value that no
// row has. One statement reads everything, and concurrent requests share it.
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

/** One row per request, with the columns of its version and its activation; they are null when there is none. */
export type PartiesRow = { [K in keyof ReadActivationRow]: ReadActivationRow[K] | null } & VersionColumns

/** Converts a row. */
export const toParties = (row: PartiesRow): ReadParties => ({
  version: toVersion(row),
  activation: row.activationId === null ? undefined : (row as ReadActivationRow),
})

/** The columns that a statement for parties is given. */
const PARTY_NAMES = { applicationKey: 'text', activationId: 'text', at: 'timestamptz' } as const
export const ASKED = defineAskedRows<PartyNames>(PARTY_NAMES)
/** The columns that such a statement selects. */
export const PARTIES = sql`${VERSION_COLUMNS}, ${selectActivation(sql`i.at`)}`
/** The joins of such a statement, with one row for each row of the table `asked`. */
export const fromAsked = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`from ${asked} as i
  ${joinVersion(sql`i."applicationKey"`)}
  left join activation a on a.activation_id = i."activationId"`

/** The names in a request. A missing name is an empty text, and a missing hash is null. */
export interface ProofNames extends PartyNames {
  readonly temporaryKeyId: string
  /** The hash of the value that the envelope uses up; 32 bytes. */
  readonly envelopeValue: Uint8Array | null
  readonly tokenId: string
  /** The hash of the value that the token header uses up; 32 bytes. */
  readonly tokenValue: Uint8Array | null
}

/** The parties of a request, its temporary key, and its token. */
export interface Proofs extends FoundEnvelope, FoundToken {
  readonly parties: ReadParties
}

export interface FoundEnvelope {
  /** The key, also when it has expired. */
  readonly temporaryKey: TemporaryKeyRow | undefined
  readonly isEnvelopeUsed: boolean
}

export interface FoundToken {
  readonly token: TokenRow | undefined
  readonly isTokenUsed: boolean
}

/** One row per request. */
export type ProofColumns = PartiesRow & TemporaryKeyColumns & TokenColumns & Pick<Proofs, 'isEnvelopeUsed' | 'isTokenUsed'>

/** Converts a row. */
export const toProofs = (row: ProofColumns): Proofs => ({
  parties: toParties(row),
  temporaryKey: toTemporaryKey(row),
  isEnvelopeUsed: row.isEnvelopeUsed,
  token: toToken(row),
  isTokenUsed: row.isTokenUsed,
})

/** The columns that a statement for proofs is given. */
export const ASKED_PROOFS = defineAskedRows<ProofNames>({
  ...PARTY_NAMES,
  temporaryKeyId: 'text',
  envelopeValue: 'bytea',
  tokenId: 'text',
  tokenValue: 'bytea',
})
/** The columns that such a statement selects. */
export const PROOFS = sql`${PARTIES}, ${TEMPORARY_KEY_COLUMNS}, k.*,
    exists (select from unique_value u where u.value_hash = i."envelopeValue") as "isEnvelopeUsed",
    exists (select from unique_value u where u.value_hash = i."tokenValue") as "isTokenUsed"`
/** The joins of such a statement, with one row for each row of the table `asked`. */
export const fromAskedProofs = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`${fromAsked(asked)}
  ${joinTemporaryKey(sql`i."temporaryKeyId"`)}
  ${joinToken(sql`i."tokenId"`, sql`i.at`)}`

export const FIND_PROOFS = ASKED_PROOFS.define(
  (asked) => sql`
  select ${PROOFS}
  ${fromAskedProofs(asked)}
  order by i.position`,
)

/** The names in a request that a phone sent to the bank (cloud §12), and the hash of its Idempotency-Key: 32 bytes, null without one. */
export interface DoorNames extends PartyNames {
  readonly verdictKey: Uint8Array | null
}

/** The parties of such a request, and the earlier answer to the same key. */
export interface DoorParties {
  readonly parties: ReadParties
  readonly known: KnownVerdict | undefined
}

/** The row that DOOR_COLUMNS selects. */
export type DoorColumns = PartiesRow & KnownVerdictColumns

/** Converts a row. */
export const toDoorParties = (row: DoorColumns): DoorParties => ({
  parties: toParties(row),
  known: toKnownVerdict(row),
})

/** Reads the parties of all requests, in the order of `names`. */
export async function findDoorParties(db: Db, names: readonly DoorNames[]): Promise<readonly DoorParties[]> {
  const { rows } = await db.executeQuery<DoorColumns>(FIND_AT_DOOR(names))
  return rows.map(toDoorParties)
}

/** The columns that a statement for a door's parties is given. */
export const DOOR_NAMES = { ...PARTY_NAMES, verdictKey: 'bytea' } as const
/** The columns and joins of such a statement. */
export const DOOR_COLUMNS = sql`${PARTIES}, ${KNOWN_VERDICT}`
export const fromDoorNames = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`${fromAsked(asked)}
  ${joinKnownVerdict(sql`i."verdictKey"`)}`

const FIND_AT_DOOR = defineAskedRows<DoorNames>(DOOR_NAMES).define(
  (asked) => sql`
  select ${DOOR_COLUMNS}
  ${fromDoorNames(asked)}
  order by i.position`,
)
