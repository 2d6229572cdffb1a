// Sets the session settings that pawl relies on: how times, numbers and bytes are written, and the isolation level of a statement without BEGIN.
// Server, database and role may each have other settings, so every connection sets its own. Bytes and times that cannot be read are errors: an
// invalid time would never count as expired.
import pg from 'pg'

/** Names and values as PostgreSQL spells them, because current_setting returns that spelling. */
export const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, MDY',
  TimeZone: 'UTC',
  standard_conforming_strings: 'on',
  bytea_output: 'hex',
  extra_float_digits: '1',
  // When off, NULL in an array is read as a text of four letters.
  array_nulls: 'on',
  // A statement that loses a race reads the row again; a stricter level would fail it instead.
  default_transaction_isolation: 'read committed',
}

/** The settings that PgBouncer takes at the start of a connection and passes on to each server connection, also in transaction mode. */
export const POOLED_SETTINGS: Readonly<Record<string, string>> = Object.fromEntries(
  ['DateStyle', 'TimeZone', 'standard_conforming_strings'].map((name) => [name, SESSION_SETTINGS[name] ?? '']),
)

/** Composes one text of statements that set these settings in a session. */
export const composeSet = (settings: Readonly<Record<string, string | number>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `set ${name} = '${value}'`)
    .join('; ')

/** Parses a bytea in hex (bytea_output) into a buffer of its own, so that a cached value keeps no other memory alive (`lib/bytes.ts`, ownBytes). */
export function parseBytea(text: string): Buffer {
  if (!text.startsWith(HEX)) throw new TypeError('the database gave bytes that cannot be read')
  const bytes = Buffer.allocUnsafeSlow((text.length - HEX.length) / 2)
  bytes.write(text.slice(HEX.length), 'hex')
  return bytes
}

/**
 * Parses a time. pawl never writes `infinity`, nor a year that a Date cannot hold. When another program did, the result is the last moment of the
 * year 9999, and for `-infinity` the first moment of the year 1.
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
