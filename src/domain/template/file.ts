// Reads a file of templates: a JSON list whose members parseTemplate accepts (cloud §4).
import { readFileSync } from 'node:fs'
import { StartError } from '../../lib/errors.ts'
import { parseTemplate } from './parser.ts'
import type { Template } from './template.ts'

/** The templates of a file. Throws StartError with one line that says where and why it is not usable. */
export function readTemplateFile(path: string): readonly Template[] {
  const refuse = (problem: string, cause?: unknown) =>
    new StartError(`PAWL_TEMPLATES_FILE: the templates file ${path} ${problem}`, { cause })
  const json = parseJson(readText(path, refuse), refuse)
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

function readText(path: string, refuse: Refuse): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (cause) {
    throw refuse(`cannot be read (${cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)})`, cause)
  }
}

function parseJson(text: string, refuse: Refuse): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser quotes the text around the fault, line breaks included.
    throw refuse(`is not JSON: ${(cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, ' ')}`, cause)
  }
}

function describe(item: unknown, index: number): string {
  const name: unknown = typeof item === 'object' && item !== null && 'templateName' in item ? item.templateName : undefined
  return `template ${index + 1}${typeof name === 'string' ? ` ${JSON.stringify(name.slice(0, 64))}` : ''}`
}
