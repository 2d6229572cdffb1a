// Lists the columns of the table activation that statements read and write unchanged. A list names each column once, with its type in the database.
// Statements, row types and packed rows are made from the lists.
import { type RawBuilder, type Selectable, sql, type Updateable } from 'kysely'
import type { GivenType } from '../database/bulk-statement.ts'
import type { ActivationTable } from '../database/schema.ts'
import { blockedReasonAt, failedAttemptsAt, type SeenAt, stateAt } from './seen-state.ts'

type Column = keyof ActivationTable

/** Columns with their types in the database. */
export type Columns = Readonly<Partial<Record<Column, GivenType>>>

/** The name of a column in code: row_version becomes rowVersion. */
type InCode<C extends string> = C extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<InCode<Tail>>}` : C
const inCode = <C extends string>(column: C) =>
  column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as InCode<C>

/** The values of columns as they are read, under their names in code. */
export type Read<List extends Columns> = {
  readonly [C in keyof List & Column as InCode<C>]: Selectable<ActivationTable>[C]
}

/** The values of columns as they are written, under their names in code. */
export type Written<List extends Columns> = {
  readonly [C in keyof List & Column as InCode<C>]: Exclude<Updateable<ActivationTable>[C], undefined>
}

/** Maps names in code to types in the database, as `defineGivenRows` takes them. */
export const givenColumns = <List extends Columns>(list: List) =>
  Object.fromEntries(Object.entries(list).map(([column, type]) => [inCode(column), type])) as {
    readonly [C in keyof List & string as InCode<C>]: GivenType
  }

/** Selects columns of an activation; with `at`, the columns that time changes have their value at that time. */
export const selectColumns = (list: Columns, at?: SeenAt, table = 'a'): RawBuilder<unknown> =>
  sql.join(
    Object.keys(list).map((column) => {
      const seen = at && SEEN[column]?.(at)
      const name = inCode(column)
      const read = seen ?? sql.raw(`${table}.${column}`)
      if (name !== column) return sql`${read} as ${sql.ref(name)}`
      return seen ? sql`${seen} as ${sql.raw(name)}` : read
    }),
  )

/** Sets columns to the values of the given row `i`. */
export const setColumns = (list: Columns): RawBuilder<unknown> =>
  sql.join(
    Object.keys(list).map((column) => {
      const name = inCode(column)
      return sql`${sql.raw(column)} = i.${name === column ? sql.raw(name) : sql.ref(name)}`
    }),
  )

/** The names of columns for an insert, and the expressions that read them from a given row. */
export const insertColumns = (list: Columns) => ({
  names: sql.raw(Object.keys(list).join(', ')),
  values: sql.join(Object.keys(list).map((column) => sql.ref(inCode(column)))),
})

/** The ids of an activation and its owner. */
export const OWNER_COLUMNS = { activation_id: 'text', application_id: 'text', user_id: 'text' } as const satisfies Columns

/** Set for an activation whose code another activation asked for (mobile-token §9); null and false for all others. */
export const PARENT_COLUMNS = { parent_activation_id: 'text', replaces_parent: 'boolean' } as const satisfies Columns

/**
 * Columns that the creation sets. `flags` is a comma list. `activation_qr_code` and `server_private_key` are sealed; `activation_qr_code` is null
 * when nobody is to be shown the code.
 */
export const NEW_COLUMNS = {
  activation_code_hash: 'bytea',
  activation_qr_code: 'bytea',
  server_public_key: 'bytea',
  server_private_key: 'bytea',
  max_failed_attempts: 'int',
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  commit_phase: 'text',
  otp_hash: 'bytea',
  flags: 'text',
  ...PARENT_COLUMNS,
} as const satisfies Columns

/** Columns of a live activation that a registration needs. */
export const LIVE_COLUMNS = {
  activation_id: 'text',
  state: 'text',
  row_version: 'int',
  expires_at: 'timestamptz',
} as const satisfies Columns

/** Columns that a status answer needs, for its content and its encryption. `master_secret` and `ctr_data` are sealed. */
export const STATUS_COLUMNS = {
  ...OWNER_COLUMNS,
  state: 'text',
  protocol_version: 'int',
  master_secret: 'bytea',
  ctr_data: 'bytea',
  counter: 'int',
  failed_attempts: 'int',
  max_failed_attempts: 'int',
  expires_at: 'timestamptz',
} as const satisfies Columns

/**
 * Further columns that other requests of a phone need, or that an answer to the bank contains. `server_private_key` is sealed, and present only
 * where it was read. `flags` is a comma list.
 */
export const REQUEST_COLUMNS = {
  algorithm: 'text',
  is_confirmation_pending: 'boolean',
  is_biometry_enabled: 'boolean',
  server_private_key: 'bytea',
  blocks_in_row: 'int',
  highest_version: 'text',
  name: 'text',
  row_version: 'int',
  flags: 'text',
  blocked_reason: 'text',
} as const satisfies Columns

/** Columns that a key exchange sets. `server_private_key` is sealed anew, even when the key pair is still that of the creation. */
export const EXCHANGED_COLUMNS = {
  protocol_version: 'int',
  highest_version: 'text',
  algorithm: 'text',
  is_confirmation_pending: 'boolean',
  is_biometry_enabled: 'boolean',
  server_public_key: 'bytea',
  server_private_key: 'bytea',
  device_public_key: 'bytea',
  activation_fingerprint: 'text',
  master_secret: 'bytea',
  ctr_data: 'bytea',
} as const satisfies Columns

/** Columns that every stored code writes, right or wrong; `ctr_data` is sealed. */
export const CODE_COLUMNS = {
  counter: 'int',
  ctr_data: 'bytea',
  failed_attempts: 'int',
  blocks_in_row: 'int',
  highest_version: 'text',
} as const satisfies Columns

/** Further columns that a wrong code writes when it blocks the activation. */
export const BLOCK_COLUMNS = {
  state: 'text',
  blocked_reason: 'text',
  block_expires_at: 'timestamptz',
} as const satisfies Columns

/** Columns with the phone's description of itself when it is bound. */
export const DEVICE_COLUMNS = {
  name: 'text',
  platform: 'text',
  device_info: 'text',
  extras: 'text',
  external_id: 'text',
} as const satisfies Columns

/**
 * Columns of an activation in a list. `highest_version` is the highest protocol version that the phone has used, null when unknown. `algorithm` is
 * null in protocol 3.
 */
export const LISTED_COLUMNS = {
  activation_id: 'text',
  user_id: 'text',
  name: 'text',
  platform: 'text',
  device_info: 'text',
  protocol_version: 'int',
  highest_version: 'text',
  algorithm: 'text',
  created_at: 'timestamptz',
  last_used_at: 'timestamptz',
} as const satisfies Columns

/** Further columns for the details of one activation. `is_biometry_enabled` is null in protocol 3, where the phone alone decides. */
export const DETAIL_COLUMNS = {
  blocked_reason: 'text',
  flags: 'text',
  is_confirmation_pending: 'boolean',
  is_biometry_enabled: 'boolean',
  failed_attempts: 'int',
  max_failed_attempts: 'int',
  activation_fingerprint: 'text',
  extras: 'text',
  external_id: 'text',
  commit_phase: 'text',
  parent_activation_id: 'text',
  expires_at: 'timestamptz',
} as const satisfies Columns

/** Columns that a commit needs. */
export const COMMIT_COLUMNS = {
  activation_id: 'text',
  user_id: 'text',
  state: 'text',
  row_version: 'int',
  expires_at: 'timestamptz',
  failed_attempts: 'int',
  max_failed_attempts: 'int',
  commit_phase: 'text',
  otp_hash: 'bytea',
} as const satisfies Columns

/** The columns whose value depends on the time, with the expression that reads each. */
const SEEN: Readonly<Record<string, (at: SeenAt) => RawBuilder<unknown>>> = {
  state: stateAt,
  failed_attempts: failedAttemptsAt,
  blocked_reason: blockedReasonAt,
}
