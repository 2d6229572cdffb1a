// Reads and replaces the values of every sealed column in pages of rows, for a new master key or another form, while requests go on.
import { type RawBuilder, sql } from 'kysely'
import { toHex } from '../../lib/bytes.ts'
import type { Db } from '../database/database.ts'
import { KEY_ID_BYTES } from '../../lib/sealed-value.ts'

/** A table with sealed columns. */
export interface SealedTable {
  readonly table: string
  /** The primary key, and further columns for which the values are sealed. */
  readonly key: readonly [string, ...string[]]
  readonly columns: readonly [string, ...string[]]
  /** The table for whose columns the values are sealed, when it is another one. */
  readonly sealedFor?: string
  /** The columns whose values are bound to the owner of the activation that `activation_id` names. */
  readonly boundColumns?: readonly [string, ...string[]]
  /** Further data to which the values are bound, as SQL over the row `t`: names and values of a JSON object. */
  readonly boundTo?: RawBuilder<unknown>
}

/** The owner of a row whose values are bound. */
export interface RowOwner {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  /** For a token: its factors. */
  readonly factors?: string
  /** For an activation before its key exchange: the hash of its code, in hex. */
  readonly codeHash?: string | null
}

/** All tables with sealed columns. A start opens the values of the first, so a wrong key is known before the others are touched. */
export const SEALED_TABLES: readonly SealedTable[] = [
  { table: 'wrapped_key', key: ['purpose'], columns: ['wrapped_key'] },
  { table: 'application_version', key: ['application_key'], columns: ['application_secret'] },
  { table: 'master_key_pair', key: ['master_key_pair_id'], columns: ['private_key'] },
  { table: 'pinning_key_pair', key: ['application_id'], columns: ['private_key'] },
  { table: 'webhook', key: ['webhook_id'], columns: ['secret', 'previous_secret', 'basic_credentials'] },
  { table: 'oidc_provider', key: ['application_id', 'provider_id', 'settings'], columns: ['credentials'] },
  {
    table: 'activation',
    key: ['activation_id'],
    columns: ['activation_qr_code', 'server_private_key', 'master_secret', 'ctr_data'],
    boundColumns: ['activation_qr_code', 'server_private_key', 'master_secret'],
    boundTo: sql`'codeHash', case when t.master_secret is null then encode(t.activation_code_hash, 'hex') end`,
  },
  // After `activation`, because completing an upgrade moves its values there unchanged: a value that moves meanwhile is found in the next pass.
  {
    table: 'activation_upgrade',
    key: ['activation_id'],
    columns: ['server_private_key', 'master_secret', 'ctr_data'],
    sealedFor: 'activation',
    boundColumns: ['server_private_key', 'master_secret'],
  },
  {
    table: 'token',
    key: ['token_id'],
    columns: ['token_secret'],
    boundColumns: ['token_secret'],
    boundTo: sql`'factors', t.factors`,
  },
  { table: 'temporary_key', key: ['temporary_key_id'], columns: ['private_key'] },
  { table: 'operation', key: ['operation_id'], columns: ['proximity_seed'] },
  { table: 'offline_challenge', key: ['challenge_id'], columns: ['terms'] },
  { table: 'push_registration', key: ['activation_id'], columns: ['push_token'], boundColumns: ['push_token'] },
  { table: 'user_claims', key: ['application_id', 'user_id'], columns: ['claims'] },
]

/** The tables with bound values. */
export const OWNED_TABLES = SEALED_TABLES.filter(
  (table): table is SealedTable & Required<Pick<SealedTable, 'boundColumns'>> => table.boundColumns !== undefined,
)

/** One row: the values of its key, and its sealed values in the order of the columns. */
export interface SealedRow {
  readonly key: readonly string[]
  /** Null when no value is bound. */
  readonly owner: RowOwner | null
  readonly values: readonly (Buffer | null)[]
}

/** A row and its new values; a value that stays is the same in both. */
export interface Replacement extends Omit<SealedRow, 'owner'> {
  readonly next: readonly (Uint8Array | null)[]
}

/**
 * Reads up to `limit` rows after `after`, in the order of their primary key. `limit 1` is for the planner: in a plain join PostgreSQL may read the
 * activations from the first one on, for each page.
 */
