// Whatever a database or a role is set to, a session of pawl is as pawl takes it for granted.
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { member, send } from '../../phone/http.ts'
import type { Pooler } from '../../src/storage/database/postgres.ts'
import { type Database, openDatabase } from '../../src/storage/database/database.ts'
import { findUnmet } from '../../src/storage/database/requirements.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl, startTestServer, testTemplate } from '../helpers/app.ts'
import { MINUTE, SECOND } from '../helpers/expectations.ts'
import { HOSTILE_SETTINGS, runAll, urlOf } from '../helpers/hostile.ts'
import { expectOk, openWorldOn } from '../helpers/world.ts'

const SETTINGS = [
  { DateStyle: 'German, DMY' },
  { DateStyle: 'SQL, MDY', TimeZone: 'America/New_York' },
  { DateStyle: 'Postgres, DMY', TimeZone: 'Asia/Kathmandu' },
  { DateStyle: 'ISO, YMD', TimeZone: 'Africa/Monrovia' },
  { standard_conforming_strings: 'off', bytea_output: 'escape' },
  { extra_float_digits: '-15', array_nulls: 'off' },
  { default_transaction_isolation: 'serializable' },
  { default_transaction_isolation: 'repeatable read', IntervalStyle: 'iso_8601' },
] as const

const TIME = new Date('2027-02-03T04:05:06.789Z')
const BYTES = Buffer.from([0, 1, 92, 200, 255])

/** Values there and back, and what a session is. */
async function expectUsual({ db }: Pick<Database, 'db'>): Promise<void> {
  const { rows } = await sql`
    select ${TIME}::timestamptz as time, ${BYTES}::bytea as bytes, 123456789.25::float8 as float, 'a\\b' as text,
      (${['a', null]}::text[])[2] is null as "isNull", current_setting('transaction_isolation') as isolation`.execute(db)
  expect(rows).toEqual([
    { time: TIME, bytes: BYTES, float: 123456789.25, text: 'a\\b', isNull: true, isolation: 'read committed' },
  ])
}

test.skipIf(serverUrl() !== undefined)('an embedded database that is set to something else', async () => {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'pawl-test-')), 'data')
  cpSync(join(testTemplate(), 'data'), dataDir, { recursive: true })
  const first = await openDatabase({ dataDir, poolSize: 1 })
  for (const [name, value] of Object.entries(HOSTILE_SETTINGS))
    await sql`alter database postgres set ${sql.raw(name)} = ${sql.lit(value)}`.execute(first.db)
  await first.close()
  const database = await openDatabase({ dataDir, poolSize: 1 })
  await expectUsual(database)
  await database.close()
  rmSync(join(dataDir, '..'), { recursive: true })
})

describe.skipIf(serverUrl() === undefined)('on PostgreSQL, where PAWL_TEST_DATABASE_URL is set', () => {
  let place: PostgresDatabase
  const opened: Database[] = []
  beforeAll(async () => {
    place = await createPostgresDatabase()
  })
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close()
    const { name } = place
    await runAll(place.adminUrl, [`alter database ${name} reset all`, `alter role ${userOf()} in database ${name} reset all`])
  })
  afterAll(() => place.drop())

  const open = async (pooler: Pooler, databaseUrl = place.databaseUrl): Promise<Database> => {
    const database = await openDatabase({ databaseUrl, dataDir: '', poolSize: 1, pooler })
    opened.push(database)
    return database
  }
  const userOf = (): string => new URL(place.databaseUrl).username
  const set = (whose: string, settings: Readonly<Record<string, string>>) =>
    runAll(
      place.adminUrl,
      Object.entries(settings).map(([name, value]) => `alter ${whose} set ${name} = '${value}'`),
    )

  describe.each(['none', 'session'] as const)('without a pooler that keeps settings (%s)', (pooler) => {
    test.each(SETTINGS)('a database that is set to %o, or a role in it', async (settings) => {
      await set(`database ${place.name}`, settings)
      const database = await open(pooler)
      await expectUsual(database)
      expect(await findUnmet(database.db)).not.toContainEqual(expect.objectContaining({ requirement: 'settings' }))
      await set(`role ${userOf()} in database ${place.name}`, settings)
      await expectUsual(await open(pooler))
    })

    test('a database with limits of time of its own, for waits and for idle sessions', async () => {
      const limits = { lock_timeout: '1s', idle_session_timeout: '1min', idle_in_transaction_session_timeout: '1s' }
      await set(`database ${place.name}`, { ...limits, statement_timeout: '100ms' })
      const { db } = await open(pooler)
      const { rows } = await sql`
        select current_setting('lock_timeout') as lock, current_setting('idle_session_timeout') as idle,
          current_setting('idle_in_transaction_session_timeout') as transaction, current_setting('statement_timeout') as statement
        from pg_sleep(0.2)`.execute(db)
      expect(rows).toEqual([{ lock: '0', idle: '0', transaction: '10s', statement: '8s' }])
    })

    test('a role that is set to something else everywhere, and settings in the URL', async () => {
      const role = `pawl_test_set_${process.pid}_${pooler}`
      await runAll(place.adminUrl, [`create role ${role} login password 'p'`])
      await set(`role ${role}`, { DateStyle: 'SQL, DMY', bytea_output: 'escape' })
      const url = new URL(urlOf(place.databaseUrl, { role, password: 'p' }))
      url.searchParams.set('options', '-c datestyle=German -c default_transaction_isolation=serializable')
      await expectUsual(await open(pooler, url.toString()))
      for (const database of opened.splice(0)) await database.close()
      await runAll(place.adminUrl, [`drop role ${role}`])
    })
  })

  test('in transaction mode, those that a pooler does not keep are found wrong, with what to do', async () => {
    await set(`database ${place.name}`, { ...SETTINGS[0], default_transaction_isolation: 'serializable', array_nulls: 'off' })
    const { db } = await open('transaction')
    const [unmet] = await findUnmet(db)
    expect(unmet).toMatchObject({ requirement: 'settings' })
    expect(unmet?.says).toContain(`array_nulls = 'off'`)
    expect(unmet?.says).not.toContain('DateStyle')
    expect(unmet?.todo).toContain(`alter role ${userOf()} set default_transaction_isolation = 'read committed'`)
  })

  test.each([{ DateStyle: 'German' }, { DateStyle: 'SQL, DMY' }, { DateStyle: 'Postgres, MDY' }])(
    'with %o phones are bound, and a credential and a password that was replaced end',
    async (settings) => {
      const { databaseUrl, name, drop } = await createPostgresDatabase()
      await set(`database ${name}`, settings)
      const world = await openWorldOn(await startTestServer({ databaseUrl }))
      const { phone } = await world.activePhone('3.3')
      expectOk(await send(world.url, phone.prepareValidation()))
      const createUser = async (username: string, more: object): Promise<string> => {
        const user = { username, role: 'integration', application: world.applicationId, ...more }
        const reply = await world.bank.call('POST', '/admin/users', user)
        return `${username}:${String(member(reply.json, 'password'))}`
      }
      const credentials = [await createUser('ends', { expiresAt: Date.now() + MINUTE }), await createUser('replaced', {})]
      expectOk(await world.bank.call('POST', '/admin/users/replaced/password', { keepPreviousSeconds: 60 }))
      const areAccepted = () =>
        Promise.all(credentials.map(async (each) => (await world.bank.as(each).view('nobody')).status !== 401))
      expect(await areAccepted()).toEqual([true, true])
      await world.advance(MINUTE + SECOND)
      expect(await areAccepted()).toEqual([false, false])
      await world.close()
      await drop()
    },
  )
})
