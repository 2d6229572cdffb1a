// Stores the server keys for a few minutes of encryption in the table temporary_key (v3 §7).
import { type RawBuilder, sql } from 'kysely'
import { defineExpiry, defineGivenRows } from '../database/bulk-statement.ts'
import { defineSharedWrite } from '../database/batched-statement.ts'

export interface TemporaryKeyRow {
  readonly temporaryKeyId: string
  readonly applicationKey: string
  /** Null in application scope. */
  readonly activationId: string | null
  /** Sealed. */
  readonly privateKey: Uint8Array
  readonly expiresAt: Date
}

/** The columns of TEMPORARY_KEY_COLUMNS in an outer join. */
export interface TemporaryKeyColumns {
  readonly keyId: string | null
  readonly keyApplicationKey: string | null
  readonly keyActivationId: string | null
  readonly keyPrivate: Buffer | null
  readonly keyExpiresAt: Date | null
}

/** Returns the key of a row; undefined without one. */
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

/** Selects the columns of a key. */
export const TEMPORARY_KEY_COLUMNS = sql`t.temporary_key_id as "keyId", t.application_key as "keyApplicationKey",
    t.activation_id as "keyActivationId", t.private_key as "keyPrivate", t.expires_at as "keyExpiresAt"`

/** Joins the key with an id, which may be missing. `id` is a column. */
export const joinTemporaryKey = (id: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`left join temporary_key t on t.temporary_key_id = ${id}`

const INSERT = defineGivenRows<TemporaryKeyRow>({
  temporaryKeyId: 'text',
  applicationKey: 'text',
  activationId: 'text',
  privateKey: 'bytea',
  expiresAt: 'timestamptz',
}).define(
  (keys) => sql`
  insert into temporary_key (temporary_key_id, application_key, activation_id, private_key, expires_at)
  select i."temporaryKeyId", i."applicationKey", i."activationId", i."privateKey", i."expiresAt" from ${keys} as i
  where i."activationId" is null or exists (select from activation a where a.activation_id = i."activationId" for key share of a)
  returning temporary_key_id`,
)

/**
 * Stores a new key, in a statement that concurrent calls share. False when its activation is gone. When the activation is being erased, the
 * statement waits for the erasure, so that no key is stored after it.
 */
export const insertTemporaryKey = defineSharedWrite({
  statement: INSERT,
  toRow: (key: TemporaryKeyRow) => key,
  idOf: ({ temporaryKeyId }) => temporaryKeyId,
  lockOf: ({ activationId }) => activationId ?? '',
  column: 'temporary_key_id',
})

/** Deletes expired keys. */
export const deleteExpiredTemporaryKeys = defineExpiry('temporary_key', 'temporary_key_id')
