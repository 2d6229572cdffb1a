// Records of a version before, many of them, are bound to their users while two servers go on under load, one of them stopped in the middle.
// PAWL_TEST_BINDING_RECORDS=100000 for more; without it fewer, which are many pages as well.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { beginToBind, type BindingParts, startBinding } from '../../src/domain/secrets/binding.ts'
import { createRecordKeys, type MasterKeys, type RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import type { Database } from '../../src/storage/database/database.ts'
import { countUnbound, findBinding } from '../../src/storage/secrets/record-binding.ts'
import { random } from '../../phone/v3/crypto.ts'
import { openTestDatabase, startTestServer, type TestServer } from '../helpers/app.ts'
import { insertActivations } from '../helpers/sealed-rows.ts'
import { openWorldOn, type World } from '../helpers/world.ts'

const RECORDS = Number(process.env['PAWL_TEST_BINDING_RECORDS'] || 20_000)
/** Each has a server key and a master secret. */
const ROWS = RECORDS / 2
const MINUTES = 10
const masterKeys: MasterKeys = [random(32)]

let database: Database
let drop: () => Promise<void>
const servers: TestServer[] = []
beforeAll(async () => {
  ;({ database, drop } = await openTestDatabase())
  await sql`insert into record_binding (stage) values ('OPEN')`.execute(database.db)
})
afterAll(async () => {
  for (const server of servers) await server.close()
  await database.close()
  await drop()
})

/** A server that leaves the work to the test, on the database as it would be on PostgreSQL. */
async function start(): Promise<World> {
  const asPostgres: Database = { ...database, kind: 'postgresql' }
  const server = await startTestServer({ database: asPostgres, masterKeys, worksInBackground: false })
  servers.push(server)
  return openWorldOn(server)
}

test(`${RECORDS} records of activations`, { timeout: MINUTES * 60_000 }, async () => {
  const [first, second] = [await start(), await start()]
  const phones = await Promise.all(
    (['3.3', '3.2', '3.1', '3.3'] as const).map(async (version) => (await first.activePhone(version)).phone),
  )
  const tokens = await Promise.all(phones.map((phone) => phone.createToken('possession')))
  const old = createRecordKeys(masterKeys, platform)
  Object.assign(old.boundRecords, { areBound: false, knownUntil: Number.POSITIVE_INFINITY })
  await insertActivations(database.db, old, ROWS)
  expect(await countUnbound(database.db)).toBe(ROWS + 2 * phones.length)

  const calls = { sent: 0, failed: [] as string[] }
  const state = { isOver: false }
  const load = Promise.all(
    phones.map(async (phone, index) => {
      for (let turn = index; !state.isOver; turn += 1) {
        const { url } = turn % 2 === 0 ? first : second
        const token = tokens[index]
        const replies = [await phone.send(phone.prepareValidation({ body: `pay ${turn}` }), url)]
        if (token) replies.push(await phone.send(await phone.prepareTokenCall('list', token), url))
        calls.sent += replies.length
        for (const { status, text } of replies) if (status !== 200 && status !== 429) calls.failed.push(`${status} ${text}`)
        await sleep(PAUSE_MS)
      }
    }),
  )
  const startedAt = performance.now()
  const context = servers[0]?.context ?? fail()
  await beginToBind(context)
  const work = (parts: BindingParts) =>
    startBinding(parts, { database: { kind: 'postgresql' }, works: true, settleSeconds: 0, intervalMs: 50 })
  // The first one says itself when it has half of them: whoever looks from outside may be late.
  const half = Promise.withResolvers<void>()
  let sealed = 0
  const seal: RecordKeys['seal'] = (...record) => {
    sealed += 1
    if (sealed >= RECORDS / 2) half.resolve()
    return context.recordKeys.seal(...record)
  }
  const stopFirst = await work({ ...context, recordKeys: { ...context.recordKeys, seal } })
  await half.promise
  await stopFirst()
  const left = await countUnbound(database.db)
  const stops = await Promise.all(servers.map((server) => work(server.context)))
  while ((await findBinding(database.db, 0)) !== undefined) await sleep(PAUSE_MS)
  const seconds = (performance.now() - startedAt) / 1000
  state.isOver = true
  await load
  for (const stop of stops) await stop()

  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(ROWS)
  expect(await countUnbound(database.db)).toBe(0)
  expect(calls.failed).toEqual([])
  const lines = servers.flatMap((server) => server.log().split('\n'))
  expect(lines.filter((line) => /"level":"(?:error|fatal)"/.test(line))).toEqual([])
  console.info(
    `binding: ${RECORDS} records in ${seconds.toFixed(1)} s, stopped once at ${left} rows; ${calls.sent} calls, 0 failed`,
  )
})

const fail = (): never => {
  throw new Error('no server')
}

const PAUSE_MS = 20
