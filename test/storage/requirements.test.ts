// A server refuses a database that does not meet its requirements, reports what is not met, or waits until it is met.
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Database, openDatabase, pingDatabase } from '../../src/storage/database/database.ts'
import { findUnmet, requireDatabase, type Unmet } from '../../src/storage/database/requirements.ts'
import { readVitalSigns } from '../../src/storage/vital-signs.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl, startTestServer } from '../helpers/app.ts'
import { runAll, urlOf } from '../helpers/hostile.ts'

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  /** Settings are changed from another database than theirs, which may take no writes. */
  const server = serverUrl() ?? ''
  const id = randomUUID().replaceAll('-', '')
  /** No superuser: limits of connections hold for it. */
  const role = `pawl_test_bound_${id}`
  let place: PostgresDatabase
  let roleUrl: string
  const opened: Database[] = []
  beforeAll(async () => {
    place = await createPostgresDatabase()
    await runAll(server, [`create role ${role} login password 'p'`])
    roleUrl = urlOf(place.adminUrl, { role, password: 'p' })
  })
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close()
    await runAll(server, [
      `alter role ${role} reset all`,
      `alter role ${role} in database ${place.name} reset all`,
      `alter role ${role} connection limit -1`,
      `alter database ${place.name} reset all`,
      `alter database ${place.name} connection limit -1`,
    ])
  })
  afterAll(async () => {
    await place.drop()
    await runAll(server, [`drop role ${role}`])
  })

  const open = async (databaseUrl: string, poolSize = 1): Promise<Database> => {
    const database = await openDatabase({ databaseUrl, dataDir: '', poolSize })
    opened.push(database)
    return database
  }
  const read = async (requirement: Unmet['requirement'], connections?: number): Promise<Unmet | undefined> =>
    (await findUnmet((await open(roleUrl)).db, connections)).find((unmet) => unmet.requirement === requirement)

  test.each(['LATIN1', 'SQL_ASCII', 'WIN1250'])('a database in %s is refused', async (encoding) => {
    const name = `pawl_test_${encoding.toLowerCase()}_${id}`
    await runAll(server, [`create database ${name} template template0 encoding '${encoding}' locale 'C'`])
    const database = await open(urlOf(server, { database: name }))
    await expect(requireDatabase(database)).rejects.toThrow(
      `the encoding of the database is ${encoding}; make it anew: create database ... encoding 'UTF8' template template0`,
    )
    await opened.pop()?.close()
    const databaseUrl = urlOf(server, { database: name })
    await expect(startTestServer({ databaseUrl })).rejects.toThrow(`the encoding of the database is ${encoding}`)
    await runAll(server, [`drop database ${name}`])
  })

  test.each([`role ${role}`, 'database', `role ${role} in database`])(
    'commits that do not wait, by the %s, are told and measured, and refuse nothing',
    async (whose) => {
      await runAll(server, [`alter ${whose.replace('database', `database ${place.name}`)} set synchronous_commit = off`])
      expect(await read('commits')).toMatchObject({ says: expect.stringContaining('synchronous_commit off') as unknown })
      const database = await open(roleUrl)
      await expect(requireDatabase(database)).resolves.toBeUndefined()
      const { isDurable } = await readVitalSigns((await open(place.adminUrl)).db)
      // The superuser of the test has the setting of the database only.
      if (whose === 'database') expect(isDurable).toBe(false)
    },
  )

  test.each([`role ${role}`, 'database', `role ${role} in database`])(
    'a database that takes no writes, by the %s, is not ready, and it is told',
    async (whose) => {
      const before = await open(roleUrl)
      await expect(pingDatabase(before)).resolves.toBeUndefined()
      await runAll(server, [
        `alter ${whose.replace('database', `database ${place.name}`)} set default_transaction_read_only = on`,
      ])
      await expect(pingDatabase(await open(roleUrl))).rejects.toThrow('the database takes no writes')
      expect(await read('writes')).toMatchObject({ todo: expect.stringContaining(`the role ${role}`) as unknown })
    },
  )

  test('when one connection is refused a write, those that are older leave with it', async () => {
    const database = await open(roleUrl, 2)
    // The role may not do this either, which is found out later.
    const write = sql`create schema refused`
    const both = () =>
      Promise.all([sql`select pg_sleep(0.2)`.execute(database.db), sql`select pg_sleep(0.2)`.execute(database.db)])
    await sql`select 1`.execute(database.db)
    await runAll(server, [`alter role ${role} set default_transaction_read_only = on`])
    await expect(pingDatabase(database)).resolves.toBeUndefined()
    await both()
    // One of the two is from before and the other is not.
    await Promise.allSettled([write.execute(database.db), write.execute(database.db)])
    await expect(pingDatabase(database)).rejects.toThrow('the database takes no writes')
  })

  describe('a pool of 8', () => {
    test.each([
      ['a role with room for 3', [`alter role ${role} connection limit 3`]],
      ['a role with room for one', [`alter role ${role} connection limit 1`]],
      ['a database with room for 2', ['alter database NAME connection limit 2']],
      [
        'a role with room for 5 in a database with room for 4',
        [`alter role ${role} connection limit 5`, 'alter database NAME connection limit 4'],
      ],
    ])('of %s: 30 requests at once wait for the connections that there are', async (_, limits) => {
      await runAll(
        server,
        limits.map((limit) => limit.replace('NAME', place.name)),
      )
      const database = await open(roleUrl, 8)
      const answers = await Promise.all(
        Array.from({ length: 30 }, async (_each, i) => {
          const { rows } = await sql<{ i: number }>`select ${i}::int as i, pg_sleep(0.02)`.execute(database.db)
          return rows[0]?.i
        }),
      )
      expect(answers).toEqual(Array.from({ length: 30 }, (_each, i) => i))
    })

    test('whose room others have taken waits until one of them goes', async () => {
      await runAll(server, [`alter role ${role} connection limit 1`])
      const other = await openDatabase({ databaseUrl: roleUrl, dataDir: '', poolSize: 1 })
      await sql`select 1`.execute(other.db)
      const database = await open(roleUrl, 8)
      const waiting = sql`select 1 as one`.execute(database.db)
      await sql`select pg_sleep(0.3)`.execute(other.db)
      await other.close()
      expect((await waiting).rows).toEqual([{ one: 1 }])
    })

    test('is told that the room is smaller', async () => {
      await runAll(server, [`alter role ${role} connection limit 3`])
      expect(await read('connections', 3)).toBeUndefined()
      expect((await read('connections', 8))?.says).toBe(
        'the processes may open 8 connections, and the database has room for 3: requests wait for those that there are',
      )
      await runAll(server, [`alter role ${role} connection limit -1`])
      expect((await read('connections', 100_000))?.says).toContain('may open 100000 connections')
    })
  })
})