export async function readSealedRows(
  db: Db,
  { table, key, columns, boundColumns, boundTo }: SealedTable,
  after: readonly string[] | undefined,
  limit: number,
): Promise<readonly SealedRow[]> {
  const keyColumns = sql.join(key.map((name) => sql.ref(`t.${name}`)))
  const owner =
    boundColumns === undefined
      ? sql`null`
      : sql`json_build_object('activationId', o.activation_id, 'applicationId', o.application_id, 'userId', o.user_id${boundTo ? sql`, ${boundTo}` : sql``})`
  const joined =
    boundColumns === undefined
      ? sql``
      : sql` join lateral (select * from activation where activation_id = t.activation_id limit 1) o on true`
  const behind =
    after === undefined ? sql`` : sql`where (${keyColumns}) > (${sql.join(after.map((value) => sql`${value}::text`))})`
  const { rows } = await sql<SealedRow>`
    select array[${keyColumns}] as key, ${owner} as owner,
      array[${sql.join(columns.map((name) => sql`encode(${sql.ref(`t.${name}`)}, 'hex')`))}] as values
    from ${sql.table(table)} t${joined} ${behind} order by ${keyColumns} limit ${limit}`.execute(db)
  return rows.map((row) => ({
    ...row,
    values: row.values.map((value) => (value === null ? null : Buffer.from(String(value), 'hex'))),
  }))
}

/**
 * Replaces the values of rows that have not changed since they were read, each row as a whole, and returns the number of rows. A row that another
 * transaction has locked is skipped, so that no two wait for each other. Under the lock, rows that refer to the row can still be inserted.
 */
export async function replaceSealedRows(
  db: Db,
  { table, key, columns }: SealedTable,
  replacements: readonly Replacement[],
): Promise<number> {
  const hex = (value: Uint8Array | null | undefined): string | null => (value ? toHex(value) : null)
  const arrays = [
    ...key.map((_, i) => replacements.map((row) => row.key[i])),
    ...columns.map((_, i) => replacements.map(({ values }) => hex(values[i]))),
    ...columns.map((_, i) => replacements.map(({ next }) => hex(next[i]))),
  ]
  const names = [...key.map((_, i) => `key${i}`), ...columns.map((_, i) => `from${i}`), ...columns.map((_, i) => `to${i}`)]
  const isSameKey = (one: string, other: string) =>
    sql.join(
      key.map((name, i) => sql`${sql.ref(`${one}.${name}`)} = ${sql.ref(`${other}.${other === 'given' ? `key${i}` : name}`)}`),
      sql` and `,
    )
  const { rows } = await sql`
    with given as (
      select * from unnest(${sql.join(arrays.map((array) => sql`${array}::text[]`))}) as given (${sql.join(names.map((name) => sql.ref(name)))})
    ), held as (
      select ${sql.join(key.map((name) => sql.ref(`t.${name}`)))} from ${sql.table(table)} t join given on ${isSameKey('t', 'given')}
      for no key update of t skip locked
    )
    update ${sql.table(table)} t set ${sql.join(columns.map((name, i) => sql`${sql.ref(name)} = decode(${sql.ref(`given.to${i}`)}, 'hex')`))}
    from given, held
    where ${isSameKey('t', 'given')} and ${isSameKey('t', 'held')}
      and ${sql.join(
        columns.map((name, i) => sql`${sql.ref(`t.${name}`)} is not distinct from decode(${sql.ref(`given.from${i}`)}, 'hex')`),
        sql` and `,
      )}
    returning 1 as replaced`.execute(db)
  return rows.length
}

/** Counts the values of each sealed column by the id of their master key, in hex. Reads every row, so it needs a patient connection. */
export async function countByKey(
  db: Db,
): Promise<readonly { readonly keyId: string; readonly place: string; readonly values: number }[]> {
  const counts = SEALED_TABLES.flatMap(({ table, columns }) =>
    columns.map(
      (column) => sql`
        select encode(substring(${sql.ref(column)} from 2 for ${sql.lit(KEY_ID_BYTES)}), 'hex') as "keyId",
          ${`${table}.${column}`}::text as place, count(*)::int as values
        from ${sql.table(table)} where ${sql.ref(column)} is not null group by 1`,
    ),
  )
  const { rows } = await sql<{ keyId: string; place: string; values: number }>`
    ${sql.join(counts, sql` union all `)} order by 1, 2`.execute(db)
  return rows
}
