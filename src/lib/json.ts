// Parses JSON of other servers. Refuses an object that has a member twice, and finds values that a reader would get changed.
import { fromUtf8 } from './bytes.ts'

/** Thrown for refused bytes. The message says what they are (`no JSON object`). It may repeat the name of a member, never a value. */
export class JsonFault extends Error {}

/**
 * Parses a JSON object in UTF-8, at most 64 levels deep; a byte order mark before it is skipped (RFC 8259 §8.1). Throws JsonFault for any other text,
 * and for an object with the same member twice, because its meaning depends on the reader.
 */
export function parseForeignObject(bytes: Uint8Array): Record<string, unknown> {
  const [value, text] = parse(bytes)
  if (!isJsonObject(value)) throw new JsonFault('no JSON object')
  // Checked before any other code walks the value, because JSON.parse accepts any depth.
  if (isTooDeep(value)) throw new JsonFault('an object nested too deeply')
  const twice = findMemberTwice(text)
  if (twice !== undefined) throw new JsonFault(`an object that has the member ${quote(twice)} twice`)
  return value
}

/** Whether a JSON value is an object and not an array. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isObjectOfTexts = (value: unknown): value is Record<string, string> =>
  isJsonObject(value) && Object.values(value).every((member) => typeof member === 'string')

/** Throws JsonFault in place of the SyntaxError, whose message would quote the text, which may hold personal data. */
function parse(bytes: Uint8Array): [value: unknown, text: string] {
  try {
    const text = fromUtf8(bytes).replace(/^\uFEFF/, '')
    return [JSON.parse(text), text]
  } catch {
    throw new JsonFault('no JSON object')
  }
}

/**
 * The first name that an object in a JSON text has twice. Parsers differ in which of the two members they take (RFC 8259 §4). The text must be valid
 * JSON.
 */
export function findMemberTwice(json: string): string | undefined {
  const open: Set<string>[] = []
  for (const [token, string] of json.matchAll(JSON_TOKENS)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (string !== undefined) {
      const names = open.at(-1)
      // Two spellings of the same name, one with escapes, count as equal.
      const name = String(JSON.parse(string))
      if (names?.has(name)) return name
      names?.add(name)
    }
  }
  return undefined
}

/** Matches braces, member names with their colon, and other strings as a whole, in a valid JSON text. */
const JSON_TOKENS = /[{}]|("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"/g

/** A part of a JSON value that a reader would get changed, and the names that lead to it. */
export interface Uncarried {
  readonly path: readonly string[]
  readonly problem: string
}

/**
 * Finds the first part of a parsed JSON value, at most 64 levels deep, that would not be read back as it was written: a number beyond 2^53 - 1, which
 * is rounded or becomes null; text that a database or UTF-8 cannot hold; and the name `__proto__`, which some readers take for a prototype.
 */
export function findUncarried(value: unknown): Uncarried | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : { path: [], problem: UNSTORABLE }
  if (typeof value === 'number')
    return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? undefined : { path: [], problem: 'must be a number up to 2^53 - 1' }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__') return { path: [name], problem: 'must have another name' }
    const found = isStorable(name) ? findUncarried(member) : { path: [], problem: UNSTORABLE }
    if (found !== undefined) return { ...found, path: [name, ...found.path] }
  }
  return undefined
}

/** The result of findUncarried as one text with its path; undefined without a result. */
export function describeUncarried(value: unknown): string | undefined {
  const found = findUncarried(value)
  return found && `${quote(found.path.join('.'))} ${found.problem}`
}

/** Whether PostgreSQL and UTF-8 can hold a text: it has no U+0000 and no half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** A name, quoted and cut for a line of the log. */
const quote = (name: string): string => JSON.stringify(name.length > NAME_MAX ? `${name.slice(0, NAME_MAX)}…` : name)

/** Whether a parsed JSON value has more than 64 levels. Code that walks the value, such as JSON.stringify, could run out of stack. */
export const isTooDeep = (value: unknown): boolean => isDeeperThan(value, DEPTH_MAX)

const isDeeperThan = (value: unknown, depth: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth === 0 || Object.values(value).some((member) => isDeeperThan(member, depth - 1)))

const UNSTORABLE = 'must be Unicode text without U+0000'
const DEPTH_MAX = 64
const NAME_MAX = 100
