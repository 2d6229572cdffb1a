// Searches bytes for secrets, in every spelling that a program may write: raw, hex, Base64 at any offset, lists of numbers.
import { readFileSync, writeFileSync } from 'node:fs'

export interface Secret {
  readonly name: string
  /** At least 8 bytes; UTF-8 for a text. */
  readonly bytes: Uint8Array
  readonly isText: boolean
}

/** The secrets of a run, each value once. */
export interface Secrets {
  readonly addBytes: (name: string, bytes: Uint8Array) => void
  readonly addText: (name: string, text: string) => void
  readonly list: () => readonly Secret[]
}

/** Makes an empty collection. */
export function createSecrets(): Secrets {
  const known = new Map<string, Secret>()
  const add = (name: string, bytes: Uint8Array, isText: boolean): void => {
    if (bytes.length < PREFIX_BYTES_MIN) throw new Error(`the secret ${name} is too short to be looked for`)
    const value = Buffer.from(bytes)
    const key = value.toString('hex')
    if (!known.has(key)) known.set(key, { name, bytes: value, isText })
  }
  return {
    addBytes: (name, bytes) => add(name, bytes, false),
    addText: (name, text) => add(name, Buffer.from(text, 'utf8'), true),
    list: () => [...known.values()],
  }
}

/** Writes secrets to a file that only this account may read, one JSON object a line. */
export function writeSecrets(path: string, secrets: readonly Secret[]): void {
  const lines = secrets.map(({ name, bytes, isText }) =>
    JSON.stringify({ name, isText, hex: Buffer.from(bytes).toString('hex') }),
  )
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
}

/** Reads a file of writeSecrets. */
export function readSecrets(path: string): Secret[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const { hex, ...secret } = JSON.parse(line) as { name: string; isText: boolean; hex: string }
    return { ...secret, bytes: Buffer.from(hex, 'hex') }
  })
}

/** The spellings of a secret to search for, by name. */
export function spell({ bytes, isText }: Pick<Secret, 'bytes' | 'isText'>): Record<string, Buffer> {
  const value = Buffer.from(bytes)
  const hex = value.toString('hex')
  const spellings: Record<string, Buffer> = {
    raw: value,
    'hex, lower case': Buffer.from(hex),
    'hex, upper case': Buffer.from(hex.toUpperCase()),
    'list of numbers': Buffer.from([...value].join(',')),
  }
  for (const shift of [0, 1, 2]) {
    const text = encodeShifted(value, shift)
    spellings[`Base64, shifted by ${shift}`] = Buffer.from(text)
    spellings[`base64url, shifted by ${shift}`] = Buffer.from(text.replaceAll('+', '-').replaceAll('/', '_'))
  }
  if (isText) {
    const text = value.toString('utf8')
    spellings['JSON'] = Buffer.from(JSON.stringify(text).slice(1, -1))
    spellings['percent encoding'] = Buffer.from(encodeURIComponent(text))
    spellings['form encoding'] = Buffer.from(encodeURIComponent(text).replaceAll('%20', '+'))
  }
  return spellings
}

/** Returns the found secrets as `NAME in PLACE (SPELLING) at OFFSET`, each name once for a place. */
export type Search = (place: string, content: Uint8Array) => string[]

/** Prepares a search that reads the content once, however many secrets there are. */
export function createSearch(secrets: readonly Secret[]): Search {
  const byPrefix = new Map<number, Pattern[]>()
  const isPrefix = new Uint8Array(1 << 24)
  for (const secret of secrets) {
    for (const [spelling, bytes] of Object.entries(spell(secret))) {
      const prefix = bytes.readUIntBE(0, 3)
      isPrefix[prefix] = 1
      byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), { name: secret.name, spelling, bytes }])
    }
  }
  return (place, content) => {
    const found = new Map<string, string>()
    let prefix = 0
    for (let i = 0; i < content.length; i++) {
      prefix = ((prefix << 8) | (content[i] ?? 0)) & 0xffffff
      if (isPrefix[prefix] === 0 || i < 2) continue
      for (const { name, spelling, bytes } of byPrefix.get(prefix) ?? []) {
        if (bytes.equals(content.subarray(i - 2, i - 2 + bytes.length)))
          found.set(name, `${name} in ${place} (${spelling}) at ${i - 2}`)
      }
    }
    return [...found.values()]
  }
}

interface Pattern {
  readonly name: string
  readonly spelling: string
  readonly bytes: Buffer
}

/**
 * The part of a Base64 text that depends only on the value, when `shift` bytes precede it and any bytes follow. Padding is never
 * a part of it, so the text is found with and without padding.
 */
function encodeShifted(value: Buffer, shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), value]).toString('base64')
  const first = Math.ceil((shift * 8) / 6)
  const end = Math.floor(((shift + value.length) * 8) / 6)
  return text.slice(first, end)
}

const PREFIX_BYTES_MIN = 8
