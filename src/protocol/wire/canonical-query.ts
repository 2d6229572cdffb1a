// The query string of a request in the form a code covers in place of a body (v3 §10.4, v4 §7.1).
import { utf8 } from '../../lib/bytes.ts'

/**
 * The canonical forms a code may cover, in the order they are tried. The published client signs the query it was given, and its
 * HTTP layer encodes every percent sign once more on the way; its server decodes twice. So a query with doubly encoded
 * characters has a second reading, with one layer taken off; any other has one.
 */
export function canonicalQueryReadings(rawQuery = ''): readonly Uint8Array[] {
  const once = rawQuery.replace(DOUBLY_ENCODED, '%')
  return once === rawQuery ? [canonicalizeQuery(rawQuery)] : [canonicalizeQuery(rawQuery), canonicalizeQuery(once)]
}

/** Canonical bytes of a raw query string (without the question mark); empty when there is nothing to sign. */
export function canonicalizeQuery(rawQuery = ''): Uint8Array {
  // Parts without "=" are dropped. The "&" in front keeps URLSearchParams from removing a question mark at the start.
  const parts = rawQuery.split('&').filter((part) => part.includes('='))
  const pairs = [...new URLSearchParams(`&${parts.join('&')}`)]
  pairs.sort(([keyA, valueA], [keyB, valueB]) => compareCodeUnits(keyA, keyB) || compareCodeUnits(valueA, valueB))
  return utf8(new URLSearchParams(pairs).toString())
}

const compareCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

// A percent sign, encoded, in front of what is an encoded byte without it.
const DOUBLY_ENCODED = /%25(?=[0-9A-Fa-f]{2})/g
