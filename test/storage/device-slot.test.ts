// The setting that lets a user have several phones is switched while phones are bound (docs/decisions/0007-one-live-registration.md): without it,
// a user never has two live registrations.
import { sql } from 'kysely'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRegistration } from '../../src/domain/activation/registration.ts'
import { switchMultiDevice } from '../../src/domain/application/application.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { type HttpReply, member } from '../../phone/http.ts'
import { COUNT_WAITING, serverUrl } from '../helpers/app.ts'
import { createFurther, setMultiDevice } from '../helpers/devices.ts'
import { expectError } from '../helpers/expectations.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'
import { expectOk } from '../helpers/world.ts'

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ servers: serverUrl() === undefined ? 1 : 2 })
})
afterAll(() => world.close())

/** Users who have what they must not, at one moment. */
const SPOILED = sql<{ userId: string }>`
  select a.user_id as "userId" from application p join activation a on a.application_id = p.application_id
  where not p.is_multi_device and a.state <> 'REMOVED'
  group by a.application_id, a.user_id having count(*) > 1 or bool_or(a.device_slot <> '')`

const spoiled = async () => (await SPOILED.execute(world.db)).rows
const banks = () => world.urls.map((url) => world.bank.as(world.bank.credential, url))
const switchTo = (isMultiDevice: boolean, bank = world.bank): Promise<HttpReply> =>
  setMultiDevice(bank, world.applicationId, isMultiDevice)

test('at the moment in which phones are bound on each path that there is', async () => {
  const outcomes = { off: 0, refused: 0, further: 0 }
  const paths = banks().flatMap((bank) => [
    (userId: string) => createFurther(bank, userId),
    (userId: string) => bank.register(userId),
    (userId: string) => bank.call('POST', `/admin/applications/${world.applicationId}/registrations`, { userId }),
    (userId: string) => createFurther(bank, userId, { flags: ['VIP'] }),
  ])
  const [bank = world.bank] = banks().toReversed()
  const end = new AbortController()
  const looking = (async () => {
    for (; !end.signal.aborted; await sleep(1)) expect(await spoiled()).toEqual([])
  })()
  for (let round = 0; round < ROUNDS; round += 1) {
    expectOk(await switchTo(true))
    const users = [world.newUser(), world.newUser()]
    // The switch is answered before phones are bound, then sent at the same time, then after one more answer each round: no clock decides.
    const turn = round % (users.length * paths.length + 2)
    const early = turn < 2 ? switchTo(false, bank) : undefined
    if (turn === 0) await early
    const binding = users.flatMap((userId) => paths.map((path) => path(userId)))
    await Promise.all(binding.slice(0, Math.max(turn - 1, 0)))
    const [switched, ...bound] = await Promise.all([early ?? switchTo(false, bank), ...binding])
    expect([200, 400]).toContain(switched.status)
    for (const { status } of bound) expect([200, 400]).toContain(status)
    expect(await spoiled()).toEqual([])
    const lived = await Promise.all(users.map(settled))
    // Each has one at the least: that no path makes any would be no protection.
    for (const slots of lived) expect(slots.length).toBeGreaterThan(0)
    if (switched.status === 200) outcomes.off += 1
    else outcomes.refused += 1
    outcomes.further += lived.filter((slots) => slots.length > 1).length
    await clear()
  }
  end.abort()
  await looking
  expect(outcomes.off).toBeGreaterThan(0)
  expect(outcomes.refused).toBeGreaterThan(0)
  expect(outcomes.further).toBeGreaterThan(0)
})

const settled = async (userId: string) => {
  const rows = world.db
    .selectFrom('activation')
    .select('device_slot')
    .where('user_id', '=', userId)
    .where('state', '<>', 'REMOVED')
  return (await rows.execute()).map(({ device_slot }) => device_slot)
}

const pool = () => {
  const [context] = world.contexts
  if (context === undefined) throw new TypeError('no server')
  return context.db
}

