// Imports templates of operations. Their texts are in a table of the enrollment server, which may be in the same database. Faults in texts and
// rows of the form are mended or left out; the data that the phone signs are never changed.
import { writeTemplate } from '../../src/domain/template/installation.ts'
import { ATTRIBUTE_SLOTS } from '../../src/domain/template/attributes.ts'
import { parseTemplate, type ParsedTemplate } from '../../src/domain/template/parser.ts'
import type { Template } from '../../src/domain/template/template.ts'
import type { Violation } from '../../src/lib/errors.ts'
import { isJsonObject } from '../../src/lib/json.ts'
import { type Db, inTransaction } from '../../src/storage/database/database.ts'
import { findTemplate, lockTemplates } from '../../src/storage/template/templates.ts'
import { parseJson } from '../json-argument.ts'
import { explainRefusal, type ImportParts, isSourceId, SECOND_ROW } from './parts.ts'
import type { SourceTemplate, SourceTexts } from './source.ts'

/** Imports all templates. A template of pawl with the same name stays, unless pawl shipped it. */
export async function importTemplates(parts: ImportParts): Promise<void> {
  const { source, record } = parts
  const templates = await source.templates()
  const texts = Map.groupBy(await source.texts(), ({ operationType }) => operationType)
  record.found('template', templates.length)
  const claimed = new Set<string>()
  for (const row of templates) {
    const refusal = claimed.has(row.templateName) ? SECOND_ROW : await take(parts, row, texts.get(row.operationType) ?? [])
    if (refusal === undefined) claimed.add(row.templateName)
    else record.leaveOut('template', row.templateName, refusal)
  }
  const types = new Set(templates.map(({ operationType }) => operationType))
  for (const operationType of texts.keys())
    if (!types.has(operationType)) record.mend('template', operationType, 'texts that belong to no template are left out')
}

/** Imports a template. Returns undefined, or the reason why it is left out. */
async function take(parts: ImportParts, row: SourceTemplate, texts: readonly SourceTexts[]): Promise<string | undefined> {
  const { db, record } = parts
  if (!isSourceId(row.templateName)) return 'its name is blank, or has control characters'
  if (await isKept(db, row.templateName)) {
    record.alreadyThere('template', 1)
    return undefined
  }
  const mends: (readonly [string, string | undefined])[] = []
  const parsed = parseMended(row, texts, (reason, detail) => mends.push([reason, detail]))
  if ('violations' in parsed) {
    const [first] = parsed.violations
    return `${first?.fieldName ?? 'something'} ${first?.hint ?? 'is wrong'}`
  }
  let isTaken = parts.isDryRun
  try {
    isTaken ||= await store(parts, parsed.template)
  } catch (error) {
    return `the database refuses it: ${explainRefusal(error)}`
  }
  if (isTaken) {
    for (const [reason, detail] of mends) record.mend('template', row.templateName, reason, detail)
    record.imported('template', 1)
  } else record.alreadyThere('template', 1)
  return undefined
}

/** Whether pawl has a template of this name that it did not ship. */
async function isKept(db: Db, templateName: string): Promise<boolean> {
  const existing = await findTemplate(db, templateName)
  return existing !== undefined && existing.source !== 'shipped'
}

/** Stores a template. False when somebody has just written one of the same name in pawl, which stays. */
const store = ({ db, platform }: ImportParts, template: Template): Promise<boolean> =>
  inTransaction(db, async (tx) => {
    await lockTemplates(tx)
    if (await isKept(tx, template.templateName)) return false
    await writeTemplate(tx, platform, template, 'administration')
    return true
  })

type Mend = (reason: string, detail?: string) => void
type Json = Record<string, unknown>

/** The members of the form in docs/TEMPLATES.md that this file reads or changes. */
interface TemplateJson {
  readonly templateName: string
  readonly operationType: string
  readonly dataTemplate: string
  readonly signatureType: readonly string[]
  maxFailureCount: number
  expiration: number
  riskFlags: string
  readonly proximityCheckEnabled: boolean
  readonly texts: Readonly<Record<string, TextsJson>>
}

interface TextsJson {
  title: string
  message: string
  attributes?: unknown
  ui?: unknown
  resultTexts?: unknown
}

