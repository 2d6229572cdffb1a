// When one role migrates and another one serves (docs/UPGRADE.md), the former may change the partitions that the latter has made.
import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { providePartition } from '../../src/domain/audit/seal.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { findPartitions } from '../../src/storage/audit/partitions.ts'
import { type Database, inTransaction, openDatabase } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl } from '../helpers/app.ts'
import { runAll, urlOf } from '../helpers/hostile.ts'

const id = randomBytes(6).toString('hex')
const [OWNER, SERVER] = [`pawl_test_owner_${id}`, `Serving ${id}`]
const password = randomBytes(12).toString('hex')

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  let place: PostgresDatabase
  beforeAll(async () => {
    place = await createPostgresDatabase({ isEmpty: true })
    await runAll(place.adminUrl, [
      `create role ${OWNER} login password '${password}'`,
      `create role "${SERVER}" login password '${password}'`,
      `grant ${OWNER} to "${SERVER}"`,
      `grant create on database ${place.name} to ${OWNER}`,
      `create schema pawl authorization ${OWNER}`,
      `alter role ${OWNER} set search_path = pawl`,
      `alter role "${SERVER}" set search_path = pawl`,
    ])
  })
  afterAll(async () => {
    await place.drop()
    await runAll(serverUrl() ?? '', [`drop role "${SERVER}"`, `drop role ${OWNER}`])
  })

  async function as<T>(role: string, work: (database: Database) => Promise<T>): Promise<T> {
    const databaseUrl = urlOf(serverUrl() ?? '', { database: place.name, role, password })
    const database = await openDatabase({ databaseUrl, dataDir: '', poolSize: 1 })
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }

  test('a migration reaches the partitions that a server has made', async () => {
    await as(OWNER, ({ db }) => migrate(db))
    const make = async ({ db }: Database) => inTransaction(db, (tx) => providePartition(tx, systemPlatform, 7))
    await as(SERVER, make)
    expect(await as(SERVER, ({ db }) => findPartitions(db))).toHaveLength(1)
    await as(OWNER, ({ db }) => sql`alter table audit_log add column later text`.execute(db))
  })
})
