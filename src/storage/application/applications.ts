// Stores and finds applications, their versions and their master key pairs (tables application, application_version, master_key_pair).
import { CompiledQuery, type Insertable, sql } from 'kysely'
import { isJsonObject } from '../../lib/json.ts'
import { readJson, toList } from '../database/columns.ts'
import { toConstantText } from '../database/bulk-statement.ts'
import { type Db, type Tx, writesRow } from '../database/database.ts'
import type { ApplicationVersionTable, MasterKeyAlgorithm, MasterKeyPairTable } from '../database/schema.ts'

/** The applications to which a phone may hand over its user, and the effect on its own activation (mobile-token §9). */
export interface Transfer {
  /** Ids of applications. */
  readonly targets: readonly string[]
  /** MOVE: the phone's own activation is removed when the new one becomes ACTIVE. */
  readonly type: 'SPAWN' | 'MOVE'
  /** Flags of the new activation. */
  readonly initialFlags?: readonly string[]
}

export interface ApplicationRow {
  readonly applicationId: string
  readonly isDefault: boolean
  /** Factor combinations that open the vault. */
  readonly vaultFactors: readonly string[]
  /** A part of the answers of activation/status. */
  readonly customObject: Readonly<Record<string, unknown>> | null
  /** For people to read; null when none was given. */
  readonly displayName: string | null
  /** Algorithms of protocol 4.0 that the application admits; empty: all. */
  readonly algorithms: readonly string[]
  readonly isProtocol3Admitted: boolean
  readonly roles: readonly string[]
  /** Text of the lowest protocol version that the application takes; null: any. */
  readonly minimumVersion: string | null
  /** True: a user may have several phones. */
  readonly isMultiDevice: boolean
  readonly transfers: readonly Transfer[]
}

/** Finds an application. */
export async function findApplication(db: Db, applicationId: string): Promise<ApplicationRow | undefined> {
  const row = await db.selectFrom('application').select(COLUMNS).where('application_id', '=', applicationId).executeTakeFirst()
  return row && toApplication(row)
}

/** Finds the default application, on which an administrator acts. */
export async function findDefaultApplicationId(db: Db): Promise<string | undefined> {
  const row = await db.selectFrom('application').select('application_id').where('is_default', '=', true).executeTakeFirst()
  return row?.application_id
}

/** Lists all applications, oldest first. */
export async function listApplications(db: Db): Promise<ApplicationRow[]> {
  const rows = await db.selectFrom('application').select(COLUMNS).orderBy('created_at').orderBy('application_id').execute()
  return rows.map(toApplication)
}

/** Inserts an application; the first one becomes the default. False when the id is taken. */
export async function insertApplication(tx: Tx, applicationId: string, displayName: string | null, at: Date): Promise<boolean> {
  const any = await tx.selectFrom('application').select('application_id').limit(1).executeTakeFirst()
  const insert = async (isDefault: boolean): Promise<boolean> => {
    const inserted = await tx
      .insertInto('application')
      .values({ application_id: applicationId, is_default: isDefault, display_name: displayName, created_at: at })
      .onConflict((conflict) => conflict.doNothing())
      .returning('application_id')
      .executeTakeFirst()
    return inserted !== undefined
  }
  // When two first applications are inserted at once, the unique index of the default refuses one of them, which is then inserted without the mark.
  return (any === undefined && (await insert(true))) || insert(false)
}

/** Moves the default mark to this application. */
export async function markDefaultApplication(tx: Tx, applicationId: string): Promise<void> {
  // Locks all rows in one order: of two requests that move the mark at once, one waits, instead of violating the unique index.
  await tx.selectFrom('application').select('application_id').orderBy('application_id').forNoKeyUpdate().execute()
  await tx.updateTable('application').set({ is_default: false }).where('is_default', '=', true).execute()
  await tx.updateTable('application').set({ is_default: true }).where('application_id', '=', applicationId).execute()
}

/** Settings that an administrator changes; an undefined member keeps its value. */
interface ApplicationSettings {
  readonly vaultFactors?: readonly string[] | undefined
  /** JSON object; null removes it. */
  readonly customObject?: string | null | undefined
  /** Algorithms of protocol 4.0; empty: all. */
  readonly algorithms?: readonly string[] | undefined
  readonly isProtocol3Admitted?: boolean | undefined
  readonly roles?: readonly string[] | undefined
  /** Text of the lowest protocol version that is allowed; null: any. */
  readonly minimumVersion?: string | null | undefined
  readonly transfers?: readonly Transfer[] | undefined
}

