// Sets what pawl takes for granted of a session: how times, numbers and bytes are written, and what a statement without BEGIN sees. Server,
// database and role may each be set to something else, so every connection says it. Bytes and times that cannot be read are errors: a time that is
// none would never be over.
import pg from 'pg'

/** By the names and in the spelling of PostgreSQL, which gives the same text back. */
export const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, MDY',
  TimeZone: 'UTC',
  standard_conforming_strings: 'on',
  bytea_output: 'hex',
  extra_float_digits: '1',
  // Or NULL in an array is the text of four letters.
  array_nulls: 'on',
  // A statement that loses a race looks again; stricter levels would refuse it instead.
  default_transaction_isolation: 'read committed',
}

/** Those that PgBouncer takes at the start of a connection and gives to each server that it lends, in transaction mode as well. */
export const POOLED_SETTINGS: Readonly<Record<string, string>> = Object.fromEntries(
  ['DateStyle', 'TimeZone', 'standard_conforming_strings'].map((name) => [name, SESSION_SETTINGS[name] ?? '']),
)

/** One text of statements that give these settings to a session. */
export const composeSet = (settings: Readonly<Record<string, string | number>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `set ${name} = '${value}'`)
    .join('; ')

/** A bytea as hex (bytea_output), in memory of its own: what is remembered of a row keeps nothing else (`lib/bytes.ts`, ownBytes). */
export function parseBytea(text: string): Buffer {
  if (!text.startsWith(HEX)) throw new TypeError('the database gave bytes that cannot be read')
  const bytes = Buffer.allocUnsafeSlow((text.length - HEX.length) / 2)
  bytes.write(text.slice(HEX.length), 'hex')
  return bytes
}

/**
 * A time. pawl writes no `infinity` into a row, and no year beyond those of a Date; where somebody else did, the time is the last one that four
 * digits of a year can say, and that of `-infinity` the first one.
 */
export function parseTime(text: string): Date {
  const time = readTime(text)
  if (time === Number.POSITIVE_INFINITY) return new Date(LAST_MS)
  if (time === Number.NEGATIVE_INFINITY) return new Date(FIRST_MS)
  if (time instanceof Date && !Number.isNaN(time.getTime())) return time
  if (BEYOND_DATES.test(text)) return new Date(LAST_MS)
  throw new TypeError(`the database gave a time that cannot be read: ${text}`)
}

const readTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => unknown
const BEYOND_DATES = /^\d{6}-\d\d-\d\d \d\d:/
const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')
const HEX = String.raw`\x`
