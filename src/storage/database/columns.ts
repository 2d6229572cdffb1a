// Columns that both databases give and take alike, and how their text is read.
import type { ColumnType } from 'kysely'

export type Bytes = ColumnType<Buffer, Uint8Array, Uint8Array>
export type OptionalBytes = ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array | null>
/** int8: text in both databases. */
export type Sequence = ColumnType<string, never, never>
export type OptionalText = ColumnType<string | null, string | null | undefined, string | null>
export type OptionalTime = ColumnType<Date | null, Date | null | undefined, Date | null>
/** int8 that is written as a number: text in both databases. */
export type Position = ColumnType<string, number, number>

/** The value of a column that holds JSON; undefined where somebody wrote what is none. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The entries of a column that holds a comma list; none of an empty one. */
export const toList = (text: string): string[] => (text === '' ? [] : text.split(','))