/** Changes the settings of an application. */
export async function setApplicationSettings(db: Db, applicationId: string, settings: ApplicationSettings): Promise<void> {
  const { vaultFactors, customObject, algorithms, isProtocol3Admitted, roles, minimumVersion, transfers } = settings
  const set = {
    ...(vaultFactors !== undefined && { vault_factors: vaultFactors.join(',') }),
    ...(customObject !== undefined && { custom_object: customObject }),
    ...(algorithms !== undefined && { algorithms: algorithms.join(',') }),
    ...(isProtocol3Admitted !== undefined && { is_protocol_3_admitted: isProtocol3Admitted }),
    ...(roles !== undefined && { roles: roles.join(',') }),
    ...(minimumVersion !== undefined && { minimum_version: minimumVersion }),
    ...(transfers !== undefined && { transfers: JSON.stringify(transfers) }),
  }
  if (Object.keys(set).length === 0) return
  await db.updateTable('application').set(set).where('application_id', '=', applicationId).execute()
}

/**
 * A text that changes whenever a row of `application` is written, because every row version has the id of its transaction. A request reads it in
 * its statement, to find out whether remembered applications are current (docs/decisions/0011-remembered-applications.md).
 */
export const APPLICATIONS_STATE = sql`(select coalesce(sum(hashtextextended(application_id, xmin::text::bigint)), 0)::text from application)`

export interface CustomObjects {
  /** The text of APPLICATIONS_STATE at the same moment. */
  readonly state: string
  /** In order of id; custom objects are JSON text. */
  readonly applications: readonly { readonly applicationId: string; readonly customObjectText: string | null }[]
}

/** Lists the custom objects of all applications. */
export async function listCustomObjects(db: Db): Promise<CustomObjects> {
  const { rows } = await db.executeQuery<{ state: string; applicationId: string; customObjectText: string | null }>(
    LIST_CUSTOM_OBJECTS,
  )
  return {
    state: rows[0]?.state ?? '0',
    applications: rows.map(({ applicationId, customObjectText }) => ({
      applicationId,
      customObjectText: toCustomObject(customObjectText) && customObjectText,
    })),
  }
}

/** Parses a custom object. Null without a text, and when the stored text was altered and is no JSON object. */
export function toCustomObject(text: string | null): Readonly<Record<string, unknown>> | null {
  const value = text === null ? null : readJson(text)
  return isJsonObject(value) ? value : null
}

const LIST_CUSTOM_OBJECTS = CompiledQuery.raw(
  toConstantText(sql`
  select ${APPLICATIONS_STATE} as state, application_id as "applicationId", custom_object as "customObjectText"
  from application order by application_id`),
)

/** Finds the factor combinations that open the vault for the application of this key; empty for an unknown key. */
export async function findVaultFactors(db: Db, applicationKey: string): Promise<readonly string[]> {
  const row = await db
    .selectFrom('application_version')
    .innerJoin('application', 'application.application_id', 'application_version.application_id')
    .select('application.vault_factors as vaultFactors')
    .where('application_version.application_key', '=', applicationKey)
    .executeTakeFirst()
  return toList(row?.vaultFactors ?? '')
}

/** Finds the application of a version that is switched on; undefined for any other key. */
export async function findApplicationOfVersion(
  db: Db,
  applicationKey: string,
): Promise<Pick<ApplicationRow, 'applicationId' | 'algorithms' | 'isProtocol3Admitted'> | undefined> {
  const row = await db
    .selectFrom('application_version')
    .innerJoin('application', 'application.application_id', 'application_version.application_id')
    .select([
      'application.application_id as applicationId',
      'application.algorithms',
      'application.is_protocol_3_admitted as isProtocol3Admitted',
    ])
    .where('application_version.application_key', '=', applicationKey)
    .where('application_version.is_supported', '=', true)
    .executeTakeFirst()
  return row && { ...row, algorithms: toList(row.algorithms) }
}

export interface ApplicationVersionRow {
  readonly name: string
  readonly applicationKey: string
  /** Sealed. */
  readonly applicationSecret: Buffer
  readonly isSupported: boolean
}

