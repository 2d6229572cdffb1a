// Parses members of envelopes in JSON (v3 §6.5, v4 §5.2), and identifiers of activations, tokens and temporary keys (v3 §2.4, v4 §6.2).
import { parseBase64 } from '../../lib/base64.ts'

/** Accepts a UUID of version 1 to 5 in any case. It stays unchanged, because identifiers are compared as text. Undefined for any other value. */
export const parseUuid = (value: unknown): string | undefined =>
  typeof value === 'string' && UUID.test(value) ? value : undefined

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Decodes Base64 of exactly `length` bytes, if that is given. Undefined for any other value. */
export const parseBytes = (value: unknown, length?: number): Uint8Array | undefined =>
  typeof value === 'string' ? parseBase64(value, length) : undefined

/** Accepts milliseconds since 1970-01-01 UTC. Undefined for any other value. */
export const parseTimestamp = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
