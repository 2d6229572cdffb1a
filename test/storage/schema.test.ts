// The schema as it stands after all migrations, the same on both databases; schema.snap shows a reviewer what a migration did.
import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrations } from '../../migrations/index.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { SCHEMA } from '../helpers/hostile.ts'
import { openMigratedInMemory, startTestServer, type TestServer } from '../helpers/app.ts'

let server: TestServer
beforeAll(async () => {
  // In the background it would make the first partition of the audit log.
  server = await startTestServer({ worksInBackground: false })
})
afterAll(() => server.close())

test('the schema is the committed one', async () => {
  const { db } = server.context
  const columns = await sql<{ line: string }>`
    select format('%s.%s %s%s', table_name, column_name, data_type, case is_nullable when 'NO' then ' not null' else '' end) as line
    from information_schema.columns
    where table_schema = current_schema() and table_name not like 'kysely%' order by table_name, ordinal_position`.execute(db)
  const indexes = await sql<{ line: string }>`
    select indexdef as line from pg_indexes
    where schemaname = current_schema() and tablename not like 'kysely%' order by indexname`.execute(db)
  const constraints = await sql<{ line: string }>`
    select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as line from pg_constraint
    where connamespace = quote_ident(current_schema())::regnamespace and contype in ('c', 'f', 'p', 'u') and conrelid::regclass::text not like 'kysely%'
    order by conrelid::regclass::text collate "C", conname`.execute(db)
  const triggers = await sql<{ line: string }>`
    select pg_get_triggerdef(oid) as line from pg_trigger where not tgisinternal order by tgrelid::regclass::text collate "C", tgname`.execute(
    db,
  )
  const functions = await sql<{ line: string }>`
    select pg_get_functiondef(oid) as line from pg_proc where pronamespace = quote_ident(current_schema())::regnamespace order by proname`.execute(
    db,
  )
  const lines = [columns, indexes, constraints, triggers, functions].map(({ rows }) => rows.map(({ line }) => line).join('\n'))
  // Where tests run on a hostile database the schema has another name.
  const text = lines.join('\n\n').replaceAll(`"${SCHEMA}"`, 'public').replaceAll(`'${SCHEMA}'`, `'public'`)
  await expect(`${text}\n`).toMatchFileSnapshot('schema.snap')
})

test('a migration may take as long as it needs, whatever limits its session has', async () => {
  const database = await openMigratedInMemory()
  await sql`set statement_timeout = '60s'`.execute(database.db)
  await sql`set transaction_timeout = '60s'`.execute(database.db)
  const limits: unknown[] = []
  const up = async (db: Kysely<unknown>) => {
    const { rows } = await sql`
      select current_setting('statement_timeout') as statement, current_setting('transaction_timeout') as transaction`.execute(db)
    limits.push(...rows)
  }
  await migrate(database.db, { known: { ...migrations, '9999_last': { up } } })
  expect(limits).toEqual([{ statement: '0', transaction: '0' }])
  await database.close()
})

test('a second run of the migrations does nothing', async () => {
  expect(await migrate(server.context.db)).toEqual([])
})
