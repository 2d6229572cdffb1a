// pawl admin dump: prints every row of every table as text, so that anybody can search it for secrets.
import { sql } from 'kysely'
import type { Database, Db } from '../../src/storage/database/database.ts'
import type { Answer } from '../command.ts'

interface Table {
  readonly schema: string
  readonly name: string
}

/** Reads every row of every table: bytes as hex, everything else as JSON. `text` has the contents of `json`, a line a row. */
export async function dumpDatabase({ db, location }: Database): Promise<Answer> {
  const tables: (Table & { rows: readonly Readonly<Record<string, unknown>>[] })[] = []
  for (const table of await listTables(db)) tables.push({ ...table, rows: await readRows(db, table) })
  const parts = tables.map(
    ({ schema, name, rows }) => `\n${schema}.${name}, ${rows.length} rows\n${rows.map(renderRow).join('')}`,
  )
  return { json: { database: location, tables }, text: `database ${location}\n${parts.join('')}` }
}

async function listTables(db: Db): Promise<readonly Table[]> {
  const { rows } = await sql<Table>`
    select table_schema as schema, table_name as name from information_schema.tables
    where table_type = 'BASE TABLE' and table_schema = any (current_schemas(false)) order by 1, 2`.execute(db)
  return rows
}

async function readRows(db: Db, { schema, name }: Table): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { rows } = await sql<Record<string, unknown>>`select * from ${sql.id(schema, name)} order by 1`.execute(db)
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, hexOf(value)])))
}

/** Marks bytes as `{ hex }`. The text shows them without quotes, and strings with quotes. */
const hexOf = (value: unknown): unknown => (value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value)

const renderValue = (value: unknown): string => {
  const isBytes = typeof value === 'object' && value !== null && 'hex' in value
  return isBytes ? String(value.hex) : JSON.stringify(value)
}

const renderRow = (row: Readonly<Record<string, unknown>>): string =>
  `${Object.entries(row)
    .map(([column, value]) => `${column}=${renderValue(value)}`)
    .join(' ')}\n`
