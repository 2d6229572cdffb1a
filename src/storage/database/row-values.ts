// Values of rows, from the text in which the database gives them. What cannot be read is an error: a time that is none would never be over.
import pg from 'pg'

/** A bytea as hex (`session-settings.ts`), in memory of its own: what is remembered of a row keeps nothing else (`lib/bytes.ts`, ownBytes). */
export function parseBytea(text: string): Buffer {
  if (!text.startsWith(HEX)) throw new TypeError('the database gave bytes that cannot be read')
  const bytes = Buffer.allocUnsafeSlow((text.length - HEX.length) / 2)
  bytes.write(text.slice(HEX.length), 'hex')
  return bytes
}

/** A time; `infinity` is a number, which nothing takes for one. */
export function parseTime(text: string): unknown {
  const time = readTime(text)
  if (time === null || Number.isNaN(Number(time))) throw new TypeError(`the database gave a time that cannot be read: ${text}`)
  return time
}

const readTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => unknown
const HEX = String.raw`\x`
