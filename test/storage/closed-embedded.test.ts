// Work that goes on after the embedded database was closed, like a request that drained for too long at the end of a process, fails at once.
import { Kysely, PGliteDialect, sql } from 'kysely'
import { expect, test } from 'vitest'
import { createInMemory } from '../../src/storage/database/embedded.ts'
import { readTemplate } from '../helpers/app.ts'

test('a transaction that begins on a closed database fails, and nothing is left waiting', async () => {
  const { pglite } = await createInMemory(readTemplate())
  const db = new Kysely<unknown>({ dialect: new PGliteDialect({ pglite }) })
  await sql`select 1`.execute(db)
  await pglite.close()
  await expect(db.transaction().execute((tx) => sql`select 1`.execute(tx))).rejects.toThrow('PGlite is closed')
})

test('a transaction that fails by itself says why', async () => {
  const { pglite } = await createInMemory(readTemplate())
  const db = new Kysely<unknown>({ dialect: new PGliteDialect({ pglite }) })
  await expect(db.transaction().execute((tx) => sql`select 1 / 0`.execute(tx))).rejects.toThrow('division by zero')
  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
  await db.destroy()
})
