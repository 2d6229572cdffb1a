// The table temporary_key: server keys for a few minutes of encryption (v3 §7).
import { type RawBuilder, sql } from 'kysely'
import type { VersionRow } from './version.ts'
import type { Db } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import { defineSharedTrip, defineSharedWrite } from '../database/batched-statement.ts'

export interface TemporaryKeyRow {
  readonly temporaryKeyId: string
  readonly applicationKey: string
  /** Null in application scope. */
  readonly activationId: string | null
  /** sealed */
  readonly privateKey: Uint8Array
  readonly expiresAt: Date
}

/** TEMPORARY_KEY_COLUMNS, outer joined. */
export interface TemporaryKeyColumns {
  readonly keyId: string | null
  readonly keyApplicationKey: string | null
  readonly keyActivationId: string | null
  readonly keyPrivate: Buffer | null
  readonly keyExpiresAt: Date | null
}

/** The key of a row, if it has one. */
export function toTemporaryKey(row: TemporaryKeyColumns): TemporaryKeyRow | undefined {
  const { keyId, keyApplicationKey, keyActivationId, keyPrivate, keyExpiresAt } = row
  if (keyId === null || keyApplicationKey === null || keyPrivate === null || keyExpiresAt === null) return undefined
  return {
    temporaryKeyId: keyId,
    applicationKey: keyApplicationKey,
    activationId: keyActivationId,
    privateKey: keyPrivate,
    expiresAt: keyExpiresAt,
  }
}

/** What is selected of a key. */
export const TEMPORARY_KEY_COLUMNS = sql`t.temporary_key_id as "keyId", t.application_key as "keyApplicationKey",
    t.activation_id as "keyActivationId", t.private_key as "keyPrivate", t.expires_at as "keyExpiresAt"`

/** Where these columns come from: the key of an id, which may be missing. `id`: a column. */
export const joinTemporaryKey = (id: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`left join temporary_key t on t.temporary_key_id = ${id}`

/** Stores a new key, in a statement that is shared with others. */
export const insertTemporaryKey = defineSharedTrip(async (db, keys: readonly TemporaryKeyRow[]): Promise<readonly void[]> => {
  await db.executeQuery(INSERT(keys))
  return keys.map(() => undefined)
})

/** A key of an application with what was read of it. */
export interface KeyOfApplication {
  readonly key: TemporaryKeyRow
  readonly version: VersionRow
  readonly masterKeyPairIds: readonly string[]
}

/** Deletes up to `limit` expired keys. */
export async function deleteExpiredTemporaryKeys(db: Db, at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from temporary_key where temporary_key_id in (
      select temporary_key_id from temporary_key where expires_at <= ${at} order by expires_at limit ${limit}
      for update skip locked
    ) returning temporary_key_id`.execute(db)
  return rows.length
}

const KEY_COLUMNS = {
  temporaryKeyId: 'text',
  applicationKey: 'text',
  activationId: 'text',
  privateKey: 'bytea',
  expiresAt: 'timestamptz',
} as const

const insertFrom = (rows: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  insert into temporary_key (temporary_key_id, application_key, activation_id, private_key, expires_at)
  select i."temporaryKeyId", i."applicationKey", i."activationId", i."privateKey", i."expiresAt" from ${rows}`

const INSERT = defineGivenRows<TemporaryKeyRow>(KEY_COLUMNS).define((keys) => insertFrom(sql`${keys} as i`))

const INSERT_OF_APPLICATION = defineGivenRows<
  TemporaryKeyRow & {
    readonly applicationId: string
    readonly applicationSecret: Uint8Array
    readonly algorithms: string
    readonly isProtocol3Admitted: boolean
    /** Separated by commas. */
    readonly masterKeyPairIds: string
  }
>({
  ...KEY_COLUMNS,
  applicationId: 'text',
  applicationSecret: 'bytea',
  algorithms: 'text',
  isProtocol3Admitted: 'boolean',
  masterKeyPairIds: 'text',
}).define(
  (keys) => sql`${insertFrom(sql`${keys} as i
  join application_version v on v.application_key = i."applicationKey"
  join application p on p.application_id = v.application_id
  where v.is_supported and v.application_id = i."applicationId" and v.application_secret = i."applicationSecret"
    and p.algorithms = i.algorithms and p.is_protocol_3_admitted = i."isProtocol3Admitted"
    and (select count(*) from master_key_pair m
      where m.master_key_pair_id = any(string_to_array(i."masterKeyPairIds", ',')) and m.application_id = v.application_id)
      = cardinality(string_to_array(i."masterKeyPairIds", ','))`)}
  returning temporary_key_id`,
)

/**
 * Stores a new key of an application, if its version is the one that was read, still supported, and the master keys are there. False when
 * not: the caller reads and decides again.
 */
export const insertTemporaryKeyOfApplication = defineSharedWrite({
  statement: INSERT_OF_APPLICATION,
  toRow: ({ key, version, masterKeyPairIds }: KeyOfApplication) => ({
    ...key,
    applicationId: version.applicationId,
    applicationSecret: version.applicationSecret,
    algorithms: version.algorithms.join(','),
    isProtocol3Admitted: version.isProtocol3Admitted,
    masterKeyPairIds: masterKeyPairIds.join(','),
  }),
  idOf: ({ key }) => key.temporaryKeyId,
  column: 'temporary_key_id',
})
