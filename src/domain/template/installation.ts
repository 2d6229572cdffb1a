// Installs templates at a start: the shipped ones on an empty installation, and those of the configured file, a JSON list whose members
// parseTemplate accepts (cloud §4).
import { readFileSync } from 'node:fs'
import { parseUtf8 } from '../../lib/bytes.ts'
import { sayUnreadable, StartError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Events } from '../../log/events.ts'
import { inTransaction, type Pool, type Tx } from '../../storage/database/database.ts'
import {
  deleteTemplate,
  hasTemplateRevisions,
  listTemplates,
  lockTemplates,
  putTemplate,
  type TemplateSource,
  type TemplateWrite,
} from '../../storage/template/templates.ts'
import { warnOfDataTemplate } from './operation-data.ts'
import { parseTemplate } from './parser.ts'
import { SHIPPED_TEMPLATES, type Template, toTemplateContent } from './template.ts'

/** Reads the templates of PAWL_TEMPLATES_FILE. Throws StartError with one line that names the place of the fault and its reason. */
export function readTemplateFile(path: string): readonly Template[] {
  const name = `PAWL_TEMPLATES_FILE: the templates file ${path}`
  return parseTemplateFile(readBytes(path, refuseWith(name)), name)
}

/**
 * Parses the bytes of a file of templates. `name` begins each error message. Throws StartError with one line that names the place of the fault and
 * its reason.
 */
export function parseTemplateFile(bytes: Uint8Array, name: string): readonly Template[] {
  const refuse = refuseWith(name)
  const json = parseJson(decodeText(bytes, refuse), refuse)
  if (!Array.isArray(json)) throw refuse('is not a JSON list')
  const templates = json.map((item: unknown, index) => {
    const parsed = parseTemplate(item)
    if ('template' in parsed) return parsed.template
    const [first, ...others] = parsed.violations
    const more = others.length > 0 ? ` (and ${others.length} more)` : ''
    throw refuse(`is wrong in ${describe(item, index)}: ${first?.fieldName} ${first?.hint}${more}`)
  })
  const names = templates.map(({ templateName }) => templateName)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw refuse(`has the template ${JSON.stringify(repeated)} twice`)
  return templates
}

type Refuse = (problem: string, cause?: unknown) => StartError

const refuseWith =
  (name: string): Refuse =>
  (problem, cause) =>
    new StartError(`${name} ${problem}`, { cause })

function decodeText(bytes: Uint8Array, refuse: Refuse): string {
  const text = parseUtf8(bytes)
  // Letters in another encoding would be replaced, and phones would show what replaced them.
  if (text === undefined) throw refuse('is no UTF-8 text')
  return text.replace(/^\uFEFF/, '')
}

function readBytes(path: string, refuse: Refuse): Uint8Array {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw refuse(sayUnreadable(cause), cause)
  }
}

function parseJson(text: string, refuse: Refuse): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser's message quotes the text around the fault with its line breaks.
    throw refuse(`is not JSON: ${(cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, ' ')}`, cause)
  }
}

function describe(item: unknown, index: number): string {
  const name: unknown = typeof item === 'object' && item !== null && 'templateName' in item ? item.templateName : undefined
  return `template ${index + 1}${typeof name === 'string' ? ` ${JSON.stringify(name.slice(0, 64))}` : ''}`
}

type Change = 'created' | 'changed' | 'deleted'

/**
 * Applies the templates of the file, if there is one: writes all of them, and deletes templates that come from an earlier file and are not in this
 * one. Inserts shipped templates when there never was any template. They follow new releases as long as nobody else has written them. All this is
 * one transaction under one lock, so processes that start together do it one after another.
 */
export async function installTemplates(
  parts: { readonly db: Pool; readonly platform: Platform; readonly events: Events },
  file: readonly Template[] | undefined,
  shipped: readonly Template[] = SHIPPED_TEMPLATES,
): Promise<void> {
  const changes = await inTransaction(parts.db, async (tx) => {
    await lockTemplates(tx)
    const isEmpty = !(await hasTemplateRevisions(tx))
    const sources = new Map((await listTemplates(tx)).map(({ templateName, source }) => [templateName, source]))
    const namesOfFile = new Set(file?.map(({ templateName }) => templateName))
    const isWritten = ({ templateName }: Template) =>
      !namesOfFile.has(templateName) && (isEmpty || sources.get(templateName) === 'shipped')
    const gone = [...sources].flatMap(([name, source]) => (file && source === 'file' && !namesOfFile.has(name) ? [name] : []))
    const done = new Map<string, Change>()
    for (const name of gone) if (await deleteTemplate(tx, name)) done.set(name, 'deleted')
    await writeAll(tx, parts.platform, shipped.filter(isWritten), 'shipped', done)
    await writeAll(tx, parts.platform, file ?? [], 'file', done)
    return done
  })
  for (const [templateName, change] of changes) parts.events.templateChanged({ templateName, change, by: 'start' })
  for (const { templateName, dataTemplate } of file ?? []) {
    const warning = warnOfDataTemplate(dataTemplate)
    if (warning !== undefined) parts.events.templateDoubtful({ templateName, warning })
  }
}

/** Writes one template. Returns `refused` when `onlyIf` does not hold. */
export const writeTemplate = (
  tx: Tx,
  platform: Platform,
  template: Template,
  source: TemplateSource,
  onlyIf?: TemplateWrite['onlyIf'],
) =>
  putTemplate(tx, toTemplateContent(template), {
    source,
    templateRevisionId: platform.uuid(),
    at: new Date(platform.now()),
    ...(onlyIf && { onlyIf }),
  })

async function writeAll(
  tx: Tx,
  platform: Platform,
  templates: readonly Template[],
  source: TemplateSource,
  done: Map<string, Change>,
): Promise<void> {
  for (const template of templates) {
    const outcome = await writeTemplate(tx, platform, template, source)
    if (outcome === 'created' || outcome === 'changed') done.set(template.templateName, outcome)
  }
}
