// Composes statements whose rows come in as parameters, named as in the code. Each statement is written once and has two texts: for one row each
// column is a scalar parameter, for several rows each column is an array parameter. An array costs a request that is alone 50 µs of the database's
// time (docs/decisions/0003-shared-trips.md). Expired rows are deleted in batches, so that no statement holds many locks.
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
import { countWritten, type Db } from './database.ts'

/** Type of a column in the database. */
export type GivenType = 'text' | 'int' | 'boolean' | 'timestamptz' | 'bytea'

/** Compiles a statement for the given rows. */
export type GivenStatement<Row> = (rows: readonly Row[]) => CompiledQuery

interface GivenRows<Row> {
  /** Compiles once the statement that `compose` writes around `table`, an expression in brackets that yields the given rows. */
  readonly define: (compose: (table: RawBuilder<unknown>) => RawBuilder<unknown>) => GivenStatement<Row>
}

/** Defines rows by `columns`, a map from a member of the row to the type of its column. An undefined member becomes null. */
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

/** Like defineGivenRows, with one more column `position`: the index of the row. A statement orders its answers by it. */
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
 * `offset 0` hides the length of the arrays from the planner. A planner that sees the length prefers a plan for exactly that length, and plans the
 * statement anew for every request: with up to five rows, planning then takes longer than everything else.
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

/** Converts bytes and times to text: the drivers encode those types differently inside an array, and encode text alike. */
function encode(value: unknown): unknown {
  if (value instanceof Uint8Array) return toHex(value)
  return value instanceof Date ? value.toISOString() : value
}

/** Returns the text of a statement that is written with placeholders ($1) in place of values. Throws a TypeError when it contains a value. */
export function toConstantText(statement: RawBuilder<unknown>): string {
  const { sql, parameters } = statement.compile(COMPILER)
  if (parameters.length > 0) throw new TypeError('a constant text with a value in it')
  return sql
}

/** Compiles statements, and has no connection to run them on. */
const COMPILER = new Kysely<Record<string, never>>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (database) => new PostgresIntrospector(database),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

/**
 * Deletes up to `limit` rows of a table that `which` selects: the text after `where`. Rows that others hold are left. `key` lists the columns of the
 * primary key. Returns the number of deleted rows.
 */
export function deleteBatch(
  db: Db,
  { table, key }: { readonly table: string; readonly key: readonly string[] },
  which: RawBuilder<unknown>,
  limit: number,
): Promise<number> {
  const names = sql.join(key.map((column) => sql.ref(column)))
  return countWritten(
    db,
    sql`delete from ${sql.table(table)} where (${names}) in (
      select ${names} from ${sql.table(table)} where ${which} limit ${limit} for update skip locked
    )`,
  )
}

/** Returns a function that deletes up to `limit` rows whose `expires_at` is past, oldest first. */
export const defineExpiry =
  (table: string, ...key: readonly string[]) =>
  (db: Db, at: Date, limit: number): Promise<number> =>
    deleteBatch(db, { table, key }, sql`expires_at <= ${at} order by expires_at`, limit)
