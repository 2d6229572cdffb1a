// Prints every row of every table as text, so that anyone can look for what should not be there.
import { sql } from 'kysely'
import type { Db } from '../src/storage/database.ts'
import { runCommand } from './command-line.ts'
import { withDatabase } from './open-database.ts'

const usage = `Prints every row of every table of the configured database as text; secrets in it are encrypted:
  node scripts/db-dump.ts`

await runCommand({ usage }, () =>
  withDatabase({ mustExist: true }, async ({ db, location }) => {
    print(`database ${location}`)
    for (const { schema, name } of await listTables(db)) await dumpTable(db, schema, name)
  }),
)

async function listTables(db: Db): Promise<readonly { schema: string; name: string }[]> {
  const { rows } = await sql<{ schema: string; name: string }>`
    select table_schema as schema, table_name as name from information_schema.tables
    where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema') order by 1, 2`.execute(db)
  return rows
}

async function dumpTable(db: Db, schema: string, name: string): Promise<void> {
  const { rows } = await sql<Record<string, unknown>>`select * from ${sql.id(schema, name)} order by 1`.execute(db)
  print(`\n${schema}.${name}, ${rows.length} rows`)
  for (const row of rows)
    print(
      Object.entries(row)
        .map(([column, value]) => `${column}=${format(value)}`)
        .join(' '),
    )
}

/** Bytes as hex, everything else as JSON. */
function format(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : JSON.stringify(value)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
