// What is remembered of a row keeps the memory of its bytes: that must not be a pool in which they have a small part.
import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import type { Db } from '../../src/storage/database.ts'
import { type TestServer, startTestServer } from '../helpers/app.ts'

let server: TestServer
let db: Db
beforeAll(async () => {
  server = await startTestServer()
  db = server.context.db
})
afterAll(() => server.close())

test.each([0, 1, 32, 64, 65, 1000])('%i bytes of a row lie in memory of their own', async (length) => {
  const value = randomBytes(length)
  const { rows } = await sql<{ value: Buffer }>`select ${value}::bytea as value`.execute(db)
  expect(rows[0]?.value.equals(value)).toBe(true)
  expect(rows[0]?.value.buffer.byteLength).toBe(length)
})

test('so do sealed records', () => {
  const sealed = createRecordKeys([randomBytes(32)], { randomBytes }).seal({ table: 't', column: 'c', row: 'r' }, randomBytes(32))
  expect(sealed.buffer.byteLength).toBe(sealed.length)
})