/** A session of the database waits for a lock. */
const untilWaiting = (): Promise<void> =>
  expect
    .poll(async () => (await sql.raw<{ waiting: number }>(COUNT_WAITING).execute(world.db)).rows[0]?.waiting)
    .toBeGreaterThan(0)

test.skipIf(serverUrl() === undefined)('a switch waits for a phone that is being bound, and counts it', async () => {
  const [context] = world.contexts
  if (context === undefined) throw new TypeError('no server')
  await clear()
  expectOk(await switchTo(true))
  const userId = world.newUser()
  expectOk(await createFurther(world.bank, userId))
  const owner = { applicationId: world.applicationId, userId }
  let switching: Promise<HttpReply> | undefined
  await inTransaction(pool(), async (tx) => {
    await createRegistration({ ...context, db: tx }, owner, { commitPhase: 'ON_COMMIT', otpHash: null, isFurther: true })
    switching = switchTo(false)
    await untilWaiting()
  })
  const reply = await switching
  if (reply === undefined) throw new TypeError('no answer')
  expectError(reply, 400, 'ERROR_ADMIN')
  expect(await settled(userId)).toHaveLength(2)
})

test.skipIf(serverUrl() === undefined)('a phone that is being bound waits for the switch, and is one too many then', async () => {
  await clear()
  expectOk(await switchTo(true))
  const userId = world.newUser()
  expectOk(await createFurther(world.bank, userId))
  let binding: Promise<HttpReply> | undefined
  await inTransaction(pool(), async (tx) => {
    await switchMultiDevice(tx, world.applicationId, false, new Date())
    binding = createFurther(world.bank, userId)
    await untilWaiting()
  })
  const reply = await binding
  if (reply === undefined) throw new TypeError('no answer')
  expectError(reply, 400, 'ERROR_REGISTRATION')
  expect(await settled(userId)).toEqual([''])
  expect(await spoiled()).toEqual([])
})

test.skipIf(serverUrl() === undefined)('thousands of phones lose their slots, though one is removed at that moment', async () => {
  await clear()
  expectOk(await switchTo(true))
  const id = String(member(expectOk(await createFurther(world.bank, world.newUser())).json, 'registrationId'))
  for (let thousand = 0; thousand < 6; thousand += 1)
    await sql`
      insert into activation select (jsonb_populate_record(a, jsonb_build_object('activation_id', g.id, 'user_id', g.id, 'device_slot', g.id,
        'activation_code_hash', '\\x' || md5(g.id)))).*
      from activation a cross join (select gen_random_uuid()::text as id from generate_series(1, 1000)) g
      where a.activation_id = ${id}`.execute(world.db)
  let switching: Promise<HttpReply> | undefined
  await inTransaction(pool(), async (tx) => {
    await sql`
      update activation set state = 'REMOVED' where activation_id = (
        select min(activation_id) from activation where state <> 'REMOVED' and application_id = ${world.applicationId}
      )`.execute(tx)
    switching = switchTo(false)
    await untilWaiting()
  })
  expectOk((await switching) as HttpReply)
  expect(await spoiled()).toEqual([])
})

test.skipIf(serverUrl() === undefined)('a message and a temporary key of a phone do not wait for the switch', async () => {
  await clear()
  expectOk(await switchTo(true))
  const { phone, userId } = await world.holder('3.3')
  await inTransaction(pool(), async (tx) => {
    await switchMultiDevice(tx, world.applicationId, false, new Date())
    expectOk(await world.bank.call('POST', '/inbox/messages', { userId, subject: 's', summary: 's', body: 'b' }))
    await phone.fetchTemporaryKey('activation')
  })
  expect(await settled(userId)).toEqual([''])
})

const ROUNDS = 20
const clear = () => sql`update activation set state = 'REMOVED' where state <> 'REMOVED'`.execute(world.db)
