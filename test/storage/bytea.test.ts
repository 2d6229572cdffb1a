// A remembered row keeps the memory of its bytes, so the bytes must not be a small part of a large pool.
import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { send } from '../../phone/http.ts'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import type { Db } from '../../src/storage/database/database.ts'
import type { TestServer } from '../helpers/app.ts'
import { expectOk, startServerWithWorld, type World } from '../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../helpers/world-v4.ts'

let server: TestServer
let db: Db
let world: World
let phonesV4: PhonesV4
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
  phonesV4 = await openPhonesV4(world)
  db = server.context.db
})
afterAll(() => world.close())

test.each([0, 1, 32, 64, 65, 1000])('%i bytes of a row lie in memory of their own', async (length) => {
  const value = randomBytes(length)
  const { rows } = await sql<{ value: Buffer }>`select ${value}::bytea as value`.execute(db)
  expect(rows[0]?.value.equals(value)).toBe(true)
  expect(rows[0]?.value.buffer.byteLength).toBe(length)
})

test('so does what a record is opened to', () => {
  const keys = createRecordKeys([randomBytes(32)], { randomBytes })
  const place = { table: 't', column: 'c', row: 'r' }
  expect(isOwn(keys.open(place, keys.seal(place, randomBytes(32))))).toBe(true)
})

describe.each(['3.3', '4.0'])('a phone of %s', (version) => {
  test('whose code was accepted is remembered as text, and the version of its app in memory of its own', async () => {
    const phone = version === '3.3' ? (await world.activePhone('3.3')).phone : (await phonesV4.activePhone('EC_P384')).phone
    expectOk(await send(world.url, phone.prepareValidation()))
    const { applicationKey } = version === '3.3' ? world.app : phonesV4.app
    const names = { applicationKey, activationId: phone.state.activationId }
    const { version: row, activation } = server.context.authenticationStore.recall(names)
    expect(activation).toMatchObject({ activationId: phone.state.activationId, ctrData: expect.any(Buffer) as Buffer })
    expect(row && isOwn(row.applicationSecret)).toBe(true)
  })
})

const isOwn = (bytes: Uint8Array): boolean => bytes.buffer.byteLength === bytes.length
