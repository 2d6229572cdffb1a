// A test vector and typed access to its members. A member of the wrong type is a fault of the vector file and throws.
import { parseBase64 } from '../../src/lib/base64.ts'

export type Members = Readonly<Record<string, unknown>>

export interface Vector {
  readonly id: string
  readonly group: string | undefined
  readonly input: Members
  readonly output: Members
}

/** Computes the outputs of a vector. The runner compares every member the vector gives; byte strings compare as Base64. */
export type Handler = (vector: Vector) => Members | Promise<Members>

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function members(from: Members, key: string): Members {
  const value = from[key]
  if (!isMembers(value)) throw new TypeError(`${key} is not an object`)
  return value
}

export function text(from: Members, key: string): string {
  const value = from[key]
  if (typeof value !== 'string') throw new TypeError(`${key} is not a text`)
  return value
}

export function integer(from: Members, key: string): number {
  const value = from[key]
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw new TypeError(`${key} is not an integer`)
  return value
}

export function flag(from: Members, key: string): boolean {
  const value = from[key]
  if (typeof value !== 'boolean') throw new TypeError(`${key} is not true or false`)
  return value
}

export function list(from: Members, key: string): readonly unknown[] {
  const value = from[key]
  if (!Array.isArray(value)) throw new TypeError(`${key} is not a list`)
  return value
}

export function bytes(from: Members, key: string): Uint8Array {
  const value = parseBase64(text(from, key))
  if (!value) throw new TypeError(`${key} is not Base64`)
  return value
}

export const has = (from: Members, key: string): boolean => from[key] !== undefined && from[key] !== null

/** Reads a member that may be absent or null. */
export const optional = <T>(read: (from: Members, key: string) => T, from: Members, key: string): T | undefined =>
  has(from, key) ? read(from, key) : undefined

/** JSON given as an object, or as the exact text of a body. */
export const parseBody = (from: Members, key: string): unknown =>
  typeof from[key] === 'string' ? JSON.parse(text(from, key)) : from[key]

export const toText = (value: Uint8Array): string => Buffer.from(value).toString('utf8')
