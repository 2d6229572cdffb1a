// Rows that a statement takes as parameters, under the names they have in code. Each column is one array, so that the text is the same for
// one row and for many.
import { type RawBuilder, sql } from 'kysely'

/** Type of a column in the database. */
type GivenType = 'text' | 'int' | 'timestamptz' | 'bytea'

export interface GivenRows<Row> {
  /** `(select …)`, a table of the columns; it takes the first placeholders of a statement of constant text. */
  readonly table: RawBuilder<unknown>
  /** What the placeholders stand for. */
  readonly parametersOf: (rows: readonly Row[]) => readonly unknown[]
}

/** Rows of these columns. `columns`: their names, which are those of the members of a row, and their types. */
export function defineGivenRows<Row extends object>(columns: Readonly<Record<keyof Row & string, GivenType>>): GivenRows<Row> {
  const types: readonly (readonly [string, GivenType])[] = Object.entries<GivenType>(columns)
  const arrays = types.map(([, type], i) => sql.raw(`$${i + 1}::${type === 'bytea' ? 'text' : type}[]`))
  const names = types.map(([name]) => sql.ref(name))
  const selected = types.map(([name, type]) =>
    type === 'bytea' ? sql`decode(${sql.ref(name)}, 'hex') as ${sql.ref(name)}` : sql.ref(name),
  )
  return {
    table: sql`(select ${sql.join(selected)} from unnest(${sql.join(arrays)}) as given (${sql.join(names)}))`,
    parametersOf: (rows) => types.map(([name]) => rows.map((row) => encode((row as Readonly<Record<string, unknown>>)[name]))),
  }
}

/** The drivers differ in how they write bytes and times that stand in an array; they write text alike. */
function encode(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return value instanceof Date ? value.toISOString() : value
}
