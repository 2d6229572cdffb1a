// Polled endpoints write nothing, and find their rows by an index however many operations there are (cloud §11, mobile-token §4.1).
import { sql } from 'kysely'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { storeAuthenticationAndLock } from '../../../src/storage/request/authentication.ts'
import type { Db, Tx } from '../../../src/storage/database/database.ts'
import * as transitions from '../../../src/storage/operation/transitions.ts'
import * as operations from '../../../src/storage/operation/operations.ts'
import { createTokenReads } from '../../../src/storage/token/reads.ts'
import { createPostgresDatabase, serverUrl } from '../../helpers/app.ts'
import { member } from '../../../phone/http.ts'
import { recordQueries } from '../../helpers/recorded-queries.ts'
import { expectError } from '../../helpers/expectations.ts'
import { type Holder, type OperationWorld, PAYMENT_DATA, startOperationWorld } from '../../helpers/operation-world.ts'
import { askReference, DIALECTS } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'

vi.setConfig({ testTimeout: 180_000 })

const ON_POSTGRES = serverUrl() !== undefined

describe('what is polled', () => {
  let world: OperationWorld
  beforeAll(async () => {
    // Sealing and housekeeping write now and then, on a busy machine during any 50 reads.
    world = await startOperationWorld({ env: { PAWL_MOBILE_READS_PER_MINUTE: '100000' }, worksInBackground: false })
    await countWrites(world.db)
  })
  afterAll(() => world.close())

  test('writes nothing: 50 reads of an operation by the bank, 50 lists and details by the phone', async () => {
    const holder = await world.holder()
    const pending = await world.operation(holder.userId)
    const list = await holder.phone.prepareTokenCall('list', holder.token)
    const detail = await holder.phone.prepareTokenCall('detail', holder.token, { id: pending.id })
    const count = await holder.phone.prepareTokenCall('inboxCount', holder.token)
    const poll = async () => {
      expect(member(expectOk(await world.bank.readOperation(pending.id)).json, 'status')).toBe('PENDING')
      for (const request of [list, detail, count]) expectOk(await holder.phone.send(request))
    }
    const before = await readWrites(world.db)
    for (let i = 0; i < 50; i++) await poll()
    expect(await readWrites(world.db)).toEqual(before)
    // The count does count.
    expectOk(await world.bank.cancelOperation(pending.id))
    expect(Number((await readWrites(world.db)).rows)).toBeGreaterThan(Number(before.rows))
  })
})

describe('an operation whose time is over', () => {
  test('is EXPIRED for everybody who reads it, though nothing can store that', async () => {
    const world = await startOperationWorld({ env: { PAWL_REFERENCE_API: 'true' } })
    try {
      await refuseExpiry(world.db)
      const holder = await world.holder()
      const { id } = await world.operation(holder.userId, { template: await world.template({ expirationSeconds: 60 }) })
      await world.advance(60_000)
      expect(member(expectOk(await world.bank.readOperation(id)).json, 'status')).toBe('EXPIRED')
      const list = await holder.phone.send(await holder.phone.prepareTokenCall('list', holder.token))
      expect(member(expectOk(list).json, 'responseObject')).toEqual([])
      const detail = await holder.phone.prepareTokenCall('detail', holder.token, { id })
      expectError(await holder.phone.send(detail), 400, 'OPERATION_EXPIRED')
      const history = await holder.phone.exchange(holder.phone.prepareSignedCall('history'))
      expect(member(history, 'responseObject')).toEqual([expect.objectContaining({ id, status: 'EXPIRED' })])
      expectError(await world.bank.offlineQr(id), 400, 'ERROR_OPERATION_STATE_CHANGE')
      expectError(await world.bank.cancelOperation(id), 400, 'ERROR_OPERATION_STATE_CHANGE')
      expectError(await holder.phone.send(holder.phone.prepareAuthorize({ id, data: PAYMENT_DATA })), 400, 'OPERATION_EXPIRED')
      expectError(await holder.phone.send(holder.phone.prepareReject(id)), 400, 'OPERATION_EXPIRED')
      const search = async (query: string) =>
        member(expectOk(await world.bank.call('GET', `/admin/applications/test-app/operations?${query}`)).json, 'operations')
      expect(await search(`userId=${holder.userId}`)).toEqual([expect.objectContaining({ operationId: id, status: 'EXPIRED' })])
      // Another one of the user waits, so that a search for what waits finds something.
      const waiting = await world.operation(holder.userId)
      for (const query of [`userId=${holder.userId}`, `userIdPart=${holder.userId}`])
        expect(await search(`status=PENDING&${query}`)).toEqual([
          expect.objectContaining({ operationId: waiting.id, status: 'PENDING' }),
        ])
      for (const dialect of DIALECTS)
        expect(
          await askReference(world.bank, dialect, 'operation/list/pending', {
            userId: holder.userId,
            applications: ['test-app'],
          }),
        ).toEqual([expect.objectContaining({ id: waiting.id, status: 'PENDING' })])
      expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0, finalizedAt: null })
    } finally {
      await world.close()
    }
  })
})

