// Templates of operations. Their texts stand with the enrollment server, whose table may be in the same database.
import { writeTemplate } from '../../../src/domain/template/installation.ts'
import { parseTemplate } from '../../../src/domain/template/parser.ts'
import { inTransaction } from '../../../src/storage/database.ts'
import { findTemplate, lockTemplates } from '../../../src/storage/templates.ts'
import { type ImportParts, parseJson } from './parts.ts'
import type { SourceTemplate, SourceTexts } from './source.ts'

/** Takes all templates. One of the same name stays as it is here, unless pawl shipped it. */
export async function importTemplates(parts: ImportParts): Promise<void> {
  const { source, db, platform, record } = parts
  const templates = await source.templates()
  const texts = Map.groupBy(await source.texts(), ({ operationType }) => operationType)
  record.found('template', templates.length)
  for (const row of templates) {
    const existing = await findTemplate(db, row.templateName)
    if (existing !== undefined && existing.source !== 'shipped') {
      record.alreadyThere('template', 1)
      continue
    }
    const parsed = parseTemplate(toJson(row, texts.get(row.operationType) ?? []))
    if ('violations' in parsed) {
      const [first] = parsed.violations
      record.leaveOut('template', row.templateName, `${first?.fieldName ?? 'something'} ${first?.hint ?? 'is wrong'}`)
      continue
    }
    if (!parts.isDryRun)
      await inTransaction(db, async (tx) => {
        await lockTemplates(tx)
        await writeTemplate(tx, platform, parsed.template, 'administration')
      })
    record.imported('template', 1)
  }
}

/** As docs/TEMPLATES.md describes it. */
const toJson = (row: SourceTemplate, texts: readonly SourceTexts[]) => ({
  templateName: row.templateName,
  operationType: row.operationType,
  dataTemplate: row.dataTemplate,
  signatureType: readSignatureTypes(row.signatureType),
  maxFailureCount: row.maxFailureCount,
  expiration: row.expiration,
  riskFlags: row.riskFlags ?? '',
  proximityCheckEnabled: row.isProximityCheckEnabled,
  texts: texts.length === 0 ? { en: { title: row.templateName, message: row.operationType } } : readTexts(texts),
})

/** Without the three factors at once, which no app asks its user for, as long as another combination is left. */
function readSignatureTypes(stored: string): readonly string[] {
  const types = [...new Set(stored.split(',').map((type) => type.trim().toLowerCase()))]
  const usual = types.filter((type) => type !== 'possession_knowledge_biometry')
  return usual.length === 0 ? types : usual
}

const readTexts = (texts: readonly SourceTexts[]) =>
  Object.fromEntries(
    texts.map(({ language, title, message, attributes, ui }) => [
      language,
      {
        title,
        message,
        ...(attributes && { attributes: parseJson(attributes) ?? attributes }),
        ...(ui && { ui: parseJson(ui) ?? ui }),
      },
    ]),
  )
