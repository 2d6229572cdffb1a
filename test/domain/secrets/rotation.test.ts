// A new master key while phones, back ends and administrators go on: nothing fails, an end in the middle costs nothing, and afterwards the
// old key is not needed.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { places } from '../../../src/domain/secrets/secrets.ts'
import { createRecordKeys, type MasterKeys } from '../../../src/domain/secrets/record-keys.ts'
import { rotateRecords } from '../../../src/domain/secrets/rotation.ts'
import { systemPlatform as platform } from '../../../src/lib/platform.ts'
import type { Database } from '../../../src/storage/database/database.ts'
import { countByKey, SEALED_TABLES } from '../../../src/storage/secrets/sealed-columns.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { member } from '../../../phone/http.ts'
import { openTestDatabase, startTestServer, type TestServer } from '../../helpers/app.ts'
import { insertActivations } from '../../helpers/sealed-rows.ts'
import { openPhonesV4 } from '../../helpers/world-v4.ts'
import { expectOk, openWorldOn } from '../../helpers/world.ts'

const [older, newer] = [random(32), random(32)]
const before = createRecordKeys([older], platform)
const during = createRecordKeys([newer, older], platform)
const after = createRecordKeys([newer], platform)
const [newId] = after.keyIds
const FILLERS = 300
/** The embedded database has one connection for all. */
const PAUSE_MS = 40

let database: Database
let drop: () => Promise<void>
const servers: TestServer[] = []

beforeAll(async () => void ({ database, drop } = await openTestDatabase()))
afterAll(async () => {
  for (const server of servers) await server.close()
  await database.close()
  await drop()
})

async function start(masterKeys: MasterKeys): Promise<TestServer> {
  const server = await startTestServer({ database, masterKeys })
  servers.push(server)
  return server
}

