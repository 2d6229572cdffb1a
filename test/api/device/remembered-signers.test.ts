// Temporary keys of an application that a process remembers: what another process changes in the database counts at once (decision 0012).
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendJson } from '../../../phone/http.ts'
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

test('master keys that were replaced sign from then on', async () => {
  const phone = v4.newPhone('EC_P384')
  await phone.fetchTemporaryKey('application')
  await change('delete from master_key_pair')
  // The phone checks the signature with the key it was built with.
  await expect(phone.fetchTemporaryKey('application')).rejects.toThrow()
  const { rows } = await sql<{ pairs: number }>`select count(*)::int as pairs from master_key_pair`.execute(server.context.db)
  expect(rows[0]?.pairs).toBe(1)
})
