// A database URL with several hosts: the one that takes writes is found, and found again when it has moved.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Database, openDatabase, pingDatabase } from '../../src/storage/database/database.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl } from '../helpers/app.ts'
import { openDatabaseLine } from '../helpers/database-line.ts'
import { findQuietPort } from '../helpers/ports.ts'

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  let place: PostgresDatabase
  let standing: Server
  const opened: Database[] = []
  beforeAll(async () => {
    place = await createPostgresDatabase()
    standing = createServer(() => undefined)
    await new Promise<void>((resolve) => standing.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    for (const database of opened) await database.close()
    standing.close()
    await place.drop()
  })

  const hostOf = (url: string): string => new URL(url).host
  /** One connection at most, to whichever of the hosts takes writes. */
  const open = async (hosts: readonly string[], options = ''): Promise<Database> => {
    const url = place.databaseUrl.replace(hostOf(place.databaseUrl), hosts.join())
    const database = await openDatabase({ databaseUrl: `${url}${options}`, dataDir: '', poolSize: 1 })
    opened.push(database)
    return database
  }
  const read = ({ db }: Database) => sql`select 1`.execute(db)

  test('hosts that refuse, and one that never answers, are passed by', async () => {
    const silent = `127.0.0.1:${(standing.address() as AddressInfo).port}`
    const hosts = [`127.0.0.1:${await findQuietPort()}`, silent, hostOf(place.databaseUrl)]
    const database = await open(hosts)
    expect(database.location).toContain(`//${hosts.join()}/`)
    await expect(pingDatabase(database)).resolves.toBeUndefined()
  })

  test('a host that stands still is left as soon as another one takes writes', async () => {
    const line = await openDatabaseLine(place.databaseUrl)
    const database = await open([hostOf(line.url), hostOf(place.databaseUrl)])
    await read(database)
    line.silence()
    const since = performance.now()
    await expect(read(database)).rejects.toThrow('another host has become the primary')
    await read(database)
    expect(performance.now() - since).toBeLessThan(LEFT_MS)
    await line.close()
  })

  test('a slow statement is waited for where no other host takes writes', async () => {
    const database = await open([hostOf(place.databaseUrl), `127.0.0.1:${await findQuietPort()}`])
    const { rows } = await sql`select 'done' as done, pg_sleep(2.5)`.execute(database.db)
    expect(rows).toMatchObject([{ done: 'done' }])
  })

  test('without a host that takes writes nothing is sent, and the error says why', async () => {
    const database = await open([hostOf(place.databaseUrl)], READ_ONLY)
    await expect(read(database)).rejects.toMatchObject({ code: '08001', message: expect.stringContaining('takes no writes') })
  })

  test('a connection that is refused, whatever for, says that nothing was sent, and why', async () => {
    const { databaseUrl, name } = place
    const database = await openDatabase({ databaseUrl: databaseUrl.replace(name, 'nothing'), dataDir: '', poolSize: 1 })
    opened.push(database)
    await expect(read(database)).rejects.toMatchObject({
      code: '08001',
      message: 'database "nothing" does not exist',
      cause: { code: '3D000' },
    })
  })

  describe('a file of the URL that cannot be read any more', () => {
    let folder: string
    let options: string
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'pawl-hosts-'))
      writeFileSync(join(folder, 'authority.pem'), '')
      // The server of the tests speaks no TLS; the file is read all the same.
      options = `?sslmode=disable&sslrootcert=${join(folder, 'authority.pem')}`
    })
    afterEach(() => rmSync(folder, { recursive: true, force: true }))

    test('fails those who wait for a connection, and nobody else', async () => {
      const ending = createServer((socket) => {
        rmSync(folder, { recursive: true, force: true })
        socket.destroy()
      })
      await new Promise<void>((resolve) => ending.listen(0, '127.0.0.1', resolve))
      const database = await open([`127.0.0.1:${(ending.address() as AddressInfo).port}`], options)
      // The second one gets a connection of its own when that of the first has failed.
      const [first, second] = [read(database), read(database)]
      await expect(first).rejects.toMatchObject({ code: '08001', message: 'Connection terminated unexpectedly' })
      await expect(second).rejects.toMatchObject({ code: '08001', cause: { code: 'ENOENT' } })
      ending.close()
    })

    test('does not end the look at other hosts', async () => {
      const database = await open([hostOf(place.databaseUrl), `127.0.0.1:${await findQuietPort()}`], options)
      await read(database)
      rmSync(folder, { recursive: true })
      const { rows } = await sql`select 'done' as done, pg_sleep(2.5)`.execute(database.db)
      expect(rows).toMatchObject([{ done: 'done' }])
    })
  })

  test.each(['by the question for readiness', 'by a write'])(
    'a server that turned read only loses its connections: %s',
    async (how) => {
      const database = await open([hostOf(place.databaseUrl)])
      await sql`set default_transaction_read_only = on`.execute(database.db)
      const attempt = () =>
        how === 'by a write' ? sql`create table written (x int)`.execute(database.db) : pingDatabase(database)
      await expect(attempt()).rejects.toThrow()
      await expect(attempt()).resolves.not.toThrow()
      await sql`drop table if exists written`.execute(database.db)
    },
  )
})

const LEFT_MS = 5_000
const READ_ONLY = '?target_session_attrs=read-write&options=-c%20default_transaction_read_only%3Don'
