// docs/SECURITY-MODEL.md says of each column of four tables what a change by hand does: of those that there are, and of no other.
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/storage/database/database.ts'
import { openTestDatabase } from '../helpers/app.ts'

const TEXT = readFileSync(new URL('../../docs/SECURITY-MODEL.md', import.meta.url), 'utf8')

let database: Database
let drop: () => Promise<void>
beforeAll(async () => void ({ database, drop } = await openTestDatabase()))
afterAll(async () => {
  await database.close()
  await drop()
})

/** The names in the first cells of the table of a table. */
function listWritten(table: string): string[] {
  const [, rows = ''] =
    new RegExp(`^\\| column of \`${table}\` \\| effect \\|\\n\\|---\\|---\\|\\n((?:\\|.*\\n)+)`, 'm').exec(TEXT) ?? []
  return rows.split('\n').flatMap((row) => {
    const [, names = '', effect = ''] = row.split(' | ').length === 2 ? ['', ...row.split(' | ')] : []
    if (row !== '') expect(effect.length, row).toBeGreaterThan(4)
    return [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
  })
}

test.each(['activation', 'token', 'operation', 'credential'])('every column of %s has its effect', async (table) => {
  const { rows } = await sql<{ name: string }>`
    select column_name as name from information_schema.columns where table_schema = current_schema() and table_name = ${table}`.execute(
    database.db,
  )
  expect(rows.length).toBeGreaterThan(4)
  expect(listWritten(table).toSorted()).toEqual(rows.map(({ name }) => name).toSorted())
})