/** Parses a template, and mends one wrong part after the other. The result has violations when a part cannot be mended. */
function parseMended(row: SourceTemplate, texts: readonly SourceTexts[], mend: Mend): ParsedTemplate {
  const json = toJson(row, texts, mend)
  for (;;) {
    const parsed = parseTemplate(json)
    if (!('violations' in parsed)) return parsed
    const isMended = parsed.violations.some((violation) => {
      const reason = mendPart(json, violation)
      if (reason !== undefined) mend(reason, `${violation.fieldName} ${violation.hint}`)
      return reason !== undefined
    })
    // The removal of a row moves the rows behind it, so the template is parsed anew.
    if (!isMended) return parsed
  }
}

const toJson = (row: SourceTemplate, texts: readonly SourceTexts[], mend: Mend): TemplateJson => ({
  templateName: row.templateName,
  operationType: row.operationType,
  dataTemplate: row.dataTemplate,
  signatureType: readSignatureTypes(row.signatureType, mend),
  maxFailureCount: row.maxFailureCount,
  expiration: row.expiration,
  riskFlags: row.riskFlags ?? '',
  proximityCheckEnabled: row.isProximityCheckEnabled,
  texts: readTexts(row, texts, mend),
})

/** Drops the combination of all three factors, which no app asks its user for, when another combination is left. */
function readSignatureTypes(stored: string, mend: Mend): readonly string[] {
  const types = [...new Set(stored.split(',').map((type) => type.trim().toLowerCase()))].filter((type) => type !== '')
  const usual = types.filter((type) => type !== 'possession_knowledge_biometry')
  const known = usual.filter((type) => ['possession', 'possession_knowledge', 'possession_biometry'].includes(type))
  if (known.length === 0) return types
  if (known.length < usual.length) mend('taken without factors that are not known', usual.join(', '))
  return known
}

function readTexts(row: SourceTemplate, texts: readonly SourceTexts[], mend: Mend): Record<string, TextsJson> {
  const read: Record<string, TextsJson> = {}
  // A language without a region (`en`) has precedence over one with a region (`en-US`).
  for (const one of texts.toSorted((a, b) => a.language.length - b.language.length)) {
    const [, language] = /^([a-z]{2})(?:[-_].*)?$/.exec(one.language.trim().toLowerCase()) ?? []
    if (language === undefined || Object.hasOwn(read, language)) {
      mend('taken without texts in a language that is no two letters, or is there', one.language)
      continue
    }
    const resultTexts = readJson(one.resultTexts, `texts.${language}.resultTexts`, mend)
    const ui = readJson(one.ui, `texts.${language}.ui`, mend)
    const attributes = readJson(one.attributes, `texts.${language}.attributes`, mend)
    read[language] = {
      title: one.title,
      message: one.message,
      attributes: Array.isArray(attributes) ? readRows(attributes, `texts.${language}.attributes`, mend) : attributes,
      ui,
      resultTexts,
    }
  }
  if (Object.keys(read).length === 0) return { en: { title: row.templateName, message: row.operationType } }
  return read
}

/** Parses a stored JSON text; null for a missing or blank one, and for one that is no JSON. */
function readJson(stored: string | null, path: string, mend: Mend): unknown {
  if (stored === null || stored.trim() === '') return null
  const value = parseJson(stored)
  if (value === undefined) mend(`taken without ${path.split('.').at(-1) ?? path} that are no JSON`, path)
  return value ?? null
}

