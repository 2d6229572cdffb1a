// Every index of the tables that grow with requests is there for a statement that uses it, and what is written most often changes no index
// (docs/PERFORMANCE.md).
import { readFileSync } from 'node:fs'
import { CompiledQuery, sql } from 'kysely'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeAuthentication } from '../../src/storage/request/authentication.ts'
import { createExchangeBasisReader } from '../../src/storage/activation/keys.ts'
import { endTemporaryBlocks, removeExpiredActivations } from '../../src/storage/activation/expiry.ts'
import { findActivation, findRegistrations } from '../../src/storage/activation/find.ts'
import { listRegistrations } from '../../src/storage/activation/search.ts'
import { type Db, inTransaction, type Pool, type Tx } from '../../src/storage/database/database.ts'
import { countOperationFailure, expireOperations } from '../../src/storage/operation/transitions.ts'
import { findOperation, listUserOperations, searchOperations } from '../../src/storage/operation/operations.ts'
import { createTokenReads } from '../../src/storage/token/reads.ts'
import { member } from '../../phone/http.ts'
import { createPostgresDatabase, serverUrl } from '../helpers/app.ts'
import { recordQueries } from '../helpers/recorded-queries.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'

const at = new Date('2026-06-01T00:00:00Z')
const anyState = {
  applicationId: 'test-app',
  userId: null,
  userIdPrefix: null,
  state: null,
  protocolVersion: null,
  after: null,
  at,
  limit: 51,
}
const hash = new Uint8Array(32)
const exchange = { applicationId: 'test-app', codeHash: hash, value: null, secondValue: null, at }

/** An index, and the statement that it is there for. */
const USES: Record<string, (db: Db, names: Names) => Promise<unknown>> = {
  activation_pkey: (db) => findActivation(db, 'a-7', at),
  activation_application_id_activation_code_hash_key: (db) => createExchangeBasisReader(db)(exchange),
  activation_live: (db) => findRegistrations(db, 'test-app', 'u-7', at),
  activation_user: (db) => listRegistrations(db, { ...anyState, userId: 'u-7' }),
  activation_user_prefix: (db) => listRegistrations(db, { ...anyState, userIdPrefix: 'U-77' }),
  activation_newest: (db) => listRegistrations(db, anyState),
  activation_ended: (db) => listRegistrations(db, { ...anyState, state: 'BLOCKED' }),
  activation_due: (db) => removeExpiredActivations(db, at, 100),
  activation_block_due: (db) => endTemporaryBlocks(db, at, 100),
  operation_pkey: (db) => findOperation(db, 'test-app', 'o-7'),
  operation_pending: (db, { tokenId }) => createTokenReads(db).pendingOperations({ tokenId, at }),
  operation_user: (db) => listUserOperations(db, { applicationId: 'test-app', userId: 'u-7', activationId: 'a-7' }, 100),
  operation_newest: (db) => searchOperations(db, 'test-app', { limit: 100 }),
  operation_ended: (db) => searchOperations(db, 'test-app', { status: 'FAILED', limit: 100 }),
  operation_due: (db) => expireOperations(db, at, 100),
}

interface Names {
  readonly tokenId: string
}

test('docs/PERFORMANCE.md names each of these indexes', () => {
  const document = readFileSync(new URL('../../docs/PERFORMANCE.md', import.meta.url), 'utf8')
  const told = [...document.matchAll(/^\| `((?:activation|operation)_\w+)` \|/gm)].map(([, name]) => name)
  expect(told.toSorted()).toEqual(Object.keys(USES).toSorted())
})

