// Converts the memory of a phone to JSON and back. Bytes are written as `{"base64":"..."}`.
import { b64, unb64 } from './v3/crypto.ts'

/** Converts a value to JSON, with its bytes as Base64. Undefined members are left out. */
export function toJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { base64: b64(value) }
  if (Array.isArray(value)) return value.map(toJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).flatMap(([name, part]) => (part === undefined ? [] : [[name, toJson(part)]])))
}

export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson)
  if (typeof value !== 'object' || value === null) return value
  const { base64, ...others } = value as Record<string, unknown>
  if (typeof base64 === 'string' && Object.keys(others).length === 0) return unb64(base64)
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, fromJson(part)]))
}