/** Reads rows as the reference does: an unknown type is KEY_VALUE, and parameters that the type does not have are ignored. */
function readRows(rows: readonly unknown[], path: string, mend: Mend): readonly unknown[] {
  if (rows.length > ROWS_MAX) mend(`taken without rows of its form beyond the first ${ROWS_MAX}`, path)
  return rows.slice(0, ROWS_MAX).map((row, index) => {
    if (!isJsonObject(row)) return row
    const { type: given, params } = row
    const isKnown = typeof given === 'string' && Object.hasOwn(ATTRIBUTE_SLOTS, given)
    if (!isKnown) mend('taken with a row of its form of another type as KEY_VALUE', `${path}.${index}`)
    const type = isKnown ? given : 'KEY_VALUE'
    const { required, optional, aliases = {} } = ATTRIBUTE_SLOTS[type] ?? { required: [], optional: [] }
    const slots = isJsonObject(params) ? Object.entries(params).filter(([, name]) => name !== null) : []
    const names = slots.map(([slot]) => slot)
    const isUsed = (slot: string): boolean =>
      [...required, ...optional].includes(slot) || (Object.hasOwn(aliases, slot) && !names.includes(aliases[slot] ?? ''))
    const used = slots.filter(([slot]) => isUsed(slot))
    if (used.length < slots.length)
      mend('taken without parameters of a row of its form that its type does not have', `${path}.${index}`)
    const isNamed = typeof row['id'] === 'string' && row['id'].trim() !== ''
    if (!isNamed) mend('taken with a row of its form under a name of its own', `${path}.${index}`)
    return {
      id: isNamed ? row['id'] : `attribute.${index}`,
      type,
      text: row['text'] ?? '',
      params: Object.fromEntries(used.map(([slot, name]) => [slot, typeof name === 'number' ? String(name) : name])),
    }
  })
}

/** Changes or removes the part with the violation, and returns what was done; undefined when the part cannot be mended. */
function mendPart(json: TemplateJson, { fieldName }: Violation): string | undefined {
  const [first = '', language = '', part = '', name = ''] = fieldName.split('.')
  if (first !== 'texts') return mendMember(json, first)
  const texts = json.texts[language]
  if (texts === undefined) return undefined
  if (part === 'title' || part === 'message') return mendText(texts, part, json)
  if (part === 'attributes') {
    // Without the position of a row, the whole list is wrong.
    if (Array.isArray(texts.attributes) && name !== '') texts.attributes = texts.attributes.toSpliced(Number(name), 1)
    else texts.attributes = null
    return 'taken without a row of its form'
  }
  if (part !== 'ui' && part !== 'resultTexts') return undefined
  const { [part]: value } = texts
  const rest = isJsonObject(value) && Object.hasOwn(value, name) ? withoutMember(value, name) : null
  if (part === 'resultTexts' && rest !== null && isJsonObject(value)) {
    const mended = sanitize(value[name], MESSAGE_MAX)
    texts.resultTexts = mended === undefined || mended === value[name] ? rest : { ...rest, [name]: mended }
    return 'taken with other texts of results'
  }
  texts[part] = rest
  return part === 'ui' ? 'taken without a part of its ui' : 'taken with other texts of results'
}

function mendMember(json: TemplateJson, name: string): string | undefined {
  if (name === 'riskFlags') json.riskFlags = [...new Set(json.riskFlags)].filter((flag) => 'XFC'.includes(flag)).join('')
  else if (name === 'maxFailureCount') json.maxFailureCount = 5
  else if (name === 'expiration') json.expiration = 300
  else return undefined
  return `taken with another ${name}`
}

/** Removes the faults of a text. If nothing is left, the template's name (title) or operation type (message) takes its place. */
function mendText(
  texts: TextsJson,
  part: 'title' | 'message',
  { templateName, operationType }: TemplateJson,
): string | undefined {
  const own = sanitize(part === 'title' ? templateName : operationType, TITLE_MAX) ?? ''
  const mended = sanitize(texts[part], part === 'title' ? TITLE_MAX : MESSAGE_MAX) ?? own
  const next = mended === texts[part] ? own : mended
  if (next === texts[part]) return undefined
  texts[part] = next
  return `taken with another ${part}`
}

/** Removes refused characters, makes placeholders plain, and cuts the text to `max` characters; undefined when nothing is left. */
function sanitize(text: unknown, max: number): string | undefined {
  if (typeof text !== 'string') return undefined
  const plain = text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\n\r\t]|[\u202A-\u202E\u2066-\u2069]/gu, '')
    // A placeholder of the reference may have a default (`${name:-default}`), a placeholder of pawl has none.
    .replaceAll(/\$\{([^${}:]+):-[^{}]*\}/g, '${$1}')
  const cut = plain.length > max ? `${plain.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : plain
  return cut.trim() === '' ? undefined : cut
}

const withoutMember = (value: Json, name: string): Json =>
  Object.fromEntries(Object.entries(value).filter(([member]) => member !== name))

const ROWS_MAX = 100
const TITLE_MAX = 255
const MESSAGE_MAX = 4096
