// The three types of a database: what a query runs on, what opens a transaction, and what is one.
import { sql } from 'kysely'
import { Type } from '@sinclair/typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cloudEndpoint } from '../../src/api/cloud/endpoint.ts'
import { auditedEndpoint } from '../../src/api/cloud/audited-endpoint.ts'
import { asOneStep, type Db, inTransaction, isUniqueViolation, type Pool, type Tx } from '../../src/storage/database/database.ts'
import { useUniqueValues } from '../../src/storage/activation/unique-values.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
})
afterAll(() => server.close())

const value = (byte: number) => ({ valueHash: Buffer.alloc(32, byte), expiresAt: new Date(0) })
const insert = (db: Db, ...bytes: number[]) =>
  sql`insert into unique_value (value_hash, expires_at)
    values ${sql.join(bytes.map((byte) => sql`(${Buffer.alloc(32, byte)}::bytea, ${new Date(0)}::timestamptz)`))}`.execute(db)
async function stored() {
  const { rows } = await sql<{ hash: Buffer }>`select value_hash as hash from unique_value`.execute(server.context.db)
  return rows.map(({ hash }) => hash[0])
}

test('a transaction opens no other', async () => {
  const nested = inTransaction(server.context.db, (tx) =>
    // @ts-expect-error a Tx is no Pool
    inTransaction(tx, async () => undefined),
  )
  await expect(nested).rejects.toThrow('transaction')
})

test('what goes on after a violation takes no transaction, which the violation would have ended', async () => {
  const { db } = server.context
  await useUniqueValues(db, [value(1)])
  const spoiled = inTransaction(db, async (tx) => {
    // @ts-expect-error a Tx is no Pool
    expect(await useUniqueValues(tx, [value(1)])).toBe(false)
    await insert(tx, 2)
  })
  await expect(spoiled).rejects.toThrow('aborted')
  expect(await stored()).toEqual([1])
})

test('one statement that failed is undone, alone or within a transaction, which goes on', async () => {
  const { db } = server.context
  const twice = (within: Pool | Tx) =>
    asOneStep(within, (step) => insert(step, 3, 3)).catch((error: unknown) => isUniqueViolation(error))
  expect(await twice(db)).toBe(true)
  await inTransaction(db, async (tx) => {
    expect(await twice(tx)).toBe(true)
    await insert(tx, 4)
  })
  expect(await stored()).toEqual([1, 4])
})

test('a handler is told by its type what it works on', async () => {
  const { db } = server.context
  const call = { body: {}, query: {}, headers: {}, params: {}, caller: ADMIN, origin: '', source: '', parts: server.context }
  const declared = {
    route: 'GET /',
    operationId: 'readNothing',
    summary: '',
    errors: [],
    roles: [],
    response: Type.Object({}),
  } as const
  const seen: unknown[] = []
  const reading = cloudEndpoint({
    ...declared,
    async handle({ parts }) {
      // @ts-expect-error a handler that only reads has no transaction
      const tx: Tx = parts.db
      seen.push(Object.is(tx, db), tx.isTransaction)
      return {}
    },
  })
  const changing = auditedEndpoint({
    ...declared,
    async handle({ parts }) {
      // @ts-expect-error the database itself is out of reach of a change
      const pool: Pool = parts.db
      seen.push(Object.is(pool, db), pool.isTransaction)
      return {}
    },
    audited: { target: () => 'nothing', view: async () => undefined },
  })
  await reading.serve(call)
  await changing.serve(call)
  expect(seen).toEqual([true, false, false, true])
})

const ADMIN = { username: 'admin', role: 'admin', applicationId: null, rights: [] } as const
