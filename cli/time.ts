// Parses times and numbers that people type.
import { usageFault } from './fault.ts'

/** Milliseconds since 1970, given as such or as a date. Throws a Fault. */
export const parseMilliseconds = (text: string): number => (/^\d+$/.test(text) ? Number(text) : parseDate(text))

/** Seconds since 1970, given as such or as a date, also as `openssl x509 -enddate` prints it. Throws a Fault. */
export function parseSeconds(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  const [, printed = '', day] = OF_OPENSSL.exec(text) ?? []
  const time = Date.parse(printed)
  // Date.parse reads February 30 as March 2.
  const isOnCalendar = new Date(time).getUTCDate() === Number(day)
  return Math.floor((isOnCalendar ? time : parseDate(text)) / 1000)
}

/** Throws a Fault for a time without its zone, too: it would be read in the zone of this terminal, and what pawl prints is in UTC. */
function parseDate(text: string): number {
  const time = parseTime(text)
  if (time === undefined)
    throw usageFault(`${text} is no time: give a number since 1970, or a date like 2027-01-31 or 2027-01-31T12:00:00Z`)
  return time
}

/** `notAfter=Jan 31 12:00:00 2027 GMT`. */
const OF_OPENSSL = /^(?:notAfter=)?([A-Z][a-z]{2} ([ \d]\d) \d\d:\d\d:\d\d \d{4} GMT)$/

/**
 * Parses a time of ISO 8601 to milliseconds since 1970-01-01 UTC: a day, which begins at midnight UTC, or a day, a time and its zone, also as
 * PostgreSQL prints it. A part of a millisecond counts as a whole one. Undefined for any other text, and for a day that its month does not have:
 * Date.parse alone reads February 30 as March 2, and `12.11.2027` as December 11.
 */
export function parseTime(text: string): number | undefined {
  const [, day = '', clock, more = '', zone = ''] = TIME.exec(text) ?? []
  const midnight = Date.parse(day)
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day)) return undefined
  if (clock === undefined) return midnight
  const time = Date.parse(`${day}T${clock}${/^[+-]\d\d$/.test(zone) ? `${zone}:00` : zone}`)
  return Number.isNaN(time) ? undefined : time + (/[1-9]/.test(more) ? 1 : 0)
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3}(\d{0,6}))?)?)(Z|[+-]\d\d(?::\d\d)?))?$/

/** A whole number that is not negative. Throws a Fault that names the option. */
export function parseCount(option: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw usageFault(`${option} is not a whole number`)
  return Number(text)
}