describe.runIf(ON_POSTGRES)('among 300,000 operations', () => {
  let world: OperationWorld
  let holder: Holder
  let client: Client
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await createPostgresDatabase()
    drop = database.drop
    world = await startOperationWorld({ databaseUrl: database.databaseUrl, env: { PAWL_MOBILE_READS_PER_MINUTE: '100000' } })
    holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    client = new Client({ connectionString: database.databaseUrl })
    await client.connect()
    await fill(client, id)
    for (const userId of ['user-7', 'heavy']) await copyPhone(client, userId)
  }, 180_000)
  afterAll(async () => {
    await client.end()
    await world.close()
    await drop()
  })

  const at = new Date('2026-06-01T00:00:00Z')
  const viewer = (userId: string) => ({ applicationId: 'test-app', userId, activationId: ID })
  const AUDIT = { applicationId: 'test-app', userId: 'user-7', activationId: ID, eventType: 't', eventData: '{}', occurredAt: at }
  const OUTCOME = {
    activationId: ID,
    rowVersion: 1,
    from: 'ACTIVE',
    counter: 1,
    ctrData: new Uint8Array(1),
    masterSecret: null,
    failedAttempts: 0,
    state: 'ACTIVE',
    blockedReason: null,
    blockExpiresAt: null,
    blocksInRow: 0,
    acceptedFor: null,
    highestVersion: null,
  } as const
  const STATEMENTS: Record<string, (db: Db, tx: Tx) => Promise<unknown>> = {
    'GET /operations and the QR code': (db) => operations.findOperation(db, 'test-app', ID),
    'operation/detail': (db) => createTokenReads(db).operation({ tokenId: tokenOf('user-7'), at, operationId: ID }),
    'operation/list': (db) => createTokenReads(db).pendingOperations({ tokenId: tokenOf('user-7'), at }),
    'operation/list of a user with 20,000 operations': (db) =>
      createTokenReads(db).pendingOperations({ tokenId: tokenOf('heavy'), at }),
    'operation/history': (db) => operations.listUserOperations(db, viewer('user-7'), 100),
    'operation/history of a user with 20,000 operations': (db) => operations.listUserOperations(db, viewer('heavy'), 100),
    'the lock of a decision': (_db, tx) => operations.lockOperation(tx, 'test-app', ID, ID),
    'a right code and the lock of its decision': (_db, tx) => storeAuthenticationAndLock(tx, { ...OUTCOME, at }, AUDIT, ID),
    'the end of an operation': (db) =>
      transitions.endOperation(db, { operationId: ID, to: 'APPROVED', statusReason: null, additionalData: null, at }, AUDIT),
    'a cancellation by the bank': (db) =>
      transitions.cancelPendingOperation(
        db,
        'test-app',
        { operationId: ID, to: 'CANCELED', statusReason: null, additionalData: null, at },
        AUDIT,
      ),
    'a counted failure': (db) => transitions.countOperationFailure(db, ID, at, AUDIT),
    'a claim': (db) => transitions.claimOperation(db, ID, AUDIT),
    'the search of an application': (db) => operations.searchOperations(db, 'test-app', { limit: 100 }),
    'the search, a later page': (db) =>
      operations.searchOperations(db, 'test-app', { after: { createdAt: at, operationId: ID }, limit: 100 }),
  }

  test.each(Object.entries(STATEMENTS))('%s uses an index', async (_, call) => {
    for (const { text, values } of await recordQueries(call)) {
      // As planned for these values, and as planned once for all.
      for (const plan of [await explain(client, text, values), await explainPrepared(client, text, values)]) {
        const nodes = listNodes(plan)
        expect(nodes.filter((node) => node.type === 'Seq Scan' && node.relation === 'operation')).toEqual([])
        expect(
          nodes.filter((node) => node.type.startsWith('Index') || node.type.startsWith('Bitmap Index')).length,
        ).toBeGreaterThan(0)
      }
    }
  })

  test.each(Object.keys(STATEMENTS).filter((name) => /^(GET|operation)/.test(name)))('%s touches few pages', async (name) => {
    for (const { text, values } of await recordQueries(STATEMENTS[name] as never)) {
      const plan = await explain(client, text, values, 'analyze, buffers, ')
      // A list of 100 takes an index and at most a page for each row; a scan would take more than 6,000.
      expect(Number(plan['Shared Hit Blocks']) + Number(plan['Shared Read Blocks'])).toBeLessThan(1_000)
    }
  })

  test('polling is quick over HTTP', async () => {
    const list = await holder.phone.prepareTokenCall('list', holder.token)
    const poll = async () => {
      expect(member(expectOk(await world.bank.readOperation(ID)).json, 'operationId')).toBe(ID)
      expect(member(expectOk(await holder.phone.send(list)).json, 'responseObject')).toHaveLength(1)
    }
    // Often enough for the server to settle for a plan that does not know the values.
    for (let i = 0; i < 10; i++) await poll()
    const timeOf = async (act: () => Promise<unknown>): Promise<number> => {
      const start = performance.now()
      await act()
      return performance.now() - start
    }
    const times: { poll: number; scan: number }[] = []
    // By turns, so that what else the machine does slows both.
    for (let i = 0; i < 10; i++)
      times.push({
        poll: await timeOf(poll),
        scan: await timeOf(() => client.query(FOUR_SCANS)),
      })
    const least = (of: 'poll' | 'scan'): number => Math.min(...times.map((time) => time[of]))
    // Milliseconds when nothing else runs; scans of a million rows take some hundred.
    expect(least('poll')).toBeLessThan(least('scan') / 3)
  })
})

