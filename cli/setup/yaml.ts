// Reads and writes the YAML of a set-up file: version 1.2, plain data, with the place of every value. A JSON file is YAML, too.
//
// Parts of YAML that surprise people are refused: repeated names, anchors and aliases, tags, other versions of YAML, several documents, tabs
// that indent, and numbers that are not exact.
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, stringify, visit, type YAMLError } from 'yaml'
import { explainFault } from '../fault.ts'

/** Names and positions that lead to a value. */
export type Path = readonly (string | number)[]

/** A fault with line and column, both counted from 1. */
export interface YamlFault {
  readonly line: number
  readonly column: number
  readonly problem: string
}

export interface YamlText {
  /** The value, as in JSON. */
  readonly value: unknown
  /** The line of the value, or of the nearest one around it. From 1. */
  readonly lineOf: (path: Path) => number
  /** The source text of a plain value; undefined for text in quotes, lists and objects. */
  readonly sourceOf: (path: Path) => string | undefined
}

/** Reads a text; returns its first fault when it is wrong. */
export function parseYaml(text: string): YamlText | YamlFault {
  const lines = new LineCounter()
  const fault = (at: number, problem: string): YamlFault => {
    const { line, col } = lines.linePos(at)
    return { line, column: col, problem }
  }
  try {
    const document = parseDocument(text, { ...OPTIONS, lineCounter: lines })
    // Under another version, `no` and `0777` mean something else, and its faults are no faults of YAML 1.2.
    if (document.directives.yaml.version !== '1.2') return fault(0, 'another version of YAML is not read: remove the directive')
    const [first] = [...document.errors, ...document.warnings].toSorted((a, b) => a.pos[0] - b.pos[0])
    if (first !== undefined) return fault(first.pos[0], explain(first))
    const surprise = findSurprise(document)
    if (surprise !== undefined) return fault(surprise.at, surprise.problem)
    const content: unknown = document.contents
    return {
      // JSON turns -0 into 0.
      value: JSON.parse(JSON.stringify(document.toJS() ?? null)) as unknown,
      lineOf: (path) => lines.linePos(walk(content, path).offset).line,
      sourceOf: (path) => {
        const { node } = walk(content, path)
        return isScalar(node) && node.type === 'PLAIN' ? node.source : undefined
      },
    }
  } catch (error) {
    // The parser is recursive, so that deep nesting exhausts the stack.
    const isDeep = error instanceof RangeError
    return { line: 1, column: 1, problem: isDeep ? DEEP : `is not read: ${explainFault(error)}` }
  }
}

/** The YAML of a value; equal values have equal texts. A text that YAML 1.1 would read as another type is in quotes. */
export const formatYaml = (value: unknown): string =>
  stringify(value, { aliasDuplicateObjects: false, version: '1.2', compat: 'yaml-1.1', lineWidth: 0 })

const OPTIONS = {
  version: '1.2',
  schema: 'core',
  merge: false,
  stringKeys: true,
  prettyErrors: false,
  resolveKnownTags: false,
  // With `silent`, the parser would ignore a second document.
  logLevel: 'error',
} as const

const DEPTH_MAX = 100
const DEEP = 'is nested too deeply: a set-up file has no more than 100 levels'

function explain({ code, message }: YAMLError): string {
  switch (code) {
    case 'DUPLICATE_KEY':
      return 'this name stands there twice: keep one of them'
    case 'TAB_AS_INDENT':
      return 'a tab does not indent in YAML: use spaces'
    case 'MULTIPLE_DOCS':
      return 'a second document begins here: remove the line ---, or make it a file of its own'
    case 'NON_STRING_KEY':
      return 'a name must be a text: write it in quotes'
    case 'TAG_RESOLVE_FAILED':
      return 'a tag is not read: remove the word that begins with !'
    case 'RESOURCE_EXHAUSTION':
      return DEEP
    case 'BAD_ALIAS':
      return ALIAS
    default:
      return `is no YAML: ${message.replace(/\s*\n\s*/g, ' ')}`
  }
}

const ALIAS = 'an alias is not read: write out what it stands for, or put the text in quotes where * begins it'

/** Finds YAML that is refused here. */
function findSurprise(document: ReturnType<typeof parseDocument>): { at: number; problem: string } | undefined {
  let found: { at: number; problem: string } | undefined
  visit(document, (_key, node, path) => {
    if (!isNode(node)) return undefined
    const problem = surpriseOf(node, path.length)
    if (problem === undefined) return undefined
    found = { at: node.range?.[0] ?? 0, problem }
    return visit.BREAK
  })
  return found
}

function surpriseOf(node: object, depth: number): string | undefined {
  if (isAlias(node)) return ALIAS
  if ('anchor' in node && node.anchor !== undefined) return 'an anchor is not read: remove the word that begins with &'
  if ('tag' in node && node.tag !== undefined) return 'a tag is not read: remove the word that begins with !'
  if (depth > 2 * DEPTH_MAX) return DEEP
  if (!isScalar(node) || typeof node.value !== 'number' || Math.abs(node.value) <= Number.MAX_SAFE_INTEGER) return undefined
  return `the number ${node.source ?? ''} is not exact: write '${node.source ?? ''}' where a text is meant`
}

/** The node at the end of a path, or the last existing one on the way to it, with the offset of its beginning. */
function walk(from: unknown, path: Path): { readonly node: unknown; readonly offset: number } {
  let [node, offset] = [from, isNode(from) ? (from.range?.[0] ?? 0) : 0]
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      if (pair === undefined) return { node: undefined, offset }
      offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? offset) : offset
      node = pair.value
      continue
    }
    const item = isSeq(node) && typeof part === 'number' ? node.items[part] : undefined
    if (!isNode(item)) return { node: undefined, offset }
    offset = item.range?.[0] ?? offset
    node = item
  }
  return { node, offset }
}
