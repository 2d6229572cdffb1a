// Work that goes on after the embedded database was closed, like a request that drained for too long at the end of a process, fails at once.
import { PGlite } from '@electric-sql/pglite'
import { Kysely, PGliteDialect, sql } from 'kysely'
import { expect, test } from 'vitest'
import { createInMemory, type OpenInstance } from '../../src/storage/database/embedded.ts'
import { readTemplate } from '../helpers/app.ts'
import { lendInstance } from '../helpers/lent-database.ts'

const openNew: OpenInstance = (options) => PGlite.create({ ...options, loadDataDir: readTemplate() })
const DATABASES = [
  ['its own', openNew],
  ['lent to a test', (options: Parameters<OpenInstance>[0]) => lendInstance(readTemplate())(options)],
] as const

test.each(DATABASES)(
  'a transaction that begins on a closed database, %s, fails, and nothing is left waiting',
  async (_, open) => {
    const { pglite } = await createInMemory(open)
    const db = new Kysely<unknown>({ dialect: new PGliteDialect({ pglite }) })
    await sql`select 1`.execute(db)
    await pglite.close()
    await expect(db.transaction().execute((tx) => sql`select 1`.execute(tx))).rejects.toThrow('PGlite is closed')
    await expect(pglite.close()).rejects.toThrow('PGlite is closed')
  },
)

test.each(DATABASES)('a transaction on a database, %s, that fails by itself says why', async (_, open) => {
  const { pglite } = await createInMemory(open)
  const db = new Kysely<unknown>({ dialect: new PGliteDialect({ pglite }) })
  await expect(db.transaction().execute((tx) => sql`select 1 / 0`.execute(tx))).rejects.toThrow('division by zero')
  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
  await db.destroy()
})
