// After a restore: a code that a phone has used in the forgotten time binds no second phone
// (docs/decisions/0016-fence-after-a-restore.md).
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fenceActivations } from '../../../src/domain/activation/fence.ts'
import { v3 } from '../../../src/protocol/v3/index.ts'
import type { TestServer } from '../../helpers/app.ts'
import { readQrCode } from '../../helpers/bank.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

const fence = (since: number) => {
  const { context } = server
  const parts = { ...context, advanceCounter: (_version: number, ctrData: Uint8Array) => v3.advanceCounter(ctrData) }
  return fenceActivations(parts, { since: new Date(since), steps: 19, blocks: false })
}

/** Puts every activation back as it is now. */
async function backUp(): Promise<() => Promise<void>> {
  const { db } = server.context
  await sql`create table put_back as select * from activation`.execute(db)
  const { rows } = await sql<{ name: string }>`
    select quote_ident(column_name) as name from information_schema.columns where table_name = 'put_back'`.execute(db)
  const columns = sql.raw(rows.map(({ name }) => `${name} = p.${name}`).join(', '))
  return async () => {
    await sql`update activation a set ${columns} from put_back p where p.activation_id = a.activation_id`.execute(db)
  }
}

test('a code of the time before is good no more, and one that is made after the fence is', async () => {
  const { code } = readQrCode(await world.bank.register('alice'))
  const putBack = await backUp()
  await world.newPhone('3.3').activate(code)
  await putBack()
  const since = server.context.platform.now()
  server.clock.advance(1_000)
  const young = readQrCode(await world.bank.register('bob'))

  expect(await fence(since)).toMatchObject({ removed: 1 })
  expect(await fence(since)).toMatchObject({ removed: 0 })
  await expect(world.newPhone('3.3').activate(code)).rejects.toThrow()
  await world.newPhone('3.3').activate(young.code)
  // The user has no registration, and gets a new one.
  await world.newPhone('3.3').activate(readQrCode(await world.bank.register('alice')).code)
  const items = JSON.stringify(expectOk(await world.bank.call('GET', '/audit/log?userId=alice')).json)
  expect(items).toContain('registration_fenced')
})

test('counter data that does not open is named, and does not keep the rest from being fenced', async () => {
  const { db, platform } = server.context
  const phones = [await world.activePhone('3.3'), await world.activePhone('3.3'), await world.activePhone('3.3')]
  const ids = phones.map(({ phone }) => phone.state.activationId).toSorted()
  // The first in the order in which they are fenced.
  const [broken] = ids
  await sql`update activation set ctr_data = server_private_key where activation_id = ${broken}`.execute(db)
  const since = platform.now()
  const counters = async () =>
    (
      await db
        .selectFrom('activation')
        .select(['activation_id', 'counter'])
        .where('activation_id', 'in', ids)
        .orderBy('activation_id')
        .execute()
    ).map(({ counter }) => counter)
  const before = await counters()
  expect(await fence(since)).toMatchObject({ unopened: [broken] })
  expect((await counters()).map((counter, i) => counter - (before[i] ?? 0))).toEqual([0, 19, 19])
  // Once more: what is done stays done, and it is named again.
  expect(await fence(since)).toMatchObject({ fenced: 0, unopened: [broken] })
})
