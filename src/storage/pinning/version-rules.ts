// Stores which versions of a mobile app are too old, and the texts for its users, in the tables version_rule and version_text (utility §4).
import { type Insertable, sql } from 'kysely'
import { type Db, writesRow } from '../database/database.ts'
import type { MobilePlatform, VersionRuleTable } from '../database/schema.ts'

export interface VersionRuleRow {
  readonly id: number
  readonly platform: MobilePlatform
  /** Null for the rule of all other versions of the operating system. */
  readonly majorOsVersion: number | null
  readonly suggestedVersion: string | null
  readonly requiredVersion: string | null
  readonly messageKey: string | null
}

/** Lists the rules of an application, oldest first. */
export async function listVersionRules(db: Db, applicationId: string): Promise<VersionRuleRow[]> {
  return db
    .selectFrom('version_rule')
    .select(ruleColumns)
    .where('application_id', '=', applicationId)
    .orderBy('version_rule_id')
    .execute()
}

/** Finds a rule of an application. */
export async function findVersionRule(db: Db, applicationId: string, id: number): Promise<VersionRuleRow | undefined> {
  return db
    .selectFrom('version_rule')
    .select(ruleColumns)
    .where('application_id', '=', applicationId)
    .where('version_rule_id', '=', id)
    .executeTakeFirst()
}

/** Stores a rule. Throws a unique violation when there is a rule for the platform and its major version. */
export async function insertVersionRule(db: Db, rule: Insertable<VersionRuleTable>): Promise<VersionRuleRow> {
  return db.insertInto('version_rule').values(rule).returning(ruleColumns).executeTakeFirstOrThrow()
}

/** Deletes a rule of an application; false when there was none. */
export const deleteVersionRule = (db: Db, applicationId: string, id: number): Promise<boolean> =>
  writesRow(db, sql`delete from version_rule where application_id = ${applicationId} and version_rule_id = ${id}`)

export interface VersionTextRow {
  readonly messageKey: string
  /** Two letters. */
  readonly language: string
  readonly text: string
}

/** Lists all texts in order of key and language. */
export async function listVersionTexts(db: Db): Promise<VersionTextRow[]> {
  const { rows } = await sql<VersionTextRow>`select ${TEXT_COLUMNS} from version_text order by message_key, language`.execute(db)
  return rows
}

/** Lists the texts that the rules of an application name. */
export async function listVersionTextsOf(db: Db, applicationId: string): Promise<readonly VersionTextRow[]> {
  const { rows } = await sql<VersionTextRow>`
    select ${TEXT_COLUMNS} from version_text
    where message_key in (select message_key from version_rule where application_id = ${applicationId})`.execute(db)
  return rows
}

/** Finds a text. */
export async function findVersionText(db: Db, messageKey: string, language: string): Promise<VersionTextRow | undefined> {
  const { rows } = await sql<VersionTextRow>`
    select ${TEXT_COLUMNS} from version_text where message_key = ${messageKey} and language = ${language}`.execute(db)
  return rows[0]
}

/** Stores a text, replacing one with the same key and language. */
export async function storeVersionText(db: Db, { messageKey, language, text }: VersionTextRow): Promise<void> {
  await sql`
    insert into version_text (message_key, language, text) values (${messageKey}, ${language}, ${text})
    on conflict (message_key, language) do update set text = excluded.text`.execute(db)
}

/** Deletes a text; false when there was none. */
export const deleteVersionText = (db: Db, messageKey: string, language: string): Promise<boolean> =>
  writesRow(db, sql`delete from version_text where message_key = ${messageKey} and language = ${language}`)

const ruleColumns = [
  'version_rule_id as id',
  'platform',
  'major_os_version as majorOsVersion',
  'suggested_version as suggestedVersion',
  'required_version as requiredVersion',
  'message_key as messageKey',
] as const
const TEXT_COLUMNS = sql`message_key as "messageKey", language, text`
