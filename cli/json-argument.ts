// Reads arguments of the command line that are JSON, name a file, or are NAME=VALUE pairs.
import { readFileSync } from 'node:fs'
import { sayUnreadable } from '../src/lib/errors.ts'
import { explainFault, Fault, usageFault } from './fault.ts'

/** Parses a JSON object: `{…}`, or `@FILE` that holds one. Throws a Fault that names the option. */
export function readJsonArgument(option: string, given: string): JsonObject {
  const json = readJson(option, given)
  if (!isObject(json)) throw usageFault(`${option} is no JSON object`)
  return json
}

/** Parses a JSON object or a list of objects, or `@FILE` that holds it. Throws a Fault that names the option. */
export function readJsonList(option: string, given: string): JsonObject | readonly JsonObject[] {
  const json = readJson(option, given)
  if (isObject(json)) return json
  if (!Array.isArray(json) || !json.every(isObject)) throw usageFault(`${option} is no JSON object, and no list of them`)
  return json
}

type JsonObject = Readonly<Record<string, unknown>>

const readJson = (option: string, given: string): unknown =>
  parse(option, given.startsWith('@') ? readFile(option, given.slice(1)) : given)

const isObject = (json: unknown): json is JsonObject => typeof json === 'object' && json !== null && !Array.isArray(json)

/** The text of a file. Throws a Fault that names the option when the file cannot be read, or is not UTF-8. */
export function readFile(option: string, path: string): string {
  return decodeUtf8(`${option}: ${path}`, readBytes(option, path))
}

/** The bytes of a file. Throws a Fault that names the option when the file cannot be read. */
export function readBytes(option: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new Fault('usage', `${option}: ${path} ${sayUnreadable(error)}`)
  }
}

/** The text of UTF-8 bytes. Throws a Fault with `name` for others: a lenient decoder would replace bytes, and so change a password without notice. */
export function decodeUtf8(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw usageFault(`${name} is no UTF-8 text`)
  }
}

/** Parses `name=value` pairs. Throws a Fault that names the option. */
export function readPairs(option: string, pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw usageFault(`${option} ${pair}: not of the form NAME=VALUE`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

/** Parses JSON; undefined for other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value of a JSON text; the text itself if it is no JSON. */
export function readLooseJson(text: string): unknown {
  const json = parseJson(text)
  return json === undefined ? text : json
}

function parse(option: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageFault(`${option} is not JSON: ${explainFault(error)}`)
  }
}