/** Repeats each until all is over; returns how often each was done, and what failed. */
async function keepDoing(works: Readonly<Record<string, () => Promise<unknown>>>, isOver: () => boolean) {
  const done: Record<string, number> = {}
  const failed: string[] = []
  const run = async ([name, work]: [string, () => Promise<unknown>]): Promise<void> => {
    while (!isOver()) {
      await work().catch((error: unknown) => failed.push(`${name}: ${String(error)}`))
      done[name] = (done[name] ?? 0) + 1
      await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Object.entries(works).map(run))
  return { done, failed }
}

test('while values are sealed anew no call fails, and then the old key is not needed', async () => {
  // Both keys are known at both servers. The first one still seals under the older key, as it is while servers are restarted in turn.
  const first = await openWorldOn(await start([older, newer]))
  const [one, two, three] = [
    (await first.activePhone('3.3')).phone,
    (await first.activePhone('3.1')).phone,
    (await first.activePhone('3.3')).phone,
  ]
  const four = (await (await openPhonesV4(first)).activePhone('EC_P384')).phone
  const hook = { application: 'test-app', name: 'hook', kind: 'OPERATION', url: 'https://example.com/hook', attributes: [] }
  const made = expectOk(await first.bank.call('POST', '/admin/webhooks', hook))
  const webhookId = String(member(made.json, 'id') ?? member(made.json, 'webhook', 'id'))
  const provider = '/admin/applications/test-app/oidc-providers/web'
  const login = { issuer: 'https://login.bank.example', clientId: 'app', redirectUri: 'app:/oidc', clientSecret: 'of the client' }
  expectOk(await first.bank.call('PUT', provider, login))
  const ids = await insertActivations(database.db, before, FILLERS)

  const second = await openWorldOn(await start([newer, older]))
  const { url } = second
  const works = {
    'a code of 3.3': () => one.exchange(one.prepareValidation({ body: 'pay' }), url),
    'a code of 3.1 at the other server': async () => two.exchange(two.prepareValidation({ body: 'pay' })),
    'a new PIN of 4.0': async () => four.exchange(await four.preparePasswordChange(), url),
    'a new secret of the webhook': async () =>
      expectOk(await second.bank.call('POST', `/admin/webhooks/${webhookId}/secret`, {})),
    'a token of 3.3': () => three.createToken(),
  }
  // One rotation is cut off after its first page of activations, the next one goes to the end.
  let isOver = false
  const load = keepDoing(works, () => isOver)
  const cut = rotateRecords({ db: database.db, recordKeys: during }, ({ table }) => {
    if (table === 'activation') throw new Error('cut off')
  })
  await expect(cut).rejects.toThrow('cut off')
  const halfway = (await countByKey(database.db)).filter(({ place }) => place === 'activation.ctr_data')
  expect(halfway.map(({ keyId }) => keyId).toSorted()).toEqual(during.keyIds.toSorted())
  const progress: number[] = []
  await rotateRecords({ db: database.db, recordKeys: during }, ({ replaced }) => progress.push(replaced))
  isOver = true
  const { done, failed } = await load
  expect(failed).toEqual([])
  expect(Object.keys(done).toSorted()).toEqual(Object.keys(works).toSorted())
  expect(progress.at(-1)).toBeGreaterThanOrEqual(FILLERS / 3)
  expect(servers.map((server) => server.log()).join('')).not.toContain('counter')

  // Nobody seals under the older key any more.
  for (const server of servers.splice(0)) await server.close()
  expect(await rotateRecords({ db: database.db, recordKeys: during })).toMatchObject({ left: 0, unopened: [] })
  expect(new Set((await countByKey(database.db)).map(({ keyId }) => keyId))).toEqual(new Set([newId]))
  expect(await rotateRecords({ db: database.db, recordKeys: after })).toEqual({ replaced: 0, left: 0, unopened: [] })

  // Values are what they were, and phones go on.
  const row = await database.db
    .selectFrom('activation')
    .selectAll()
    .where('activation_id', '=', ids[0] ?? '')
    .executeTakeFirstOrThrow()
  expect(after.open(places.ctrData(row.activation_id), row.ctr_data ?? random(0))).toHaveLength(16)
  const last = await openWorldOn(await start([newer]))
  await one.exchange(one.prepareValidation({ body: 'pay' }), last.url)
  await four.exchange(four.prepareValidation({ body: 'pay' }), last.url)
  expectOk(await last.bank.call('POST', `/admin/webhooks/${webhookId}/secret`, {}))
  expectOk(await last.bank.call('GET', provider))
})

test('what opens under none of the keys is named and left alone', async () => {
  const lost = createRecordKeys([random(32)], platform)
  const sealed = Buffer.from(lost.seal(places.userClaims('test-app', 'nobody'), random(20)))
  const values = { application_id: 'test-app', user_id: 'nobody', claims: sealed, updated_at: new Date() }
  await database.db.insertInto('user_claims').values(values).execute()
  const { unopened } = await rotateRecords({ db: database.db, recordKeys: during })
  expect(unopened).toEqual(['user_claims.claims of ["test-app","nobody"]'])
  const left = await database.db
    .selectFrom('user_claims')
    .select('claims')
    .where('user_id', '=', 'nobody')
    .executeTakeFirstOrThrow()
  expect(left.claims).toEqual(sealed)
  await database.db.deleteFrom('user_claims').where('user_id', '=', 'nobody').execute()
})

test('a value that somebody emptied leaves no other value of its row under the old key', async () => {
  const [id = ''] = await insertActivations(database.db, before, 1)
  await sql`update activation set server_private_key = '' where activation_id = ${id}`.execute(database.db)
  const rotation = await rotateRecords({ db: database.db, recordKeys: during })
  expect(rotation).toEqual({ replaced: 1, left: 0, unopened: [`activation.server_private_key of ${id}`] })
  expect((await countByKey(database.db)).filter(({ keyId }) => keyId !== newId).map(({ place }) => place)).toEqual([
    'activation.server_private_key',
  ])
  await database.db.deleteFrom('activation').where('activation_id', '=', id).execute()
})

test('every column of bytes is sealed and known to the rotation, or is no secret', async () => {
  const { rows } = await sql<{ place: string }>`
    select table_name || '.' || column_name as place from information_schema.columns
    where table_schema = current_schema() and data_type = 'bytea' and table_name <> 'registration' order by 1`.execute(
    database.db,
  )
  const sealed = SEALED_TABLES.flatMap(({ table, columns }) => columns.map((column) => `${table}.${column}`))
  const isOpen =
    /\.(?:public_key|\w*_public_key|\w*hash|mac|\w*_mac|salt|\w*fingerprint|certificate|seal|\w*_seal|authentication)$/
  // Hashes; and random bytes that guard nothing but what is left when they are deleted (docs/decisions/0019-erasure.md).
  const open = ['failure_count.failure_key', 'sealed_answer.ticket_id', 'audit_user_key.user_key']
  expect(
    rows
      .map(({ place }) => place)
      .filter((place) => !isOpen.test(place) && !open.includes(place))
      .toSorted(),
  ).toEqual(sealed.toSorted())
})
