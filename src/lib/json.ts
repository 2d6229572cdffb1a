// JSON of other servers. An object that has a member twice is refused, and so is a value that would be read other than it was written.
import { fromUtf8 } from './bytes.ts'

/** The bytes are not taken. The message says what they are (`no JSON object`). It may repeat the name of a member, never a value. */
export class JsonFault extends Error {}

/**
 * A JSON object in UTF-8, at most 64 levels deep; a byte order mark before it is skipped (RFC 8259 §8.1). Throws JsonFault for anything else, and
 * when an object has a member twice: nobody knows which of the two is meant.
 */
export function parseForeignObject(bytes: Uint8Array): Record<string, unknown> {
  const [value, text] = parse(bytes)
  if (!isJsonObject(value)) throw new JsonFault('no JSON object')
  // Before anything else walks it: a parser takes any depth.
  if (isDeeperThan(value, DEPTH_MAX)) throw new JsonFault('an object nested too deeply')
  const twice = findMemberTwice(text)
  if (twice !== undefined) throw new JsonFault(`an object that has the member ${quote(twice)} twice`)
  return value
}

/** A JSON value that is an object, not an array. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Throws JsonFault in place of the JSON error, whose message would quote the text, which may hold personal data. */
function parse(bytes: Uint8Array): [value: unknown, text: string] {
  try {
    const text = fromUtf8(bytes).replace(/^\uFEFF/, '')
    return [JSON.parse(text), text]
  } catch {
    throw new JsonFault('no JSON object')
  }
}

/** The first name that an object in a JSON text has twice; parsers differ in which of the two they take (RFC 8259 §4). The text must parse. */
export function findMemberTwice(json: string): string | undefined {
  const open: Set<string>[] = []
  for (const [token, string] of json.matchAll(JSON_TOKENS)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (string !== undefined) {
      const names = open.at(-1)
      // Two spellings of one name are one name.
      const name = String(JSON.parse(string))
      if (names?.has(name)) return name
      names?.add(name)
    }
  }
  return undefined
}

/** Of a text that is JSON: braces, names of members with their colon, and other strings, which are skipped whole. */
const JSON_TOKENS = /[{}]|("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"/g

/** Part of a JSON value that a reader would not get as it was written, and the names that lead to it. */
export interface Uncarried {
  readonly path: readonly string[]
  readonly problem: string
}

/**
 * The first thing in a parsed JSON value, at most 64 levels deep, that does not come out again as it came in: a number beyond 2^53 - 1, which
 * is rounded or becomes null; text that no database keeps and no UTF-8 holds; and `__proto__`, which is a name to some and a prototype to others.
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

/** What findUncarried finds, as a text with the names that lead there; undefined when it finds nothing. */
export function describeUncarried(value: unknown): string | undefined {
  const found = findUncarried(value)
  return found && `${quote(found.path.join('.'))} ${found.problem}`
}

/** Text that PostgreSQL and UTF-8 hold: without U+0000 and without half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** A name as it may stand in a line of the log. */
const quote = (name: string): string => JSON.stringify(name.length > NAME_MAX ? `${name.slice(0, NAME_MAX)}…` : name)

const isDeeperThan = (value: unknown, depth: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth === 0 || Object.values(value).some((member) => isDeeperThan(member, depth - 1)))

const UNSTORABLE = 'must be Unicode text without U+0000'
const DEPTH_MAX = 64
const NAME_MAX = 100