/** Lists the versions of an application, oldest first. */
export async function listApplicationVersions(db: Db, applicationId: string): Promise<ApplicationVersionRow[]> {
  return db
    .selectFrom('application_version')
    .select([
      'name',
      'application_key as applicationKey',
      'application_secret as applicationSecret',
      'is_supported as isSupported',
    ])
    .where('application_id', '=', applicationId)
    .orderBy('created_at')
    .orderBy('name')
    .execute()
}

/** Maps each of these keys to its application; an unknown key is missing. */
export async function findVersionOwners(db: Db, applicationKeys: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ key: string; applicationId: string }>`
    select application_key as key, application_id as "applicationId" from application_version
    where application_key = any(${[...applicationKeys]}::text[])`.execute(db)
  return new Map(rows.map(({ key, applicationId }) => [key, applicationId]))
}

/** Inserts a version; false when the application has one of that name. */
export async function insertApplicationVersion(db: Db, version: Insertable<ApplicationVersionTable>): Promise<boolean> {
  const inserted = await db
    .insertInto('application_version')
    .values(version)
    .onConflict((conflict) => conflict.columns(['application_id', 'name']).doNothing())
    .returning('name')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Switches a version on or off; false when there is none of that name. */
export const setVersionSupported = (db: Db, applicationId: string, name: string, isSupported: boolean): Promise<boolean> =>
  writesRow(
    db,
    sql`update application_version set is_supported = ${isSupported}
      where application_id = ${applicationId} and name = ${name}`,
  )

export interface MasterKeyPairRow {
  readonly masterKeyPairId: string
  readonly algorithm: MasterKeyAlgorithm
  readonly publicKey: Buffer
  /** Sealed. */
  readonly privateKey: Buffer
}

/** Finds the master key pairs of an application, at most one per algorithm. */
export async function findMasterKeyPairs(
  db: Db,
  applicationId: string,
  algorithms: readonly MasterKeyAlgorithm[],
): Promise<MasterKeyPairRow[]> {
  const { rows } = await db.executeQuery<MasterKeyPairRow>(CompiledQuery.raw(FIND_MASTER_KEY_PAIRS, [applicationId, algorithms]))
  return rows
}

/** Inserts a master key pair with a sealed private key, unless the application has one of that algorithm. */
export async function insertMasterKeyPair(db: Db, pair: Insertable<MasterKeyPairTable>): Promise<void> {
  await db
    .insertInto('master_key_pair')
    .values(pair)
    .onConflict((conflict) => conflict.columns(['application_id', 'algorithm']).doNothing())
    .execute()
}

const COLUMNS = [
  'application_id as applicationId',
  'is_default as isDefault',
  'vault_factors as vaultFactors',
  'custom_object as customObject',
  'display_name as displayName',
  'algorithms',
  'is_protocol_3_admitted as isProtocol3Admitted',
  'roles',
  'minimum_version as minimumVersion',
  'is_multi_device as isMultiDevice',
  'transfers',
] as const

// A constant text, because each request for a temporary key runs it: composing it takes 15 µs more, and 60 µs until V8 has optimized that.
const FIND_MASTER_KEY_PAIRS = `
  select master_key_pair_id as "masterKeyPairId", algorithm, public_key as "publicKey", private_key as "privateKey" from master_key_pair
  where application_id = $1 and algorithm = any($2::text[]) order by algorithm`

interface StoredLists {
  readonly vaultFactors: string
  readonly customObject: string | null
  readonly algorithms: string
  readonly roles: string
  readonly transfers: string
}

/** Converts a row. Stored transfers that were altered and are invalid count as none, so that the application can still be read. */
const toApplication = <Row extends StoredLists>(row: Row) => {
  const transfers = readJson(row.transfers)
  return {
    ...row,
    vaultFactors: toList(row.vaultFactors),
    customObject: toCustomObject(row.customObject),
    algorithms: toList(row.algorithms),
    roles: toList(row.roles),
    transfers: Array.isArray(transfers) && transfers.every(isTransfer) ? transfers : [],
  }
}

const isTransfer = (value: unknown): value is Transfer =>
  isJsonObject(value) && Array.isArray(value['targets']) && (value['type'] === 'SPAWN' || value['type'] === 'MOVE')
