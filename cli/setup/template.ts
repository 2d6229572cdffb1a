// Templates of a set-up file: judged by the rules of the server, and in the form that the server stores.
import { parseTemplate, renderTemplate } from '../../src/domain/template/parser.ts'
import type { SetupTemplate } from './schema.ts'
import type { Path } from './yaml.ts'

export type ReadTemplate =
  | { readonly template: SetupTemplate }
  | { readonly faults: readonly { readonly path: Path; readonly problem: string }[] }

/** The template with what stands for members that are left out, in the spelling of the server; or what is wrong with it. */
export function readTemplate(given: unknown): ReadTemplate {
  const parsed = parseTemplate(given)
  if ('template' in parsed) return { template: renderTemplate(parsed.template) as SetupTemplate }
  return { faults: parsed.violations.map(({ fieldName, hint }) => ({ path: toPath(fieldName), problem: hint })) }
}

const toPath = (name: string): Path => name.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
