// Migrations of a database that holds rows of every table of the first one, without rights beyond those of its owner.
import { randomBytes, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { endTemporaryBlocks } from '../../src/storage/activation/expiry.ts'
import { migrations } from '../../migrations/index.ts'
import { type Database, type Db, openDatabase, openInMemory } from '../../src/storage/database/database.ts'
import { migrate, migrateDatabase, requireMigrated } from '../../src/storage/database/migrate.ts'
import { insertWrappedKey } from '../../src/storage/secrets/wrapped-keys.ts'
import { createPostgresDatabase, openMigratedInMemory, serverUrl, startTestServer } from '../helpers/app.ts'
import { runAll, urlOf } from '../helpers/hostile.ts'

const open = (databaseUrl: string): Promise<Database> => openDatabase({ databaseUrl, dataDir: '', poolSize: 2 })

/** As the first release left it. */
async function prepare(db: Db): Promise<void> {
  const [first] = Object.entries(migrations)
  await migrate(db, { known: Object.fromEntries(first ? [first] : []) })
  for (const statement of ROWS) await sql.raw(statement).execute(db)
}

async function expectMigrated(db: Db): Promise<void> {
  const { rows } = await sql`
    select (select count(*)::int from activation where flags = '' and commit_phase = 'ON_COMMIT' and otp_hash is null
        and block_expires_at is null and blocks_in_row = 0) as activations,
      (select count(*)::int from audit_event) as events, (select count(*)::int from credential) as credentials`.execute(db)
  expect(rows).toEqual([{ activations: 50, events: 30, credentials: 3 }])
  // Each keeps the one slot of a user who has one phone, so that a second live one is refused as before.
  const second = sql`
    insert into activation (activation_id, application_id, user_id, state, activation_code_hash, server_public_key, server_private_key,
      max_failed_attempts, created_at, expires_at) values ('b2', 'app', 'u2', 'CREATED', '\\x07', '\\x00', '\\x00', 5, now(), now())`
  await expect(second.execute(db)).rejects.toThrow('activation_live')
  // The trigger writes with the rights of the role that changes the row.
  await sql`
    insert into webhook (webhook_id, application_id, name, kind, url, attributes, secret, created_at)
    values ('w', 'app', 'n', 'ACTIVATION', 'https://bank.example', '', decode('00', 'hex'), now())`.execute(db)
  await sql`update activation set state = 'REMOVED' where activation_id = 'a3'`.execute(db)
  const deliveries = await db.selectFrom('webhook_delivery').select('object_id').execute()
  expect(deliveries).toEqual([{ object_id: 'a3' }])
  // An activation that was blocked before there were temporary blocks stays blocked.
  expect(await endTemporaryBlocks(db, new Date('9999-01-01'), 100)).toBe(0)
  const blocked = await db.selectFrom('registration').select('activation_id').where('state', '=', 'BLOCKED').execute()
  expect(blocked).toHaveLength(9)
  await sql`update activation set state = 'BLOCKED', block_expires_at = now() where activation_id = 'a2'`.execute(db)
  expect(await endTemporaryBlocks(db, new Date('9999-01-01'), 100)).toBe(1)
}

test.skipIf(serverUrl() !== undefined)('the newest schema is reached from the first one with all that is there', async () => {
  const database = await openInMemory()
  await prepare(database.db)
  expect(await migrateDatabase(database)).toEqual(Object.keys(migrations).slice(1))
  await expectMigrated(database.db)
  await database.close()
})

test.skipIf(serverUrl() === undefined)('and by several processes at once, as the owner of the database alone', async () => {
  const { databaseUrl, adminUrl, name, drop } = await createPostgresDatabase({ isEmpty: true })
  const owner = `pawl_test_${randomUUID().replaceAll('-', '')}`
  await runAll(adminUrl, [
    `create role ${owner} login nosuperuser password 'x'`,
    `alter database ${name} owner to ${owner}`,
    `create schema ${owner} authorization ${owner}`,
  ])
  const url = urlOf(databaseUrl, { role: owner, password: 'x' })
  const databases = await Promise.all(Array.from({ length: 3 }, () => open(url)))
  const [first] = databases
  if (first) await prepare(first.db)
  const done = await Promise.all(databases.map((database) => migrateDatabase(database)))
  // Each is made by one process or the other.
  expect(done.flat().toSorted()).toEqual(Object.keys(migrations).slice(1))
  if (first) await expectMigrated(first.db)
  for (const database of databases) await database.close()
  await drop()
  await runAll(serverUrl() ?? '', [`drop role ${owner}`])
})

test.skipIf(serverUrl() === undefined)('while another process takes columns away', async () => {
  const { databaseUrl, drop } = await createPostgresDatabase({ isEmpty: true })
  const [database, other] = await Promise.all([open(databaseUrl), open(databaseUrl)])
  await prepare(database.db)
  await sql`create table other ()`.execute(other.db)
  const end = new AbortController()
  const changing = (async () => {
    while (!end.signal.aborted) {
      await sql`alter table other add column taken serial`.execute(other.db)
      await sql`alter table other drop column taken`.execute(other.db)
      await sleep(20)
    }
  })()
  const rest = Object.keys(migrations).slice(1)
  const done = await migrateDatabase(database).finally(() => end.abort())
  await changing
  expect(done).toEqual(rest)
  await database.close()
  await other.close()
  await drop()
})

test.skipIf(serverUrl() === undefined)(
  'a migration may take longer than a request, but does not wait long for a table',
  async () => {
    const { databaseUrl, drop } = await createPostgresDatabase({ isEmpty: true })
    const database = await open(databaseUrl)
    const patient = database.openPatient?.()
    const timeouts = async (db: Db) => (await sql`show statement_timeout`.execute(db)).rows
    expect(await timeouts(database.db)).toEqual([{ statement_timeout: '8s' }])
    expect(patient && (await timeouts(patient.db))).toEqual([{ statement_timeout: '0' }])
    await patient?.close()
    await prepare(database.db)
    const holder = await open(databaseUrl)
    await holder.db.transaction().execute(async (tx) => {
      await sql`lock table activation in access share mode`.execute(tx)
      await expect(migrateDatabase(database, { attemptsMax: 2 })).rejects.toThrow('lock timeout')
    })
    expect(await migrate(database.db)).toHaveLength(Object.keys(migrations).length - 1)
    await holder.close()
    await database.close()
    await drop()
  },
)

test.skipIf(serverUrl() === undefined)(
  'while a migration waits for a table, those who use it hardly wait, and then it runs',
  async () => {
    const { databaseUrl, drop } = await createPostgresDatabase({ isEmpty: true })
    const [database, holder] = await Promise.all([open(databaseUrl), open(databaseUrl)])
    await prepare(database.db)
    const held = Promise.withResolvers<void>()
    const isHeld = Promise.withResolvers<void>()
    const holding = holder.db.transaction().execute(async (tx) => {
      await sql`lock table activation in access share mode`.execute(tx)
      isHeld.resolve()
      await held.promise
    })
    await isHeld.promise
    let isDone = false
    const migrating = migrateDatabase(database).finally(() => {
      isDone = true
    })
    // A statement that comes behind a migration that waits for the lock waits as well.
    let longest = 0
    for (let reads = 0; reads < 60; reads += 1) {
      const since = performance.now()
      await sql`select count(*) from activation`.execute(database.db)
      longest = Math.max(longest, performance.now() - since)
      await sleep(50)
    }
    expect(isDone).toBe(false)
    expect(longest).toBeLessThan(2_000)
    held.resolve()
    await holding
    expect(await migrating).toHaveLength(Object.keys(migrations).length - 1)
    await holder.close()
    await database.close()
    await drop()
  },
)

describe.skipIf(serverUrl() !== undefined)('a database that another version has migrated', () => {
  const [last = ''] = Object.keys(migrations).slice(-1)
  const before = Object.fromEntries(Object.entries(migrations).slice(0, -1))
  const longBefore = Object.fromEntries(Object.entries(migrations).slice(0, -2))

  test('serves the version before as it is, and no older one', async () => {
    const database = await openMigratedInMemory()
    expect(await migrate(database.db, { known: before })).toEqual([])
    await requireMigrated(database.db, before)
    const refusal =
      /^the database has 2 migrations \(\d{4}_[\w-]+, \d{4}_[\w-]+\) that this version of pawl does not know; [^\n]+$/
    await expect(migrate(database.db, { known: longBefore })).rejects.toThrow(refusal)
    await expect(requireMigrated(database.db, longBefore)).rejects.toThrow(refusal)
    await database.close()
  })

  test('is refused when it is not simply one ahead', async () => {
    const database = await openMigratedInMemory()
    const other = { ...before, '0000_of-somebody-else': { up: async () => undefined } }
    await expect(migrate(database.db, { known: other })).rejects.toThrow(`the database has migration ${last} that`)
    await database.close()
  })

  test('is left as it is by a start with another master key', async () => {
    const database = await openInMemory()
    await migrate(database.db, { known: before })
    const sealed = createRecordKeys([randomBytes(32)], { randomBytes }).seal(PLACE, randomBytes(32))
    await insertWrappedKey(database.db, PLACE.row, sealed, new Date())
    await expect(startTestServer({ database })).rejects.toThrow('the master key is not the one this database was written with')
    await expect(requireMigrated(database.db)).rejects.toThrow(`the database lacks migration ${last}`)
    await database.close()
  })

  test('is not served without a migration when none may run', async () => {
    const database = await openInMemory()
    await expect(requireMigrated(database.db)).rejects.toThrow('the database lacks')
    await migrate(database.db, { known: before })
    await expect(requireMigrated(database.db)).rejects.toThrow(`the database lacks migration ${last}; run pawl migrate`)
    expect(await migrate(database.db)).toEqual([last])
    await requireMigrated(database.db)
    await database.close()
  })
})

const PLACE = { table: 'wrapped_key', column: 'wrapped_key', row: 'credential-hash' }

const ROWS = [
  `insert into application values ('app', true, default, now())`,
  `insert into application_version values ('k', 'app', 'default', '\\x00', true, now())`,
  `insert into master_key_pair values ('m', 'app', 'EC_P256', '\\x00', '\\x00', now())`,
  `insert into activation (activation_id, application_id, user_id, state, activation_code_hash, server_public_key, server_private_key,
      max_failed_attempts, created_at, expires_at)
    select 'a' || i, 'app', 'u' || i, (array['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'])[1 + i % 5],
      decode(md5(i::text), 'hex'), '\\x00', '\\x00', 5, now(), now()
    from generate_series(1, 50) i`,
  `insert into activation_history (activation_id, from_state, to_state, occurred_at) values ('a1', null, 'CREATED', now())`,
  `insert into token values ('t', 'a1', 'POSSESSION', '\\x00', now())`,
  `insert into temporary_key values ('tk', 'k', 'a1', '\\x00', now())`,
  `insert into unique_value values ('\\x00', now())`,
  `insert into credential (username, role, application_id, salt, created_at)
    values ('a', 'admin', null, '\\x00', now()), ('b', 'integration', 'app', '\\x00', now()), ('c', 'internal', null, '\\x00', now())`,
  `insert into credential_password values ('p', 'a', 'chosen', '\\x00', null, now())`,
  `insert into wrapped_key values ('x', '\\x00', now())`,
  `insert into audit_event (application_id, activation_id, event_type, event_data, occurred_at)
    select case when i % 3 > 0 then 'app' end, 'a1', 't', 'd', now() from generate_series(1, 30) i`,
]
