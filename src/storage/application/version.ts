// Reads the application version that a device request names, and checks whether it is still taken, for statements of constant text.
import { type RawBuilder, sql } from 'kysely'
import { toList } from '../database/columns.ts'

/** The application version that a request names, with its application. */
export interface VersionRow {
  readonly applicationKey: string
  readonly name: string
  readonly applicationId: string
  /** Sealed. */
  readonly applicationSecret: Buffer
  readonly isSupported: boolean
  /** Text of the lowest protocol version that the application takes; null: any. */
  readonly minimumVersion: string | null
  /** The algorithms of 4.0 that the application admits; empty: all. */
  readonly algorithms: readonly string[]
  readonly isProtocol3Admitted: boolean
  /** Roles of the application. */
  readonly roles: readonly string[]
}

/** The columns of VERSION_COLUMNS in an outer join. */
export interface VersionColumns {
  readonly versionKey: string | null
  readonly versionName: string | null
  readonly versionApplicationId: string | null
  readonly versionSecret: Buffer | null
  readonly versionIsSupported: boolean | null
  readonly versionMinimum: string | null
  readonly versionAlgorithms: string | null
  readonly versionAdmits3: boolean | null
  readonly roles: string | null
}

/** Returns the version of a row; undefined without one. */
export function toVersion(row: VersionColumns): VersionRow | undefined {
  const { versionKey: applicationKey, versionName: name, versionApplicationId: applicationId, versionSecret } = row
  if (applicationKey === null || name === null || applicationId === null || versionSecret === null) return undefined
  return {
    applicationKey,
    name,
    applicationId,
    applicationSecret: versionSecret,
    isSupported: row.versionIsSupported === true,
    minimumVersion: row.versionMinimum,
    algorithms: toList(row.versionAlgorithms ?? ''),
    isProtocol3Admitted: row.versionAdmits3 === true,
    roles: toList(row.roles ?? ''),
  }
}

/** Selects the columns of an application version. */
export const VERSION_COLUMNS = sql`v.application_key as "versionKey", v.name as "versionName", v.application_id as "versionApplicationId",
  v.application_secret as "versionSecret", v.is_supported as "versionIsSupported", p.minimum_version as "versionMinimum",
  p.algorithms as "versionAlgorithms", p.is_protocol_3_admitted as "versionAdmits3", p.roles`

/** Joins the version with an application key, which may be missing. `key` is a column. */
export const joinVersion = (key: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`left join application_version v on v.application_key = ${key}
  left join application p on p.application_id = v.application_id`

/**
 * True when the version of an application key is switched on and its application takes a protocol version; both are columns. `besides` is a further
 * condition on the version `v` and its application `p`.
 */
export const isTaken = (
  key: RawBuilder<unknown>,
  version: RawBuilder<unknown>,
  besides: RawBuilder<unknown>,
): RawBuilder<boolean> => sql`exists (
        select from application_version v join application p on p.application_id = v.application_id
        where v.application_key = ${key} and v.is_supported
          and (p.minimum_version is null or p.minimum_version collate "C" <= ${version}) and (${besides}))`
