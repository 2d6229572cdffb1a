// Stores templates in the tables template and template_revision: a revision never changes, and a template points to its newest one (cloud §4).
import { sql } from 'kysely'
import { type Db, type Tx, writesRow } from '../database/database.ts'
import type { TemplateTable } from '../database/schema.ts'

/** The content of a revision. */
export interface TemplateContent {
  readonly templateName: string
  readonly operationType: string
  readonly dataTemplate: string
  /** Comma list. */
  readonly signatureTypes: string
  readonly maxFailureCount: number
  readonly expirationSeconds: number
  readonly riskFlags: string
  readonly isProximityCheckEnabled: boolean
  readonly activationFlag: string | null
  /** JSON object, keyed by language. */
  readonly texts: string
}

export type TemplateSource = TemplateTable['source']

/** A template with its newest revision. */
export interface TemplateRow extends TemplateContent {
  readonly templateRevisionId: string
  /** The kind of writer that wrote the template last. */
  readonly source: TemplateSource
}

/** Finds a template by its name. */
export async function findTemplate(db: Db, templateName: string): Promise<TemplateRow | undefined> {
  return selectTemplates(db).where('template.template_name', '=', templateName).executeTakeFirst()
}

/** Lists all templates in order of name. */
export async function listTemplates(db: Db): Promise<TemplateRow[]> {
  return selectTemplates(db).orderBy('template.template_name').execute()
}

/** True when there was ever a template, even if it was deleted. */
export async function hasTemplateRevisions(db: Db): Promise<boolean> {
  const row = await db.selectFrom('template_revision').select('template_revision_id').limit(1).executeTakeFirst()
  return row !== undefined
}

/** Returns the texts of revisions (JSON by language), by revision id. */
export async function findTemplateTexts(db: Db, templateRevisionIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ id: string; texts: string }>`
    select template_revision_id as id, texts from template_revision
    where template_revision_id = any(${[...templateRevisionIds]}::text[])`.execute(db)
  return new Map(rows.map(({ id, texts }) => [id, texts]))
}

/**
 * Makes the caller the only writer of templates until its transaction ends; readers do not wait. Processes that start at once apply the same file
 * one after the other.
 */
export async function lockTemplates(tx: Tx): Promise<void> {
  await sql`lock table template in share row exclusive mode`.execute(tx)
}

export interface TemplateWrite {
  readonly source: TemplateSource
  /** The id for a new revision, if one is made. */
  readonly templateRevisionId: string
  readonly at: Date
  /** Writes only when no template has that name, or only when one has. */
  readonly onlyIf?: 'absent' | 'present'
}

/**
 * Inserts a revision and makes it the template's newest. A content equal to the newest revision makes no new one, but the source is stored. Returns
 * `refused`, with nothing written, when `onlyIf` does not hold.
 */
export async function putTemplate(
  tx: Tx,
  content: TemplateContent,
  write: TemplateWrite,
): Promise<'created' | 'changed' | 'unchanged' | 'refused'> {
  await lockTemplates(tx)
  const current = await findTemplate(tx, content.templateName)
  if (write.onlyIf === (current === undefined ? 'present' : 'absent')) return 'refused'
  const isSame = current !== undefined && isSameContent(current, content)
  if (isSame && current.source === write.source) return 'unchanged'
  const templateRevisionId = isSame ? current.templateRevisionId : await insertRevision(tx, content, write)
  await tx
    .insertInto('template')
    .values({ template_name: content.templateName, template_revision_id: templateRevisionId, source: write.source })
    .onConflict((conflict) =>
      conflict.column('template_name').doUpdateSet({ template_revision_id: templateRevisionId, source: write.source }),
    )
    .execute()
  if (current === undefined) return 'created'
  return isSame ? 'unchanged' : 'changed'
}

/** Deletes a template; its revisions stay for the operations that were made from them. False when there was none. */
export const deleteTemplate = (db: Db, templateName: string): Promise<boolean> =>
  writesRow(db, sql`delete from template where template_name = ${templateName}`)

function selectTemplates(db: Db) {
  return db
    .selectFrom('template')
    .innerJoin('template_revision as r', 'r.template_revision_id', 'template.template_revision_id')
    .select([
      'template.template_name as templateName',
      'template.template_revision_id as templateRevisionId',
      'template.source',
      'r.operation_type as operationType',
      'r.data_template as dataTemplate',
      'r.signature_types as signatureTypes',
      'r.max_failure_count as maxFailureCount',
      'r.expiration_seconds as expirationSeconds',
      'r.risk_flags as riskFlags',
      'r.is_proximity_check_enabled as isProximityCheckEnabled',
      'r.activation_flag as activationFlag',
      'r.texts',
    ])
}

async function insertRevision(tx: Tx, content: TemplateContent, { templateRevisionId, at }: TemplateWrite): Promise<string> {
  await tx
    .insertInto('template_revision')
    .values({
      template_revision_id: templateRevisionId,
      template_name: content.templateName,
      operation_type: content.operationType,
      data_template: content.dataTemplate,
      signature_types: content.signatureTypes,
      max_failure_count: content.maxFailureCount,
      expiration_seconds: content.expirationSeconds,
      risk_flags: content.riskFlags,
      is_proximity_check_enabled: content.isProximityCheckEnabled,
      activation_flag: content.activationFlag,
      texts: content.texts,
      created_at: at,
    })
    .execute()
  return templateRevisionId
}

const isSameContent = (current: TemplateContent, content: TemplateContent): boolean =>
  (Object.keys(content) as (keyof TemplateContent)[]).every((name) => current[name] === content[name])
