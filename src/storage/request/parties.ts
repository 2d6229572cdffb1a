// The version and the activation that a device request names.
import { type RawBuilder, sql } from 'kysely'
import { defineAskedRows } from '../database/bulk-statement.ts'
import { type ActivationRow, type ReadActivationRow, selectActivation } from '../activation/find.ts'
import { joinVersion, toVersion, VERSION_COLUMNS, type VersionColumns, type VersionRow } from '../application/version.ts'

/** What a device request names, as it is stored; either may be missing. */
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
export const PARTY_NAMES = { applicationKey: 'text', activationId: 'text', at: 'timestamptz' } as const
export const ASKED = defineAskedRows<PartyNames>(PARTY_NAMES)
/** What such a statement selects. */
export const PARTIES = sql`${VERSION_COLUMNS}, ${selectActivation(sql`i.at`)}`
/** From where: a row for each that is asked for in the table `asked`. */
export const fromAsked = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`from ${asked} as i
  ${joinVersion(sql`i."applicationKey"`)}
  left join activation a on a.activation_id = i."activationId"`
