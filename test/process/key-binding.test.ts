// A database of the version before: its records are bound to no user. They are taken until servers have sealed them all anew, and then refused.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { beginToBind, bindRecords, type BindingTerms, followBinding, startBinding } from '../../src/domain/secrets/binding.ts'
import { createRecordKeys, type MasterKeys, type RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { authenticateRow } from '../../src/domain/secrets/row-mac.ts'
import { places } from '../../src/domain/secrets/secrets.ts'
import { importHmacKey } from '../../src/crypto/hash.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import { migrations } from '../../migrations/index.ts'
import { type Database, openInMemory } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { countUnbound, findBinding } from '../../src/storage/secrets/record-binding.ts'
import { insertWrappedKey } from '../../src/storage/secrets/wrapped-keys.ts'
import { random } from '../../phone/v3/crypto.ts'
import { openTestDatabase, startTestServer, type TestServer } from '../helpers/app.ts'
import { insertActivations } from '../helpers/sealed-rows.ts'
import { expectOk, openWorldOn, type World } from '../helpers/world.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const SOON: Pick<BindingTerms, 'intervalMs' | 'settleSeconds'> = { intervalMs: 20, settleSeconds: 0 }
const FILLERS = 450

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function openNew(): Promise<Database> {
  const { database, drop } = await openTestDatabase()
  closing.push(drop, () => database.close())
  return database
}

interface Installation {
  readonly database: Database
  readonly masterKeys: MasterKeys
  /** Starts a server that follows the row at its start alone, as one does that is not told yet. */
  readonly start: () => Promise<{ server: TestServer; world: World }>
}

/** A database that a version before has written: with its row, and with records that are bound to nobody. */
async function openOld({ isMarked = true } = {}): Promise<Installation> {
  const database = await openNew()
  const masterKeys: MasterKeys = [random(32)]
  if (isMarked) await sql`insert into record_binding (stage) values ('OPEN')`.execute(database.db)
  const start = async () => {
    // As on PostgreSQL, where an operator begins.
    const asPostgres: Database = { ...database, kind: 'postgresql' }
    const server = await startTestServer({ database: asPostgres, masterKeys, worksInBackground: false })
    closing.push(() => server.close())
    return { server, world: await openWorldOn(server) }
  }
  return { database, masterKeys, start }
}

const readActivation = async ({ db }: Database, id: string) =>
  db.selectFrom('activation').selectAll().where('activation_id', '=', id).executeTakeFirstOrThrow()

const formsOf = async ({ db }: Database): Promise<number[]> => {
  const { rows } = await sql<{ form: number }>`
    select distinct get_byte(v, 0) as form from (
      select master_secret as v from activation union all select server_private_key from activation
      union all select activation_qr_code from activation union all select token_secret from token
      union all select push_token from push_registration
      union all select master_secret from activation_upgrade union all select server_private_key from activation_upgrade
    ) s where v is not null order by 1`.execute(db)
  return rows.map(({ form }) => form)
}

const untilBound = async ({ db }: Database): Promise<void> => {
  while ((await findBinding(db, 0)) !== undefined) await sleep(10)
}

/** The job of one process; returns what its records follow. */
async function work(server: TestServer): Promise<() => Promise<void>> {
  const stop = await startBinding(server.context, { database: { kind: 'postgresql' }, works: true, ...SOON })
  closing.push(stop)
  return stop
}

test('records are taken as they are, until they are sealed anew while phones go on; then none of before is', async () => {
  const { database, masterKeys, start } = await openOld()
  const [first, second] = [await start(), await start()]
  const [one, two] = [await first.world.activePhone('3.3'), await first.world.activePhone('3.1')]
  const four = await (await openPhonesV4(first.world)).activePhone('EC_P384')
  const waiting = await first.world.register()
  const upgrading = (await first.world.activePhone('3.3')).phone
  const token = await one.phone.createToken('possession')
  const old = createRecordKeys(masterKeys, platform)
  Object.assign(old.boundRecords, { areBound: false, knownUntil: Number.POSITIVE_INFINITY })
  await insertActivations(database.db, old, FILLERS)
  expect(await formsOf(database)).toEqual([1])
  const before = await readActivation(database, one.phone.state.activationId)
  const listed = async (url: string) => one.phone.send(await one.phone.prepareTokenCall('list', token), url)
  expectOk(await listed(second.world.url))

  // The first one hears of the beginning, the second one later: it reads what the first writes, and writes as before.
  await beginToBind(first.server.context)
  const later = await first.world.activePhone('3.3')
  expect((await readActivation(database, later.phone.state.activationId)).master_secret?.[0]).toBe(2)
  await later.phone.exchange(later.phone.prepareValidation(), second.world.url)
  await second.world.activePhone('3.3')
  await followBinding(second.server.context)

  const stops = [await work(first.server), await work(second.server)]
  const failed: unknown[] = []
  const state = { isOver: false }
  const load = Promise.all(
    [one, two, four].map(async ({ phone }, i) => {
      for (let turn = i; !state.isOver; turn += 1) {
        const url = turn % 2 === 0 ? first.world.url : second.world.url
        const request = phone.prepareValidation({ body: `pay ${turn}` })
        const { status, text } = await phone.send(request, url)
        if (status !== 200) failed.push(text)
        await sleep(20)
      }
    }),
  )
  await untilBound(database)
  state.isOver = true
  await load
  expect(failed).toEqual([])
  expect(await formsOf(database)).toEqual([2])
  expect(await countUnbound(database.db)).toBe(0)
  // The one that did not end it hears of the end in its next look.
  const terms = [first, second].map(({ server }) => server.context.recordKeys.boundRecords)
  await vi.waitFor(() => expect(terms.map(({ areUnboundTaken }) => areUnboundTaken)).toEqual([false, false]), PATIENCE_MS)
  for (const stop of stops) await stop()

  // Phones, tokens, codes and what is under way go on, in these processes and in one that starts afterwards.
  const third = await start()
  for (const { url } of [first.world, second.world, third.world]) {
    await one.phone.exchange(one.phone.prepareValidation(), url)
    expectOk(await listed(url))
  }
  await four.phone.exchange(four.phone.prepareValidation(), third.world.url)
  await third.world.newPhone('3.3').activate(waiting.code)
  await upgrading.exchange(upgrading.prepareValidation(), third.world.url)

  // What was there before is refused: for another user by those who remember the phone too, and for its own in a process that reads it.
  const put = async (userId: string): Promise<void> => {
    const { master_secret, server_private_key, activation_id } = before
    const values = { master_secret, server_private_key, user_id: userId }
    await database.db.updateTable('activation').set(values).where('activation_id', '=', activation_id).execute()
  }
  const fourth = await start()
  await put('victim')
  for (const { url } of [first.world, second.world, third.world, fourth.world])
    expect((await one.phone.send(one.phone.prepareValidation(), url)).status).toBe(401)
  await put(one.userId)
  expect((await one.phone.send(one.phone.prepareValidation(), (await start()).world.url)).status).toBe(401)
})

/** The parts of a process, without one. */
function openParts({ db }: Pick<Database, 'db'>, masterKeys: MasterKeys, credentialMac = importHmacKey(random(32))) {
  const told: string[] = []
  const events = {
    bindingAltered: () => told.push('altered'),
    bindingStage: ({ stage }: { stage: string }) => told.push(stage),
    bindingFailed: ({ err }: { err: unknown }) => told.push(String(err)),
    recordsBound: ({ replaced, left, unopened }: { replaced: number; left: number; unopened: readonly string[] }) =>
      told.push(`replaced ${replaced}, left ${left}, unopened ${unopened.join(' ')}`),
  }
  return { db, recordKeys: createRecordKeys(masterKeys, platform), installationKeys: { credentialMac }, events, told }
}

const OWNER = { activationId: 'a', applicationId: 'app', userId: 'alice' }
const seal = (keys: RecordKeys): number | undefined => keys.seal(places.masterSecret(OWNER), random(16))[0]

describe('the row that says that records of before are taken', () => {
  let database: Database
  const masterKeys: MasterKeys = [random(32)]
  const mac = importHmacKey(random(32))
  beforeEach(async () => {
    database = await openNew()
  })
  const put = (stage: 'OPEN' | 'BEGUN', by: Uint8Array | null) =>
    sql`insert into record_binding (stage, begun_at, mac) values (${stage}, ${new Date(0)}, ${by && Buffer.from(by)})`.execute(
      database.db,
    )
  const macOf = (stage: string, key = mac) => authenticateRow(key, { table: 'record_binding', fields: [stage] })
  const follow = async () => {
    const parts = openParts(database, masterKeys, mac)
    parts.recordKeys.boundRecords.areBound = false
    return { ...parts, binding: await followBinding(parts) }
  }

  test('is not there in a new database', async () => {
    const { binding, recordKeys, told } = await follow()
    expect({ binding, told }).toEqual({ binding: undefined, told: [] })
    expect(recordKeys.boundRecords).toMatchObject({ areBound: true, areUnboundTaken: false })
  })

  test('is made by the migration where a server has started, and nowhere else', async () => {
    const before = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0030'))
    const old = await openInMemory()
    closing.push(() => old.close())
    await migrate(old.db, { known: before })
    await insertWrappedKey(old.db, 'credential-hash', random(49), new Date())
    await migrate(old.db)
    expect(await findBinding(old.db, 0)).toMatchObject({ stage: 'OPEN', mac: null, isSettled: false })
    expect(await findBinding(database.db, 0)).toBeUndefined()
  })

  test('gets its MAC once, by the first process that sees it', async () => {
    await put('OPEN', null)
    const { binding, recordKeys } = await follow()
    expect(binding?.stage).toBe('OPEN')
    expect(seal(recordKeys)).toBe(1)
    expect((await follow()).binding?.stage).toBe('OPEN')
    expect((await findBinding(database.db, 0))?.mac).toEqual(Buffer.from(macOf('OPEN')))
  })

  test.each<[string, () => Promise<unknown>]>([
    ['another stage under the MAC of this one', () => put('BEGUN', macOf('OPEN'))],
    ['a MAC under another key', () => put('OPEN', macOf('OPEN', importHmacKey(random(32))))],
    ['no MAC after the beginning', () => put('BEGUN', null)],
    ['a MAC that is cut', () => put('BEGUN', macOf('BEGUN').subarray(0, 16))],
    [
      'one as the migration makes it, beside records that are bound',
      async () => {
        const { db } = database
        const claims = { platform: 'apns', push_token_hash: Buffer.alloc(32), updated_at: new Date(0) } as const
        await sql`insert into application values ('app', true, default, now())`.execute(db)
        await sql`insert into activation (activation_id, application_id, user_id, state, activation_code_hash, server_public_key,
          server_private_key, max_failed_attempts, created_at, expires_at)
          values ('a', 'app', 'alice', 'ACTIVE', '\\x00', '\\x00', '\\x01', 5, now(), now())`.execute(db)
        const token = Buffer.from(createRecordKeys(masterKeys, platform).seal(places.pushToken(OWNER), random(16)))
        await db
          .insertInto('push_registration')
          .values({ ...claims, activation_id: 'a', push_token: token })
          .execute()
        await put('OPEN', null)
      },
    ],
  ])('is none when it is %s', async (_, forge) => {
    await forge()
    const { binding, recordKeys, told } = await follow()
    expect({ binding, told }).toEqual({ binding: undefined, told: ['altered'] })
    const unbound = createRecordKeys(masterKeys, platform)
    Object.assign(unbound.boundRecords, { areBound: false, knownUntil: Number.POSITIVE_INFINITY })
    const sealed = unbound.seal(places.masterSecret(OWNER), random(16))
    expect(() => recordKeys.open(places.masterSecret(OWNER), sealed)).toThrow('altered, or moved')
    expect(seal(recordKeys)).toBe(2)
  })

  test('does not take a process back when it is put back', async () => {
    await put('OPEN', macOf('OPEN'))
    const parts = openParts(database, masterKeys, mac)
    await beginToBind(parts)
    await sql`update record_binding set stage = 'OPEN', mac = ${macOf('OPEN')}`.execute(database.db)
    await followBinding(parts)
    expect(seal(parts.recordKeys)).toBe(2)
  })

  test('is known for a while: a process that has not asked since seals nothing of before', async () => {
    await put('OPEN', macOf('OPEN'))
    const { recordKeys } = await follow()
    expect(seal(recordKeys)).toBe(1)
    recordKeys.boundRecords.knownUntil = performance.now() - 1
    expect(() => seal(recordKeys)).toThrow('has not said lately how records are sealed')
    expect(recordKeys.seal(places.ctrData('a'), random(16))[0]).toBe(1)
  })

  test('begins by itself where there is one process, and ends where nothing is left', async () => {
    await put('OPEN', null)
    const parts = openParts(database, masterKeys, mac)
    const stop = await startBinding(parts, { database: { kind: 'embedded' }, works: true, intervalMs: 5 })
    await untilBound(database)
    await stop()
    expect(parts.told).toEqual(['BEGUN', 'replaced 0, left 0, unopened ', 'BOUND'])
    expect(parts.recordKeys.boundRecords).toMatchObject({ areBound: true, areUnboundTaken: false })
  })

  test('stays for two minutes after its beginning, and where the work is left to others', async () => {
    await put('OPEN', null)
    const parts = openParts(database, masterKeys, mac)
    await followBinding(parts)
    await beginToBind(parts)
    const asPostgres = { kind: 'postgresql' } as const
    const stops = [
      await startBinding(parts, { database: asPostgres, works: true, intervalMs: 5 }),
      await startBinding(parts, { database: asPostgres, works: false, ...SOON }),
    ]
    await sleep(100)
    expect(await findBinding(database.db, 0)).toMatchObject({ stage: 'BEGUN', isSettled: true })
    expect(await findBinding(database.db, 120)).toMatchObject({ isSettled: false })
    for (const stop of stops) await stop()
  })
})

describe('the work', () => {
  const [older, newer] = [random(32), random(32)]
  async function openFilled(masterKey: Uint8Array, count: number) {
    const database = await openNew()
    const old = createRecordKeys([masterKey], platform)
    Object.assign(old.boundRecords, { areBound: false, knownUntil: Number.POSITIVE_INFINITY })
    await sql`insert into application values ('app', true, default, now())`.execute(database.db)
    await sql`insert into activation (activation_id, application_id, user_id, state, activation_code_hash, server_public_key,
      server_private_key, max_failed_attempts, created_at, expires_at)
      values ('a', 'app', 'alice', 'ACTIVE', '\\x00', '\\x00', ${old.seal(places.serverPrivateKey(OWNER), random(32))}, 5, now(), now())`.execute(
      database.db,
    )
    const ids = await insertActivations(database.db, old, count)
    await sql`delete from activation where activation_id = 'a'`.execute(database.db)
    await sql`insert into record_binding (stage) values ('OPEN')`.execute(database.db)
    return { database, ids }
  }
  const begin = async (database: Database, keys: MasterKeys, mac = importHmacKey(random(32))) => {
    const parts = openParts(database, keys, mac)
    await followBinding(parts)
    await beginToBind(parts)
    return parts
  }

  test('goes on where it was cut', async () => {
    const { database } = await openFilled(older, 500)
    const parts = await begin(database, [older])
    const cut = new AbortController()
    const once = {
      ...parts.recordKeys,
      seal: (...given: Parameters<RecordKeys['seal']>) => (cut.abort(), parts.recordKeys.seal(...given)),
    }
    expect(await bindRecords({ ...parts, recordKeys: once }, cut.signal)).toBe(false)
    const left = await countUnbound(database.db)
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(500)
    expect(await bindRecords(parts)).toBe(true)
    expect(parts.told).toEqual([`replaced ${left}, left 0, unopened `])
    expect(await countUnbound(database.db)).toBe(0)
  })

  test('leaves what somebody altered, names it, and ends', async () => {
    const { database, ids } = await openFilled(older, 3)
    const [id = ''] = ids
    await sql`update activation set master_secret = set_byte(master_secret, 30, 255 - get_byte(master_secret, 30)) where activation_id = ${id}`.execute(
      database.db,
    )
    const parts = await begin(database, [older])
    expect(await bindRecords(parts)).toBe(true)
    expect(parts.told).toEqual([`replaced 3, left 0, unopened activation.master_secret of ${id}`])
    const { master_secret: left } = await readActivation(database, id)
    expect(() =>
      parts.recordKeys.open(places.masterSecret({ activationId: id, applicationId: 'app', userId: id }), left ?? random(0)),
    ).toThrow()
  })

  test.each(["''", "'\\x01ffffffff00'"])(
    'binds the other values of a row with one that somebody cut to %s, and ends',
    async (cut) => {
      const { database, ids } = await openFilled(older, 3)
      const [id = ''] = ids
      await sql`update activation set server_private_key = ${sql.raw(cut)} where activation_id = ${id}`.execute(database.db)
      const parts = await begin(database, [older])
      expect(await bindRecords(parts)).toBe(true)
      expect(parts.told).toEqual([`replaced 3, left 0, unopened activation.server_private_key of ${id}`])
      expect((await readActivation(database, id)).master_secret?.[0]).toBe(2)
    },
  )

  test('does not end while a master key is missing, and does once it is given', async () => {
    const { database } = await openFilled(older, 3)
    const mac = importHmacKey(random(32))
    const parts = await begin(database, [newer], mac)
    expect(await bindRecords(parts)).toBe(false)
    expect(await countUnbound(database.db)).toBe(3)
    const given = openParts(database, [newer, older], mac)
    await followBinding(given)
    expect(await bindRecords(given)).toBe(true)
    expect(await countUnbound(database.db)).toBe(0)
  })
})
