// Checks templates of set-up files and of exports by the rules of the server, and brings them into the form that the server stores.
import { parseTemplate, renderTemplate } from '../../src/domain/template/parser.ts'
import type { Answer, Terminal } from '../command.ts'
import { printable } from '../output.ts'
import type { SetupTemplate } from './schema.ts'
import type { Path } from './yaml.ts'

interface Faulty {
  readonly faults: readonly { readonly path: Path; readonly problem: string }[]
}

export type ReadTemplate = { readonly template: SetupTemplate } | Faulty

/** The template in the server's spelling, with defaults for left out members; or its faults. */
export function readTemplate(given: unknown): ReadTemplate {
  const parsed = parseTemplate(given)
  if ('template' in parsed) return { template: renderTemplate(parsed.template) as SetupTemplate }
  return { faults: parsed.violations.map(({ fieldName, hint }) => ({ path: toPath(fieldName), problem: hint })) }
}

export const describeFault = ({ faults: [first] }: Faulty): string => `${first?.path.join('.')} ${first?.problem}`

const toPath = (name: string): Path => name.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))

/**
 * The file of these templates that import takes. A template that import would refuse is left out and noted, and the exit code is 1: it was altered
 * in the database, or is older than a check.
 */
export function composeFile(templates: readonly Readonly<Record<string, unknown>>[], { note }: Pick<Terminal, 'note'>): Answer {
  const taken = templates.filter((given) => {
    const read = readTemplate(given)
    if ('template' in read) return true
    const name = String(given['templateName'])
    note(printable(`the template ${name} is left out, because import refuses it: ${describeFault(read)}`))
    return false
  })
  return {
    json: taken,
    text: `${JSON.stringify(taken, undefined, 2)}\n`,
    exitCode: taken.length === templates.length ? 0 : 1,
  }
}
