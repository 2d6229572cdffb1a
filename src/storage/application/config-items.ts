// Stores configuration items, which apps read for their application or for one activation, in the table config_item (v4 §9.11).
import { sql } from 'kysely'
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
export async function listConfigItems(db: Db, { applicationId, activationId }: ConfigOwner): Promise<ConfigItemRow[]> {
  const rows = await db
    .selectFrom('config_item')
    .select(['scope', 'key', 'value'])
    .where('application_id', '=', applicationId)
    .where('activation_id', activationId === null ? 'is' : '=', activationId)
    .orderBy('key')
    .orderBy('scope')
    .execute()
  return rows.map((row) => ({ ...row, value: readJson(row.value) })).filter(({ value }) => value !== undefined)
}

/** Stores an item, replacing one with the same scope and key. */
export async function storeConfigItem(
  db: Db,
  { applicationId, activationId }: ConfigOwner,
  { scope, key, json }: Pick<ConfigItemRow, 'scope' | 'key'> & { readonly json: string },
  at: Date,
): Promise<void> {
  await db
    .insertInto('config_item')
    .values({ application_id: applicationId, activation_id: activationId, scope, key, value: json, updated_at: at })
    .onConflict((conflict) => conflict.constraint('config_item_key').doUpdateSet({ value: json, updated_at: at }))
    .execute()
}

/** Deletes an item; false when there was none. */
export const deleteConfigItem = (
  db: Db,
  { applicationId, activationId }: ConfigOwner,
  { scope, key }: Pick<ConfigItemRow, 'scope' | 'key'>,
): Promise<boolean> =>
  writesRow(
    db,
    sql`delete from config_item
      where application_id = ${applicationId} and activation_id ${activationId === null ? sql`is null` : sql`= ${activationId}`}
        and scope = ${scope} and key = ${key}`,
  )