/** Of the operation that every statement about one looks for. */
const ID = '00000000-0000-4000-8000-000000000007'

const SCAN = `select 1 from operation where data = 'nowhere'`
const FOUR_SCANS = [SCAN, SCAN, SCAN, SCAN].join(' union all ')

/** 300,000 operations of 10,000 users and one with 20,000, one in fifteen pending; all of them copies of the operation `id`. */
async function fill(client: Client, id: string): Promise<void> {
  const { rows } = await client.query('select usesuper as "isSuper" from pg_user where usename = current_user')
  // Copies violate nothing and nobody is told of them; without the checks of all rows it is three times as quick.
  if (member(rows[0], 'isSuper') === true) await client.query('set session_replication_role = replica')
  await client.query(
    `insert into operation (operation_id, application_id, user_id, template_revision_id, template_name, operation_type, language,
       parameters, data, status, signature_types, max_failure_count, risk_flags, created_at, expires_at)
     select '00000000-0000-4000-8000-' || lpad(i::text, 12, '0'), o.application_id,
       case when i % 15 = 11 then 'heavy' else 'user-' || i % 10000 end, o.template_revision_id, o.template_name, o.operation_type,
       o.language, o.parameters, o.data, case when i / 10000 % 20 = 0 then 'PENDING' else 'APPROVED' end, o.signature_types, 5, '',
       '2026-06-01'::timestamptz - i * interval '1 second', '2027-06-01'::timestamptz - i * interval '1 second'
     from generate_series(1, 300000) i, operation o where o.operation_id = $1`,
    [id],
  )
  await client.query('analyze operation')
}

