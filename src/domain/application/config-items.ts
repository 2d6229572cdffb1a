// Reads and stores configuration items: settings that the bank gives to its mobile apps (v4 §9.11). They are not secret. Everybody who has the app
// can read those of its application.
import { utf8 } from '../../lib/bytes.ts'
import { requestRefused } from '../../lib/errors.ts'
import { findUncarried } from '../../lib/json.ts'
import { type ConfigItemRow, type ConfigOwner, listConfigItems, storeConfigItem } from '../../storage/application/config-items.ts'
import type { Db } from '../../storage/database/database.ts'
import type { ConfigScope } from '../../storage/database/schema.ts'
import type { KeyParts } from '../secrets/secrets.ts'

/** Reads the items for an app without an activation: those of its application in the scope APPLICATION. */
export const readApplicationConfig = async (db: Db, applicationId: string): Promise<ConfigItemRow[]> =>
  (await listConfigItems(db, { applicationId, activationId: null })).filter(({ scope }) => scope === 'APPLICATION')

/** Reads the items for an activation: those of its application in both scopes, and its own. */
export const readActivationConfig = async (db: Db, applicationId: string, activationId: string): Promise<ConfigItemRow[]> =>
  mergeConfigItems(
    await listConfigItems(db, { applicationId, activationId: null }),
    await listConfigItems(db, { applicationId, activationId }),
  )

/**
 * Picks one item for each key, sorted by key. The item of the activation wins over that of the application in the scope ACTIVATION, which wins over
 * the scope APPLICATION.
 */
export function mergeConfigItems(
  ofApplication: readonly ConfigItemRow[],
  ofActivation: readonly ConfigItemRow[],
): ConfigItemRow[] {
  const inScope = (wanted: ConfigScope) => ofApplication.filter(({ scope }) => scope === wanted)
  const byKey = new Map(
    [...inScope('APPLICATION'), ...inScope('ACTIVATION'), ...ofActivation].map((item) => [item.key, item] as const),
  )
  return [...byKey.values()].toSorted((one, other) => (one.key < other.key ? -1 : 1))
}

/**
 * Stores an item, and replaces the one with the same key and scope. Throws REQUEST_INVALID for a number that apps would read rounded, for a value
 * of more than 4 KiB, and for more items than an owner may have. It must not run twice at the same time for one owner.
 */
export async function writeConfigItem(
  { db, platform }: Pick<KeyParts, 'db' | 'platform'>,
  owner: ConfigOwner,
  { scope, key, value }: ConfigItemRow,
): Promise<void> {
  const json = serializeForPhones('value', value)
  const existing = await listConfigItems(db, owner)
  const isNew = !existing.some((item) => item.key === key && item.scope === scope)
  if (isNew && existing.length >= ITEMS_MAX)
    throw requestRefused('key', `would be the ${ITEMS_MAX + 1}th item; at most ${ITEMS_MAX} are kept`)
  await storeConfigItem(db, owner, { scope, key, json }, new Date(platform.now()))
}

/**
 * Makes the stored form of a value that phones read. `fieldName` is its member in the request. Throws REQUEST_INVALID for a number that phones
 * would read rounded, and for a value of more than 4 KiB.
 */
export function serializeForPhones(fieldName: string, value: unknown): string {
  const uncarried = findUncarried({ [fieldName]: value })
  if (uncarried !== undefined) throw requestRefused(uncarried.path.join('.'), uncarried.problem)
  const json = JSON.stringify(value)
  if (utf8(json).length > BYTES_MAX) throw requestRefused(fieldName, `must be at most ${BYTES_MAX} bytes of JSON`)
  return json
}

const BYTES_MAX = 4096
const ITEMS_MAX = 50
