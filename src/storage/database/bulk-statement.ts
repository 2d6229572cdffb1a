// Rows that a statement takes as parameters, under the names they have in code. A statement is written once, and has two texts: for one row
// each column is a parameter, for many rows each column is an array. An array costs a request that is alone 50 µs of the database's time
// (docs/decisions/0003-shared-trips.md). Rows whose time is over are deleted a batch at a time, so that no statement holds many locks.
import {
  CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely'
import { toHex } from '../../lib/bytes.ts'
import type { Db } from './database.ts'
import type { Schema } from './schema.ts'

/** Type of a column in the database. */
export type GivenType = 'text' | 'int' | 'boolean' | 'timestamptz' | 'bytea'

/** A statement over rows that are given to it. */
export type GivenStatement<Row> = (rows: readonly Row[]) => CompiledQuery

interface GivenRows<Row> {
  /** The statement that `compose` writes around `table`, a table of the columns in brackets. Its text is composed once and has no values. */
  readonly define: (compose: (table: RawBuilder<unknown>) => RawBuilder<unknown>) => GivenStatement<Row>
}

/** Rows of these columns. `columns`: their names, which are those of the members of a row, and their types. A member that is undefined is null. */
export function defineGivenRows<Row extends object>(columns: Readonly<Record<keyof Row & string, GivenType>>): GivenRows<Row> {
  const types: readonly (readonly [string, GivenType])[] = Object.entries<GivenType>(columns)
  const valueOf = (row: Row, name: string): unknown => (row as Readonly<Record<string, unknown>>)[name] ?? null
  return {
    define: (compose) => {
      const one = toConstantText(compose(composeRow(types)))
      const many = toConstantText(compose(composeArrays(types)))
      return (rows) => {
        const [row] = rows
        return row !== undefined && rows.length === 1
          ? CompiledQuery.raw(
              one,
              types.map(([name]) => valueOf(row, name)),
            )
          : CompiledQuery.raw(
              many,
              types.map(([name]) => rows.map((each) => encode(valueOf(each, name)))),
            )
      }
    },
  }
}

/**
 * The same for rows that are asked about: the table has a column `position` as well, the place of a row among them, by which a statement orders its
 * answers.
 */
export function defineAskedRows<Row extends object>(columns: Readonly<Record<keyof Row & string, GivenType>>): GivenRows<Row> {
  const { define } = defineGivenRows<object>({ ...columns, position: 'int' })
  return {
    define: (compose) => {
      const statement = define(compose)
      return (rows) => statement(rows.map((row, position) => ({ ...row, position })))
    },
  }
}

type Columns = readonly (readonly [string, GivenType])[]

function composeRow(types: Columns): RawBuilder<unknown> {
  const selected = types.map(([name, type], i) => sql`${sql.raw(`$${i + 1}::${type}`)} as ${sql.ref(name)}`)
  return sql`(select ${sql.join(selected)})`
}

/**
 * `offset 0` hides how long the arrays are. A planner that sees it finds each length cheaper than a usual one, and plans the statement anew
 * for every request: for up to five rows that takes longer than all the rest.
 */
function composeArrays(types: Columns): RawBuilder<unknown> {
  const arrays = types.map(
    ([name, type], i) => sql`${sql.raw(`$${i + 1}::${type === 'bytea' ? 'text' : type}[]`)} as ${sql.ref(name)}`,
  )
  const names = sql.join(types.map(([name]) => sql.ref(name)))
  const columns = sql.join(types.map(([name]) => sql.ref(`arrays.${name}`)))
  const selected = types.map(([name, type]) =>
    type === 'bytea' ? sql`decode(${sql.ref(`given.${name}`)}, 'hex') as ${sql.ref(name)}` : sql.ref(`given.${name}`),
  )
  return sql`(select ${sql.join(selected)}
      from (select ${sql.join(arrays)} offset 0) as arrays, unnest(${columns}) as given (${names}))`
}

/** The drivers differ in how they write bytes and times that stand in an array; they write text alike. */
function encode(value: unknown): unknown {
  if (value instanceof Uint8Array) return toHex(value)
  return value instanceof Date ? value.toISOString() : value
}

/** The text of a statement that is written with placeholders ($1) in place of values. */
export function toConstantText(statement: RawBuilder<unknown>): string {
  const { sql, parameters } = statement.compile(COMPILER)
  if (parameters.length > 0) throw new TypeError('a constant text with a value in it')
  return sql
}

/** Runs nothing. */
const COMPILER = new Kysely<Record<string, never>>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (database) => new PostgresIntrospector(database),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

/** Deletes up to `limit` rows of a table whose `expires_at` has come, the oldest first; `key`: the columns of its primary key. */
export const defineExpiry =
  (table: keyof Schema, ...key: readonly string[]) =>
  async (db: Db, at: Date, limit: number): Promise<number> => {
    const names = sql.join(key.map((column) => sql.ref(column)))
    const { rows } = await sql`
    delete from ${sql.table(table)} where (${names}) in (
      select ${names} from ${sql.table(table)} where expires_at <= ${at} order by expires_at limit ${limit} for update skip locked
    ) returning 1`.execute(db)
    return rows.length
  }