const tokenOf = (userId: string): string => `token of ${userId}`

/** Gives a user a phone with a token; both are copies of those that are there. */
async function copyPhone(client: Client, userId: string): Promise<void> {
  const changed = { activation_id: userId, user_id: userId, activation_code_hash: `\\x${Buffer.from(userId).toString('hex')}` }
  await client.query(
    `insert into activation select copied.* from (select * from activation limit 1) a,
     jsonb_populate_record(a::activation, $1::jsonb) copied`,
    [JSON.stringify(changed)],
  )
  await client.query(
    `insert into token select copied.* from (select * from token limit 1) t, jsonb_populate_record(t::token, $1::jsonb) copied`,
    [JSON.stringify({ token_id: tokenOf(userId), activation_id: userId })],
  )
}

type Plan = Readonly<Record<string, unknown>>

async function explain(client: Client, text: string, values: readonly unknown[], options = ''): Promise<Plan> {
  const { rows } = await client.query(`explain (${options}format json) ${text}`, [...values])
  return planOf(rows)
}

/** The plan of a prepared statement for any values. */
async function explainPrepared(client: Client, text: string, values: readonly unknown[]): Promise<Plan> {
  await client.query(`prepare asked as ${text}; set plan_cache_mode = force_generic_plan`)
  try {
    const { rows } = await client.query(`explain (format json) execute asked(${values.map(toLiteral).join(', ')})`)
    return planOf(rows)
  } finally {
    await client.query('reset plan_cache_mode; deallocate asked')
  }
}

const planOf = ([row]: readonly unknown[]): Plan => (member(row, 'QUERY PLAN') as { Plan: Plan }[])[0]?.Plan ?? {}

function toLiteral(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'number' ? String(value) : `'${value instanceof Date ? value.toISOString() : String(value)}'`
}

function listNodes(plan: Plan): { readonly type: string; readonly relation: unknown }[] {
  const children = (plan['Plans'] as Plan[] | undefined) ?? []
  return [{ type: String(plan['Node Type']), relation: plan['Relation Name'] }, ...children.flatMap(listNodes)]
}

/** Lets nobody store that an operation has expired, the work in the background included. */
async function refuseExpiry(db: Db): Promise<void> {
  await sql`
    create function refuse_expiry() returns trigger language plpgsql as
    'begin if new.status = ''EXPIRED'' then raise exception ''refused''; end if; return new; end'`.execute(db)
  await sql`create trigger refuse_expiry before update on operation for each row execute function refuse_expiry()`.execute(db)
}

/** From here on every row that is inserted, changed or deleted in any table moves a sequence, also when it is rolled back. */
async function countWrites(db: Db): Promise<void> {
  await sql`create sequence written_rows`.execute(db)
  await sql`
    create function count_write() returns trigger language plpgsql as
    'begin perform nextval(''written_rows''); return coalesce(new, old); end'`.execute(db)
  const { rows } = await sql<{
    name: string
  }>`select tablename as name from pg_tables where schemaname = current_schema()`.execute(db)
  expect(rows.length).toBeGreaterThan(15)
  for (const { name } of rows) {
    await sql`create trigger count_write before insert or update or delete on ${sql.id(name)} for each row execute function count_write()`.execute(
      db,
    )
  }
}

/** The rows written so far; on the embedded database also the transactions that wanted to write or to lock a row. */
async function readWrites(db: Db): Promise<{ readonly rows: unknown; readonly transactions: unknown }> {
  const counted = await sql<{ rows: unknown }>`select last_value as rows from written_rows`.execute(db)
  const { rows } = await sql<{ next: unknown }>`select pg_snapshot_xmax(pg_current_snapshot())::text as next`.execute(db)
  // A PostgreSQL server counts those of all its databases.
  return { rows: counted.rows[0]?.rows, transactions: ON_POSTGRES ? undefined : rows[0]?.next }
}
