// Members of envelopes as JSON has them (v3 §6.5, v4 §5.2).
import { parseBase64 } from '../../lib/base64.ts'

/** Bytes in Base64, `length` of them where it is given; undefined for anything else. */
export const parseBytes = (value: unknown, length?: number): Uint8Array | undefined =>
  typeof value === 'string' ? parseBase64(value, length) : undefined

/** Milliseconds since 1970-01-01 UTC; undefined for anything else. */
export const parseTimestamp = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
