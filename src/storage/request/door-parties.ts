// What a door reads of a request that a phone sent to the bank: its parties, and what was answered to the same key before (cloud §12). One
// statement for one request and for all that come at the same time.
import { type RawBuilder, sql } from 'kysely'
import { defineAskedRows } from '../database/bulk-statement.ts'
import type { Db } from '../database/database.ts'
import { joinKnownVerdict, KNOWN_VERDICT, type KnownVerdict, type KnownVerdictColumns, toKnownVerdict } from './door-verdicts.ts'
import { fromAsked, PARTIES, type PartiesRow, PARTY_NAMES, type PartyNames, type ReadParties, toParties } from './lookup.ts'

/** The names in a request, and the key that it may be repeated under: 32 bytes, null without one. */
export interface DoorNames extends PartyNames {
  readonly verdictKey: Uint8Array | null
}

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
  const { rows } = await db.executeQuery<DoorColumns>(FIND(names))
  return rows.map(toDoorParties)
}

/** What a statement that finds parties for a door is given. */
export const DOOR_NAMES = { ...PARTY_NAMES, verdictKey: 'bytea' } as const
/** What such a statement selects, and from where. */
export const DOOR_COLUMNS = sql`${PARTIES}, ${KNOWN_VERDICT}`
export const fromDoorNames = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`${fromAsked(asked)}
  ${joinKnownVerdict(sql`i."verdictKey"`)}`

const FIND = defineAskedRows<DoorNames>(DOOR_NAMES).define(
  (asked) => sql`
  select ${DOOR_COLUMNS}
  ${fromDoorNames(asked)}
  order by i.position`,
)
