// Stores configuration items, which apps read for their application or for one activation, in the table config_item (v4 §9.11).
import { type RawBuilder, sql } from 'kysely'
import { readJson } from '../database/columns.ts'
import { type Db, writesRow } from '../database/database.ts'
import type { ConfigScope } from '../database/schema.ts'

/** The owner of items: the application, or with `activationId` this one activation. */
export interface ConfigOwner {
  readonly applicationId: string
  readonly activationId: string | null
}

export interface ConfigItemRow {
  readonly scope: ConfigScope
  readonly key: string
  /** Any JSON. */
  readonly value: unknown
}

/** Lists the items of an owner in order of key and scope. Items whose stored value was altered and is no JSON are left out. */
export async function listConfigItems(db: Db, owner: ConfigOwner): Promise<ConfigItemRow[]> {
  const { rows } = await sql<Pick<ConfigItemRow, 'scope' | 'key'> & { readonly value: string }>`
    select scope, key, value from config_item where ${isOf(owner)} order by key, scope`.execute(db)
  return rows.map((row) => ({ ...row, value: readJson(row.value) })).filter(({ value }) => value !== undefined)
}

/** Stores an item, replacing one with the same scope and key. */
export async function storeConfigItem(
  db: Db,
  { applicationId, activationId }: ConfigOwner,
  { scope, key, json }: Pick<ConfigItemRow, 'scope' | 'key'> & { readonly json: string },
  at: Date,
): Promise<void> {
  await sql`
    insert into config_item (application_id, activation_id, scope, key, value, updated_at)
    values (${applicationId}, ${activationId}, ${scope}, ${key}, ${json}, ${at})
    on conflict on constraint config_item_key do update set value = excluded.value, updated_at = excluded.updated_at`.execute(db)
}

/** Deletes an item; false when there was none. */
export const deleteConfigItem = (
  db: Db,
  owner: ConfigOwner,
  { scope, key }: Pick<ConfigItemRow, 'scope' | 'key'>,
): Promise<boolean> => writesRow(db, sql`delete from config_item where ${isOf(owner)} and scope = ${scope} and key = ${key}`)

const isOf = ({ applicationId, activationId }: ConfigOwner): RawBuilder<boolean> =>
  sql`application_id = ${applicationId} and activation_id ${activationId === null ? sql`is null` : sql`= ${activationId}`}`