describe.runIf(serverUrl() !== undefined)('on PostgreSQL', () => {
  let world: OperationWorld
  let db: Pool
  let names: Names
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await createPostgresDatabase()
    drop = database.drop
    world = await startOperationWorld({ databaseUrl: database.databaseUrl, worksInBackground: false })
    const [context] = world.contexts
    if (context === undefined) throw new TypeError('a world without a server')
    ;({ db } = context)
    const holder = await world.holder()
    await world.operation(holder.userId)
    names = { tokenId: holder.token.id }
    await fill(database.databaseUrl)
  })
  afterAll(async () => {
    await world.close()
    await drop()
  })

  test('there are no others', async () => {
    const { rows } = await sql<{ name: string }>`
      select indexname as name from pg_indexes where tablename in ('activation', 'operation')`.execute(db)
    expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(USES).toSorted())
  })

  test.each(Object.entries(USES))('%s is used', async (index, call) => {
    const plans: string[] = []
    // The recorder answers every query with no row.
    for (const { text, values } of await recordQueries((db) => call(db, names).catch(() => undefined))) {
      const { rows } = await db.executeQuery(CompiledQuery.raw(`explain ${text}`, [...values]))
      plans.push(...rows.map((row) => String(member(row, 'QUERY PLAN'))))
    }
    expect(plans.filter((line) => line.includes(` ${index} `) || line.endsWith(` ${index}`))).not.toEqual([])
  })

  test('a code moves its activation without an entry in any index', async () => {
    const moved = await countHot(db, 'activation', 300, async (tx, i) => {
      // In pages of their own: whether the room of an older version is free again depends on what other databases of the server do.
      const activationId = `a-${7 + i * 20}`
      const activation = await findActivation(tx, activationId, at)
      if (activation?.ctrData == null) throw new TypeError('no such activation')
      const { rowVersion, counter, ctrData, blocksInRow } = activation
      const outcome = { activationId, rowVersion, counter: counter + 1, ctrData, masterSecret: null, failedAttempts: 0 }
      const rest = {
        from: 'ACTIVE',
        state: 'ACTIVE',
        blockedReason: null,
        blockExpiresAt: null,
        blocksInRow,
        acceptedFor: null,
      } as const
      const audit = { ...auditOf(activationId), applicationId: activation.applicationId, userId: activation.userId }
      expect(await storeAuthentication(tx, { ...outcome, ...rest, highestVersion: '3.3', at }, audit)).toBe(true)
    })
    expect(moved.updated).toBe(300)
    expect(moved.hot).toBeGreaterThanOrEqual(285)
  })

  test('so does a failed approval', async () => {
    const counted = await countHot(db, 'operation', 4, async (tx) => {
      expect(await countOperationFailure(tx, 'o-20', at, auditOf('a-7'))).toBe('PENDING')
    })
    expect(counted.updated).toBe(4)
    expect(counted.hot).toBeGreaterThanOrEqual(3)
  })
})

const auditOf = (activationId: string) => ({
  applicationId: 'test-app',
  userId: 'u-7',
  activationId,
  eventType: 'test_of_indexes',
  eventData: '',
  occurredAt: at,
})

/** How many rows `times` transactions updated, and how many of these changed no index. */
async function countHot(
  db: Pool,
  table: string,
  times: number,
  change: (tx: Tx, i: number) => Promise<void>,
): Promise<{ readonly updated: number; readonly hot: number }> {
  let [updated, hot] = [0, 0]
  for (let i = 0; i < times; i++) {
    await inTransaction(db, async (tx) => {
      const count = async () => {
        const { rows } = await sql<{ updated: string; hot: string }>`
          select pg_stat_get_xact_tuples_updated(${table}::regclass) as updated,
            pg_stat_get_xact_tuples_hot_updated(${table}::regclass) as hot`.execute(tx)
        return { updated: Number(rows[0]?.updated), hot: Number(rows[0]?.hot) }
      }
      const before = await count()
      await change(tx, i)
      const after = await count()
      updated += after.updated - before.updated
      hot += after.hot - before.hot
    })
  }
  return { updated, hot }
}

/** 6,000 activations of as many users and 15,000 operations; all of them copies of those that are there. */
async function fill(databaseUrl: string): Promise<void> {
  // Not a connection of the server's: those end a statement that takes long.
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    for (const table of ['activation', 'operation']) await client.query(`alter table ${table} disable trigger user`)
    for (let first = 1; first <= 6000; first += BATCH) await client.query(COPY_ACTIVATIONS, [first, first + BATCH - 1, at])
    for (let first = 1; first <= 15_000; first += BATCH) await client.query(COPY_OPERATIONS, [first, first + BATCH - 1, at])
    for (const table of ['activation', 'operation']) {
      await client.query(`alter table ${table} enable trigger user`)
      await client.query(`vacuum analyze ${table}`)
    }
  } finally {
    await client.end()
  }
}

const BATCH = 1000
const COPY_ACTIVATIONS = `
  insert into activation select copied.* from (select * from activation where activation_id not like 'a-%' limit 1) a,
    generate_series($1::int, $2::int) i,
    jsonb_populate_record(null::activation, to_jsonb(a) || jsonb_build_object('activation_id', 'a-' || i, 'user_id', 'u-' || i,
      'activation_code_hash', '\\x' || md5(i::text), 'created_at', $3::timestamptz - i * interval '1 second',
      'expires_at', $3::timestamptz - i * interval '1 second' + interval '1 hour',
      'state', case i % 500 when 0 then 'BLOCKED' when 1 then 'CREATED' when 2 then 'REMOVED' else 'ACTIVE' end,
      'block_expires_at', case i % 500 when 0 then $3::timestamptz - i * interval '1 second' end)) copied`
const COPY_OPERATIONS = `
  insert into operation select copied.* from (select * from operation where operation_id not like 'o-%' limit 1) o,
    generate_series($1::int, $2::int) i,
    jsonb_populate_record(null::operation, to_jsonb(o) || jsonb_build_object('operation_id', 'o-' || i, 'user_id', 'u-' || i % 5000,
      'created_at', $3::timestamptz - i * interval '1 second',
      'expires_at', $3::timestamptz - i * interval '1 second' + interval '1 hour', 'max_failure_count', 9,
      'status', case i % 500 when 0 then 'FAILED' when 20 then 'PENDING' else 'APPROVED' end)) copied`
