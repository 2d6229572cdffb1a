// An envelope that another request uses up between the look whether it was used and the write that uses it: the code counts, and nothing else
// is done (v3 §14).
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { send } from '../../../phone/http.ts'
import type { Prepared } from '../../../phone/v3/state.ts'
import type { TestServer } from '../../helpers/app.ts'
import { readCounters, STATE } from '../../helpers/expectations.ts'
import { expectRefusedV4 } from '../../helpers/refusals-v4.ts'
import { type Bound, expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'
import { openPhonesV4, type PhoneV4 } from '../../helpers/world-v4.ts'

let server: TestServer
let world: World
let look: TestServer['context']['authenticationStore']['findProofs']
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({ worksInBackground: false }))
  look = server.context.authenticationStore.findProofs
})
afterEach(() => {
  Object.assign(server.context.authenticationStore, { findProofs: look })
})
afterAll(() => world.close())

/** From now on, whenever the server has looked whether a value was used, somebody else uses that value right afterwards. */
function useWhatIsSeen(): void {
  const findProofs: typeof look = async (names) => {
    const found = await look(names)
    await sql`insert into unique_value values (${names.envelopeValue}, ${new Date(server.context.platform.now() + 60_000)})
      on conflict do nothing`.execute(server.context.db)
    return found
  }
  Object.assign(server.context.authenticationStore, { findProofs })
}

const countOf = async (table: string): Promise<unknown> =>
  (await sql.raw<{ count: unknown }>(`select count(*)::int as count from ${table}`).execute(server.context.db)).rows[0]?.count

const REQUESTS: readonly (readonly [string, number, (bound: Bound) => Promise<Prepared<unknown>>])[] = [
  ['vault/unlock', 400, ({ phone }) => phone.prepareVaultUnlock()],
  ['activation/rename', 400, ({ phone }) => phone.prepareRename('Another')],
  ['token/create', 401, ({ phone }) => phone.prepareTokenCreate()],
]

test.each(REQUESTS)('%s is refused after its code was counted, and changes nothing', async (_, status, prepare) => {
  const bound = await world.activePhone('3.3')
  const prepared = await prepare(bound)
  const before = [await countOf('token'), await countOf("activation where name = 'Another'")]
  useWhatIsSeen()
  expect((await send(world.url, prepared)).status).toBe(status)
  Object.assign(server.context.authenticationStore, { findProofs: look })
  expect([await countOf('token'), await countOf("activation where name = 'Another'")]).toEqual(before)
  expect(await readCounters(bound.phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
  // The same code is not good again, the next one is.
  expect((await send(world.url, prepared)).status).not.toBe(200)
  expect((await send(world.url, await prepare(bound))).status).toBe(200)
})

const KEY_CHANGES: readonly (readonly [string, 'password' | 'biometry', (phone: PhoneV4) => Promise<Prepared<unknown>>])[] = [
  ['password/change', 'password', (phone) => phone.preparePasswordChange()],
  ['biometry/add', 'biometry', (phone) => phone.prepareBiometryAdd()],
]

test.each(KEY_CHANGES)('%s is refused, and the keys stay what they were', async (_, refusal, prepare) => {
  const { phone } = await (await openPhonesV4(world)).activePhone('EC_P384')
  const secret = async (): Promise<unknown> =>
    (
      await sql<{ secret: string }>`select encode(master_secret, 'hex') || is_biometry_enabled as secret from activation
        where activation_id = ${phone.state.activationId}`.execute(server.context.db)
    ).rows[0]?.secret
  expectOk(await phone.send(phone.prepareValidation()))
  const prepared = await prepare(phone)
  let before: unknown
  const { store } = server.context.authenticationStore
  Object.assign(server.context.authenticationStore, {
    store: async (...given: Parameters<typeof store>) => {
      const isStored = await store(...given)
      before = await secret()
      return isStored
    },
  })
  useWhatIsSeen()
  expectRefusedV4(await phone.send(prepared), refusal)
  Object.assign(server.context.authenticationStore, { findProofs: look, store })
  expect(await secret()).toBe(before)
  expectOk(await phone.send(await prepare(phone)))
  expect(await secret()).not.toBe(before)
})
