// Parses times and numbers that people type.
import { usageFault } from './fault.ts'

/** Milliseconds since 1970, given as such or as a date. Throws a Fault. */
export const parseMilliseconds = (text: string): number => (/^\d+$/.test(text) ? Number(text) : parseDate(text))

/** Seconds since 1970, given as such or as a date: `openssl x509 -enddate` prints one. Throws a Fault. */
export const parseSeconds = (text: string): number => (/^\d+$/.test(text) ? Number(text) : Math.floor(parseDate(text) / 1000))

function parseDate(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw usageFault(`${text} is no time: give a number since 1970, or a date like 2027-01-31T12:00:00Z`)
  return time
}

/** A whole number that is not negative. Throws a Fault that names the option. */
export function parseCount(option: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw usageFault(`${option} is not a whole number`)
  return Number(text)
}
