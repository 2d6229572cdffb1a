// Checks a template of a set-up file by the rules of the server, and brings it into the form that the server stores.
import { parseTemplate, renderTemplate } from '../../src/domain/template/parser.ts'
import type { SetupTemplate } from './schema.ts'
import type { Path } from './yaml.ts'

export type ReadTemplate =
  | { readonly template: SetupTemplate }
  | { readonly faults: readonly { readonly path: Path; readonly problem: string }[] }

/** The template in the server's spelling, with defaults for left out members; or its faults. */
export function readTemplate(given: unknown): ReadTemplate {
  const parsed = parseTemplate(given)
  if ('template' in parsed) return { template: renderTemplate(parsed.template) as SetupTemplate }
  return { faults: parsed.violations.map(({ fieldName, hint }) => ({ path: toPath(fieldName), problem: hint })) }
}

const toPath = (name: string): Path => name.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
