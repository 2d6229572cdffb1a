// pawl import powerauth reads the columns of the reference's tables that docs/IMPORT.md names, and no others.
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { READ_COLUMNS } from '../../cli/import/columns.ts'
import { readSource, type Source } from '../../cli/import/source.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { openOrigin, type Origin } from '../helpers/powerauth-import.ts'
import { REFERENCE_TABLES } from '../helpers/powerauth-schema.ts'
import { createReferenceDatabase } from '../helpers/powerauth-server.ts'

let origin: Origin
beforeAll(async () => {
  origin = await openOrigin()
  await createReferenceDatabase(origin.database.db, random(16))
})
afterAll(async () => {
  await origin.database.close()
  await origin.drop()
})

/** By table: the columns in the second and in the third cell of its row. */
function readDocument(): ReadonlyMap<
  string,
  { readonly read: readonly string[]; readonly unread: readonly string[]; readonly why: string }
> {
  const text = readFileSync(new URL('../../docs/IMPORT.md', import.meta.url), 'utf8')
  const columnsOf = (cell: string | undefined): string[] =>
    [...(cell ?? '').matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name ?? '')
  const rows = [...text.matchAll(/^\| `((?:pa|es)_[a-z0-9_]+|shedlock)` \|([^|]*)\|([^|]*)\|([^|]*)\|$/gm)]
  return new Map(
    rows.map(([, table = '', read, unread, why = '']) => [
      table,
      { read: columnsOf(read), unread: columnsOf(unread), why: why.trim() },
    ]),
  )
}

const sorted = (names: readonly string[]): readonly string[] => names.toSorted()

test('the document has every column of every table once, read or unread with a reason', () => {
  const document = readDocument()
  expect(sorted([...document.keys()])).toEqual(sorted(Object.keys(REFERENCE_TABLES)))
  for (const [table, columns] of Object.entries(REFERENCE_TABLES)) {
    const { read, unread, why } = document.get(table) ?? { read: [], unread: [], why: '' }
    expect([table, sorted([...read, ...unread])]).toEqual([table, sorted(Object.keys(columns))])
    expect([table, sorted(read)]).toEqual([table, sorted(READ_COLUMNS[table] ?? [])])
    if (read.length < Object.keys(columns).length) expect([table, why]).toEqual([table, expect.stringMatching(/\w/)])
  }
})

const readAll = (): Promise<void> => readSource(origin.database.db, 'UTC', readEverything)

async function readEverything(source: Source): Promise<void> {
  await source.applications()
  await source.versions()
  await source.masterKeyPairs()
  await source.countActivations()
  for await (const batch of source.activations(10)) expect(batch).toEqual(expect.any(Array))
  await source.encryptedActivations(1)
  await source.history(['x'])
  await source.countTokens()
  await source.tokens(['x'])
  await source.lostTokens()
  await source.callbacks()
  await source.templates()
  await source.texts()
  await source.countOthers()
}

const OPTIONAL = ['es_operation_template.ui', 'es_operation_template.result_texts']
const READ = Object.entries(READ_COLUMNS)
  .flatMap(([table, columns]) => columns.map((column) => [table, column] as const))
  .filter(([table, column]) => !OPTIONAL.includes(`${table}.${column}`))

/** The last column of each table. */
const LAST = [...new Map(READ)]

test.each(LAST)('%s.%s is read: without it, the database is not one of 1.9', async (table, column) => {
  const rename = (from: string, to: string) =>
    sql`alter table ${sql.table(table)} rename column ${sql.ref(from)} to ${sql.ref(to)}`.execute(origin.database.db)
  await rename(column, 'another')
  await expect(readAll()).rejects.toThrow(`it has no ${table}.${column}`)
  await rename('another', column)
})

test('all columns that are read are used, and no others', async () => {
  const { db } = origin.database
  const asked: string[] = []
  const noted = db.withPlugin({
    transformQuery: ({ node }) => {
      asked.push(JSON.stringify(node))
      return node
    },
    transformResult: async ({ result }) => result,
  })
  await readSource(noted as Pool, 'UTC', readEverything)
  const isUsed = (table: string, column: string): boolean =>
    asked.some((text) => new RegExp(`\\b${table}\\b`).test(text) && new RegExp(`\\b${column}\\b`).test(text))
  expect(READ.filter(([table, column]) => !isUsed(table, column))).toEqual([])
  for (const [table, columns] of Object.entries(REFERENCE_TABLES))
    for (const column of Object.keys(columns))
      if (!(READ_COLUMNS[table] ?? []).includes(column) || OPTIONAL.includes(`${table}.${column}`))
        await sql`alter table ${sql.table(table)} drop column ${sql.ref(column)} cascade`.execute(db)
  await readAll()
  for (const table of ['pa_recovery_code', 'es_operation_template']) await sql`drop table ${sql.table(table)} cascade`.execute(db)
  await readAll()
})
