// A database that answers but takes no writes is not ready: read only, as a standby is, or without room.
import { mkdtempSync, renameSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Database, inTransaction, openDatabase, pingDatabase } from '../../src/storage/database/database.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl } from '../helpers/app.ts'
import { runAll } from '../helpers/hostile.ts'

test.skipIf(serverUrl() !== undefined)(
  'an embedded database whose disk has no room is not ready, until there is some',
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'pawl-test-'))
    const database = await openDatabase({ dataDir, poolSize: 1 })
    await expect(pingDatabase(database)).resolves.toBeUndefined()
    const { bavail, bsize } = statfsSync(dataDir)
    expect(await database.writableBytes?.()).toBeGreaterThan((bavail * bsize) / 2)
    const withRoom = (bytes: number | undefined) => pingDatabase({ ...database, writableBytes: async () => bytes })
    await expect(withRoom(32 * 2 ** 20 - 1)).rejects.toThrow('the disk of the embedded database is full')
    await expect(withRoom(32 * 2 ** 20)).resolves.toBeUndefined()
    // A file system that does not tell its room.
    await expect(withRoom(undefined)).resolves.toBeUndefined()
    // Files that cannot be written: those of a disk that has become read only, or was taken away.
    renameSync(join(dataDir, 'database'), join(dataDir, 'away'))
    await expect(pingDatabase(database)).rejects.toThrow('ENOENT')
    renameSync(join(dataDir, 'away'), join(dataDir, 'database'))
    await expect(pingDatabase(database)).resolves.toBeUndefined()
    // Another transaction that takes longer than a check waits.
    const { promise, resolve } = Promise.withResolvers<void>()
    const held = inTransaction(database.db, () => promise)
    await expect(pingDatabase(database)).rejects.toThrow('within 3000 ms')
    resolve()
    await held
    await database.close()
    rmSync(dataDir, { recursive: true })
  },
)

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  let place: PostgresDatabase
  let database: Database
  beforeAll(async () => {
    place = await createPostgresDatabase()
    database = await openDatabase({ databaseUrl: place.databaseUrl, dataDir: '', poolSize: 2 })
  })
  afterAll(async () => {
    await database.close()
    await place.drop()
  })

  test('one that takes writes is ready', async () => {
    await expect(pingDatabase(database)).resolves.toBeUndefined()
  })

  test('one that is read only is not', async () => {
    const url = new URL(place.databaseUrl)
    url.searchParams.set('options', '-c default_transaction_read_only=on')
    const standby = await openDatabase({ databaseUrl: url.toString(), dataDir: '', poolSize: 2 })
    await expect(pingDatabase(standby)).rejects.toThrow('the database takes no writes')
    await standby.close()
  })

  test('after a statement that found no room, room is asked for, until there is some', async () => {
    await expect(fail.execute(database.db)).rejects.toThrow('full')
    expect(database.room?.isMissing()).toBe(true)
    await expect(pingDatabase(database)).resolves.toBeUndefined()
    expect(database.room?.isMissing()).toBe(false)
  })

  test('one that cannot give the room is not ready', async () => {
    // A role that may not make a temporary table gets no room, as on a full disk.
    await runAll(place.adminUrl, [`create role ${ROLE}`, `revoke temporary on database ${place.name} from public`])
    const url = new URL(place.adminUrl)
    url.searchParams.set('options', `-c role=${ROLE}`)
    const poor = await openDatabase({ databaseUrl: url.toString(), dataDir: '', poolSize: 1 })
    await expect(fail.execute(poor.db)).rejects.toThrow('full')
    await expect(pingDatabase(poor)).rejects.toThrow('permission denied')
    expect(poor.room?.isMissing()).toBe(true)
    await poor.close()
    await runAll(place.adminUrl, [`drop role ${ROLE}`])
  })
})

const fail = sql`do $$ begin raise exception 'full' using errcode = '53100'; end $$`
const ROLE = `pawl_test_poor_${process.pid}`
