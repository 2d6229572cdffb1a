// Finds the tables that each statement of the committed snapshots reads or writes, by PostgreSQL's own parser.
import { readdirSync, readFileSync } from 'node:fs'
import type { Embedded } from '../../src/storage/database/embedded.ts'

export interface StatementTables {
  /** The title of the storage function in the snapshot. */
  readonly title: string
  /** The tables. A view is replaced by its tables. */
  readonly tables: readonly string[]
}

/** Finds every statement that reads or writes rows. Definitions and locks of a whole table, which name one table, are left out. */
export async function findStatementTables({ pglite }: Pick<Embedded, 'pglite'>): Promise<StatementTables[]> {
  const statements = readStatements()
  for (const [i, { text }] of statements.entries()) await pglite.query(`prepare s${i} as ${text}`)
  const { rows: prepared } = await pglite.query<{ name: string; types: string }>(
    `select name, array_to_string(parameter_types, ', ') as types from pg_prepared_statements`,
  )
  const types = new Map(prepared.map((row) => [row.name, row.types]))
  // The catalog has the dependencies of the body of such a function.
  for (const [i, { text }] of statements.entries())
    await pglite.query(`create function f${i}(${types.get(`s${i}`)}) returns void begin atomic ${text}; end`)
  const { rows } = await pglite.query<{ name: string; tables: string[] }>(FIND_TABLES)
  const tables = new Map(rows.map((row) => [row.name, row.tables]))
  return statements.map(({ title }, i) => ({ title, tables: tables.get(`f${i}`) ?? [] }))
}

const SNAPSHOTS = new URL('../storage/', import.meta.url)

/** Reads the snapshots, which have a line `-- title`, then the statements of that function. */
function readStatements(): { title: string; text: string }[] {
  const files = readdirSync(SNAPSHOTS, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.sql.snap'))
  return files.flatMap((file) =>
    readFileSync(new URL(file, SNAPSHOTS), 'utf8')
      .split(/^-- /m)
      .slice(1)
      .flatMap((part) => {
        const [title = '', ...lines] = part.split('\n')
        const texts = lines
          .join('\n')
          .split(/;\n/)
          .map((text) => text.trim())
        return texts.filter((text) => text !== '' && !NO_ROWS.test(text)).map((text) => ({ title, text }))
      }),
  )
}

const NO_ROWS = /^(create table|alter table|drop table|lock table|set local)\b/

const FIND_TABLES = `
  with recursive dependency as (
    select d.objid as function, d.refobjid as relation from pg_depend d join pg_proc p on p.oid = d.objid
      where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_class'::regclass and p.proname ~ '^f[0-9]+$'
    union
    select dependency.function, d.refobjid from dependency join pg_rewrite w on w.ev_class = dependency.relation
      join pg_depend d on d.objid = w.oid and d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass
  )
  select p.proname as name, array_agg(distinct c.relname::text) as tables
  from dependency join pg_proc p on p.oid = dependency.function join pg_class c on c.oid = dependency.relation
  where c.relkind in ('r', 'p') group by p.proname`
