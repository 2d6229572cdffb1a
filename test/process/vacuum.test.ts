// The embedded database has no autovacuum: housekeeping gives back the room of what was deleted. On both, it has tables that grow analysed.
import { sql } from 'kysely'
import pg from 'pg'
import { expect, test } from 'vitest'
import { type Database, openDatabase } from '../../src/storage/database/database.ts'
import { analyzeGrown, vacuumFullest } from '../../src/storage/vacuum.ts'
import { createPostgresDatabase, openMigratedInMemory, serverUrl } from '../helpers/app.ts'

// On PostgreSQL the embedded database is not looked at again.
const embedded = test.skipIf(serverUrl() !== undefined)

embedded('a table that is filled and emptied again and again does not grow', async () => {
  const database = await openMigratedInMemory()
  const sizes: number[] = []
  for (let round = 0; round < 6; round += 1) {
    await fillAndEmpty(database, round)
    await vacuumFullest(database.db)
    sizes.push(await sizeOf(database))
  }
  // 18,000 rows have come and gone; without a vacuum the last size is six times that of one round.
  expect(Math.max(...sizes.slice(1)), sizes.join()).toBeLessThan(2 * Math.max(...sizes.slice(0, 2)))
  await database.close()
})

embedded('a table with few dead rows is left alone', async () => {
  const database = await openMigratedInMemory()
  await sql`insert into unique_value select decode(md5(i::text), 'hex'), now() from generate_series(1, 100) i`.execute(
    database.db,
  )
  await sql`delete from unique_value`.execute(database.db)
  await waitForStatistics(database)
  await vacuumFullest(database.db)
  expect(await countVacuums(database)).toBe(0)
  await database.close()
})

embedded('a table that has grown is analysed, and again when it has doubled', async () => {
  const database = await openMigratedInMemory()
  const counts: number[] = []
  for (const [from, to] of GROWTH) {
    await sql`insert into unique_value select decode(md5(i::text), 'hex'), now() from generate_series(${from}::int, ${to}::int) i`.execute(
      database.db,
    )
    await waitForStatistics(database)
    await analyzeGrown(database.db, neverCalled)
    counts.push(await countAnalyses(database))
  }
  expect(counts).toEqual([0, 1, 1, 2])
  await database.close()
})

embedded('a table that was never analysed is, though nothing has counted its rows, as after pg_upgrade', async () => {
  const database = await openMigratedInMemory()
  await fill(database, 0)
  await sql`select pg_stat_reset()`.execute(database.db)
  await analyzeGrown(database.db, neverCalled)
  await waitForStatistics(database)
  expect(await countAnalyses(database)).toBe(1)
  await sql`select pg_stat_reset()`.execute(database.db)
  await analyzeGrown(database.db, neverCalled)
  await waitForStatistics(database)
  expect(await countAnalyses(database)).toBe(0)
  await database.close()
})

embedded('the smaller tables are analysed first, and the others also after the database ended the analysis of one', async () => {
  const database = await openMigratedInMemory()
  // The analysis of an index calls its function.
  const makeFunction = (body: string) =>
    sql`create or replace function part_of(key bytea) returns bytea immutable language plpgsql as ${sql.lit(`begin ${body}; end`)}`.execute(
      database.db,
    )
  await makeFunction('return key')
  for (const [name, rows] of [
    ['grown_4', 9_000],
    ['grown_3', 7_500],
    ['grown_2', 6_000],
    ['grown_1', 4_500],
  ] as const) {
    await sql`create table ${sql.table(name)} (key bytea)`.execute(database.db)
    await sql`insert into ${sql.table(name)} select decode(md5(i::text), 'hex') from generate_series(1, ${rows}::int) i`.execute(
      database.db,
    )
  }
  await sql`create index on grown_1 (part_of(key))`.execute(database.db)
  await makeFunction(`raise 'too long' using errcode = 'query_canceled'`)
  // As after pg_upgrade: nothing has counted the rows.
  await sql`update pg_class set reltuples = -1, relpages = 0 where relname = 'grown_1'`.execute(database.db)
  await waitForStatistics(database)
  await sql`select pg_stat_reset()`.execute(database.db)
  await expect(analyzeGrown(database.db, neverCalled)).rejects.toThrow('too long')
  await waitForStatistics(database)
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables where analyze_count > 0 order by 1`.execute(database.db)
  expect(rows.map(({ name }) => name)).toEqual(['grown_2', 'grown_3'])
  await database.close()
})

embedded('a table whose rows come and go is not analysed again', async () => {
  const database = await openMigratedInMemory()
  for (let round = 0; round < 4; round += 1) {
    await fill(database, round)
    await analyzeGrown(database.db, neverCalled)
    // A vacuum of a table that is empty for a moment has the planner expect no rows again.
    await sql`delete from unique_value`.execute(database.db)
    await sql`insert into unique_value select decode(md5(${`left ${round}-`} || i), 'hex'), now() from generate_series(1, 10) i`.execute(
      database.db,
    )
    await sql`vacuum unique_value`.execute(database.db)
    await waitForStatistics(database)
  }
  expect(await countAnalyses(database)).toBe(1)
  await database.close()
})

test.skipIf(serverUrl() === undefined)(
  'a table that somebody keeps for long, as the making of an index does, is left for later',
  async () => {
    const place = await createPostgresDatabase()
    const database = await openDatabase({ databaseUrl: place.databaseUrl, dataDir: '', poolSize: 1 })
    await fill(database, 0)
    const holder = new pg.Client({ connectionString: place.adminUrl })
    await holder.connect()
    await holder.query('begin')
    await holder.query('lock table unique_value in share update exclusive mode')
    await analyzeGrown(database.db, neverCalled)
    expect(await countAnalyses(database)).toBe(0)
    await holder.query('rollback')
    await analyzeGrown(database.db, neverCalled)
    await waitForStatistics(database)
    expect(await countAnalyses(database)).toBe(1)
    await holder.end()
    await database.close()
    await place.drop()
  },
)

/** For a second failure. */
const neverCalled = (err: unknown): never => {
  throw err
}

/** First and last row of each round: few, many, few more, more than twice as many. */
const GROWTH = [
  [1, 100],
  [101, 1_000],
  [1_001, 1_500],
  [1_501, 3_000],
] as const

async function fillAndEmpty(database: Database, round: number): Promise<void> {
  await fill(database, round)
  await sql`delete from unique_value`.execute(database.db)
  await waitForStatistics(database)
}

async function fill(database: Database, round: number): Promise<void> {
  await sql`
    insert into unique_value select decode(md5(${`${round}-`} || i), 'hex'), now() from generate_series(1, 3000) i`.execute(
    database.db,
  )
  await waitForStatistics(database)
}

/** They are written with a delay; at the latest when asked for. */
const waitForStatistics = async ({ db }: Database): Promise<void> =>
  void (await sql`select pg_stat_force_next_flush()`.execute(db))

async function sizeOf({ db }: Database): Promise<number> {
  const { rows } = await sql<{ size: number }>`select pg_total_relation_size('unique_value')::int as size`.execute(db)
  return rows[0]?.size ?? 0
}

async function countAnalyses({ db }: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select analyze_count::int as count from pg_stat_user_tables where relname = 'unique_value'`.execute(db)
  return rows[0]?.count ?? 0
}

async function countVacuums({ db }: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(vacuum_count), 0)::int as count from pg_stat_user_tables`.execute(db)
  return rows[0]?.count ?? 0
}
