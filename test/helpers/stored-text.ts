// Finds a text in the database, in any of its spellings.
import { sql } from 'kysely'
import type { Db } from '../../src/storage/database/database.ts'

/** Returns each `table.column` with the text: plain, in hexadecimal digits or in Base64, in columns of text, JSON or bytes. */
export async function findStoredText(db: Db, text: string): Promise<string[]> {
  const { rows: columns } = await sql<{ table: string; column: string; type: string }>`
    select c.table_name as table, c.column_name as column, c.data_type as type from information_schema.columns c
    join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
    where c.table_schema = current_schema() and t.table_type = 'BASE TABLE'`.execute(db)
  const forms = formsOf(text)
  const looks = columns.map(({ table, column, type }) => {
    const name = sql.ref(column)
    const holds = forms.map((form) =>
      type === 'bytea' ? sql`position(${Buffer.from(form)}::bytea in ${name}) > 0` : sql`strpos(${name}::text, ${form}) > 0`,
    )
    return sql`select ${`${table}.${column}`}::text as place
      where exists (select from ${sql.table(table)} where ${sql.join(holds, sql` or `)})`
  })
  const { rows } = await sql<{ place: string }>`${sql.join(looks, sql` union all `)} order by 1`.execute(db)
  return rows.map(({ place }) => place)
}

/** The spellings of a text. Base64 differs by the number of bytes before it, modulo three; characters that depend on neighbours are cut off. */
function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text)
  const hex = bytes.toString('hex')
  const base64 = [0, 1, 2].flatMap((before) => {
    const whole = Math.floor((before + bytes.length) / 3) * 3
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).subarray(0, whole)
    return (['base64', 'base64url'] as const).map((form) => encoded.toString(form).slice(before === 0 ? 0 : 4))
  })
  return [...new Set([text, hex, hex.toUpperCase(), ...base64])]
}
