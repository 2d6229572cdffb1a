// Parses times and numbers that people type.
import { usageFault } from './fault.ts'

/** Milliseconds since 1970, given as such or as a date. Throws a Fault. */
export const parseMilliseconds = (text: string): number => (/^\d+$/.test(text) ? Number(text) : parseDate(text))

/** Seconds since 1970, given as such or as a date: `openssl x509 -enddate` prints one. Throws a Fault. */
export function parseSeconds(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  const time = OF_OPENSSL.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse reads February 30 as March 2.
  const isSo = new Date(time).getUTCDate() === Number(text.slice(4, 6))
  return Math.floor((isSo ? time : parseDate(text)) / 1000)
}

/** Throws a Fault for a time without its zone, too: it would be read in the zone of this terminal, and what pawl prints is in UTC. */
function parseDate(text: string): number {
  const time = parseTime(text)
  if (time === undefined)
    throw usageFault(`${text} is no time: give a number since 1970, or a date like 2027-01-31 or 2027-01-31T12:00:00Z`)
  return time
}

/** `Jan 31 12:00:00 2027 GMT`. */
const OF_OPENSSL = /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} GMT$/

/**
 * Parses a time of ISO 8601 to milliseconds since 1970-01-01 UTC: a day, which begins at midnight UTC, or a day, a time and its zone. Undefined for any
 * other text, and for a day that its month does not have. Date.parse alone reads February 30 as March 2, and `12.11.2027` as December 11.
 */
export function parseTime(text: string): number | undefined {
  const [, day = ''] = TIME.exec(text) ?? []
  const time = Date.parse(text.replace(' ', 'T'))
  const midnight = Date.parse(day)
  if (Number.isNaN(time) || Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day)) return undefined
  return time
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/

/** A whole number that is not negative. Throws a Fault that names the option. */
export function parseCount(option: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw usageFault(`${option} is not a whole number`)
  return Number(text)
}
