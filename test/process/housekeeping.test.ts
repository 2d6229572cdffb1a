// Background work holds up nothing else: operations expire while hours of old rows are deleted.
import { type KyselyPlugin, sql } from 'kysely'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHousekeeping } from '../../src/domain/housekeeping.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { HOUR } from '../helpers/expectations.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'
import { expectOk } from '../helpers/world.ts'

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ worksInBackground: false })
})
afterAll(() => world.close())

/** As many rows as one statement deletes. */
const BATCH = 500

const isUnderWay = Promise.withResolvers<void>()
const isExpiry = Promise.withResolvers<void>()
let batches = 0
/** A database that takes longer for a full batch than one kind of rows has in a round, and for the next one until operations have expired. */
const slow: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  transformResult: async ({ result }) => {
    if (result.rows.length !== BATCH) return result
    batches += 1
    isUnderWay.resolve()
    await (batches === 1 ? sleep(5_500) : isExpiry.promise)
    return result
  },
}

test('operations expire while old ones are deleted', async () => {
  const [context] = world.contexts
  if (context === undefined) throw new TypeError('a world without a server')
  const { userId } = await world.holder()
  const over = await world.operation(userId)
  expectOk(await world.bank.cancelOperation(over.id))
  await sql`
    insert into operation select (jsonb_populate_record(o,
      jsonb_build_object('operation_id', 'old ' || i, 'created_at', o.created_at - interval '1000 days'))).*
    from operation o, generate_series(1, ${5 * BATCH}::int) i where operation_id = ${over.id}`.execute(world.db)
  const waiting = await world.operation(userId)
  const stop = startHousekeeping({ ...context, db: context.db.withPlugin(slow) as Pool })
  const countOld = async (): Promise<number> => {
    const { rows } = await sql<{ n: number }>`select count(*)::int as n from operation where operation_id like 'old %'`.execute(
      world.db,
    )
    return rows[0]?.n ?? Number.NaN
  }
  await isUnderWay.promise
  await world.advance(HOUR)
  const isExpired = async () => (await world.stored(waiting.id)).status
  await expect.poll(isExpired, { interval: 50 }).toBe('EXPIRED')
  expect(await countOld()).toBeGreaterThan(0)
  isExpiry.resolve()
  await expect.poll(countOld, { interval: 50 }).toBe(0)
  await stop()
})
