// Composes paths and queries of the bank's API.
import { usageFault } from './fault.ts'

/** `?name=value&…` of the members that are defined; empty when none is. */
export function toQuery(members: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}

/** A template literal whose values are encoded as segments of a path. Throws a Fault for a value that no path can hold. */
export const toPath = (parts: TemplateStringsArray, ...values: readonly (string | undefined)[]): string =>
  parts.map((part, index) => part + (index < values.length ? toSegment(values[index] ?? '') : '')).join('')

/** Encodes a segment of a path. Refuses `.` and `..`, which every URL resolves to another path, even when they are encoded, and an empty text. */
function toSegment(value: string): string {
  if (/^\.{0,2}$/.test(value)) throw usageFault(`${value || 'an empty text'} is no name that a path can have`)
  return encodeURIComponent(value)
}

/** An object without members that are undefined. */
export const compact = (members: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
