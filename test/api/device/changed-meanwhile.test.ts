// Changes of an application, its keys and its versions by another process count with the next request (decision 0012).
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { send, sendJson } from '../../../phone/http.ts'
import type { TestServer } from '../../helpers/app.ts'
import { startServerWithWorld, type World } from '../../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'

let server: TestServer
let world: World
let v4: PhonesV4
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({ worksInBackground: false }))
  v4 = await openPhonesV4(world)
})
afterAll(() => world.close())

const ask = async (path: string, phone: { newTemporaryKeyRequest: (scope: 'application') => { json: unknown } }) =>
  (await sendJson(world.url, 'POST', path, phone.newTemporaryKeyRequest('application').json)).status
const askV3 = () => ask('/pa/v3/keystore/create', world.newPhone('3.3'))
const askV4 = () => ask('/pa/v4/keystore/create', v4.newPhone('EC_P384'))

/** As another process would, of which this one hears nothing. */
const change = (statement: string) => sql.raw(statement).execute(server.context.db)

test('a version that is switched off gets no key, and one that is on again does', async () => {
  expect([await askV3(), await askV3(), await askV4(), await askV4()]).toEqual([200, 200, 200, 200])
  await change('update application_version set is_supported = false')
  expect([await askV3(), await askV4()]).toEqual([400, 400])
  await change('update application_version set is_supported = true')
  expect([await askV3(), await askV4()]).toEqual([200, 200])
})

test('an algorithm that is no longer admitted gets no key', async () => {
  expect(await askV4()).toBe(200)
  await change("update application set algorithms = 'EC_P384_ML_L3'")
  expect(await askV4()).toBe(400)
  await change("update application set algorithms = ''")
  expect(await askV4()).toBe(200)
})

const GENERATIONS = [
  ['3.3', async (code: string) => world.newPhone('3.3').prepareActivation(code)],
  ['4.0', async (code: string) => v4.newPhone('EC_P384').prepareActivation(code)],
] as const

test.each(GENERATIONS)(
  'a version of %s that is switched off binds no phone, and one that is on again does',
  async (_, prepare) => {
    const prepared = await prepare((await world.register()).code)
    await change('update application_version set is_supported = false')
    expect((await send(world.url, prepared)).status).toBe(400)
    await change('update application_version set is_supported = true')
    expect((await send(world.url, prepared)).status).toBe(200)
    expect((await send(world.url, prepared)).status).toBe(400)
  },
)

test.each(GENERATIONS)('an application whose lowest version was raised above %s refuses', async (_, prepare) => {
  const prepared = await prepare((await world.register()).code)
  await change("update application set minimum_version = '9.9'")
  expect((await send(world.url, prepared)).status).toBe(400)
  await change('update application set minimum_version = null')
})

test.each(GENERATIONS)('a temporary key of %s that is no longer there opens nothing', async (_, prepare) => {
  const prepared = await prepare((await world.register()).code)
  await change('delete from temporary_key')
  expect((await send(world.url, prepared)).status).toBe(400)
})

test('master keys that were replaced sign from then on', async () => {
  const phone = v4.newPhone('EC_P384')
  await phone.fetchTemporaryKey('application')
  await change('delete from master_key_pair')
  // The phone checks the signature with the key it was built with.
  await expect(phone.fetchTemporaryKey('application')).rejects.toThrow()
  const { rows } = await sql<{ pairs: number }>`select count(*)::int as pairs from master_key_pair`.execute(server.context.db)
  expect(rows[0]?.pairs).toBe(1)
})
