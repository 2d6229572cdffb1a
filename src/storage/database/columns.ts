// Defines the types of columns that PostgreSQL and PGlite read and write alike, and parses JSON and comma lists in text columns.
import type { ColumnType } from 'kysely'

export type Bytes = ColumnType<Buffer, Uint8Array, Uint8Array>
export type OptionalBytes = ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array | null>
/** An int8: both databases return it as text. */
export type Sequence = ColumnType<string, never, never>
export type OptionalText = ColumnType<string | null, string | null | undefined, string | null>
export type OptionalTime = ColumnType<Date | null, Date | null | undefined, Date | null>

/** Parses a column that holds JSON. Returns undefined when its text is not JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Splits a column that holds a comma list; empty text is an empty list. */
export const toList = (text: string): string[] => (text === '' ? [] : text.split(','))
