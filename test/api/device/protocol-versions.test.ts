// A phone does not go back to an older version of the protocol, and an application says which it still takes (v3 §10.5).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasTemporaryKeys, random } from '../../../phone/v3/crypto.ts'
import { ALL_PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withPair } from '../../../phone/header.ts'
import type { VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectRefused, expectUntouched, readCounters, STATE } from '../../helpers/expectations.ts'
import { expectOk, registrationOf, startServerWithWorld, type World } from '../../helpers/world.ts'

const FACTORS = ['possession', 'possession_knowledge', 'possession_biometry'] as const
const wrongKeys = { possession: random(16), knowledge: random(16), biometry: random(16) }

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({ worksInBackground: false }))
})
afterAll(() => world.close())

const highestOf = async ({ state }: VirtualPhone): Promise<string | null | undefined> => {
  const query = server.context.db.selectFrom('activation').select('highest_version')
  return (await query.where('activation_id', '=', state.activationId).executeTakeFirst())?.highest_version
}

/** Right codes and wrong ones of an older version: all refused, nothing counted, nothing moved. */
async function expectLeftBehind(phone: VirtualPhone, older: VirtualPhone): Promise<void> {
  const { ctrData, counter } = phone.state
  await expectUntouched(phone, async () => {
    for (const factors of FACTORS) {
      expectRefused(await older.send(older.prepareValidation({ factors, wrongKeys })), 'signature')
      Object.assign(phone.state, { ctrData, counter })
      expectRefused(await older.send(older.prepareValidation({ factors })), 'signature')
      Object.assign(phone.state, { ctrData, counter })
    }
  })
}

describe.each(ALL_PHONE_VERSIONS)('a phone bound under %s', (version) => {
  const older = ALL_PHONE_VERSIONS.filter((other) => other < version)
  const newer = ALL_PHONE_VERSIONS.filter((other) => other > version)

  test('is refused under every older version, from its first code on and while it is remembered', async () => {
    const { phone } = await world.activePhone(version)
    for (const other of older) await expectLeftBehind(phone, phone.speaking({ version: other }))
    for (let i = 0; i < 2; i += 1) expectOk(await phone.send(phone.prepareValidation()))
    for (const other of older) await expectLeftBehind(phone, phone.speaking({ version: other }))
    expectOk(await phone.send(phone.prepareValidation()))
    expect(await highestOf(phone)).toBe(version)
  })

  test('goes up with its app and not back', async () => {
    const { phone } = await world.activePhone(version)
    let before: VirtualPhone = phone
    for (const other of newer) {
      const current = phone.speaking({ version: other })
      // A wrong code of a newer version leaves the phone where it is.
      expectRefused(await current.send(current.prepareValidation({ factors: 'possession', wrongKeys })), 'signature')
      expectOk(await before.send(before.prepareValidation()))
      expectOk(await current.send(current.prepareValidation({ factors: 'possession' })))
      expect(await highestOf(phone)).toBe(other)
      await expectLeftBehind(current, before)
      expectOk(await current.send(current.prepareValidation()))
      before = current
    }
  })
})

test('a phone that only says it is older is refused too, without being counted', async () => {
  const { phone } = await world.activePhone('3.3')
  await expectUntouched(phone, async () => {
    for (let i = 0; i < 6; i += 1)
      expectRefused(await phone.send(withPair(phone.prepareValidation(), 'pa_version', '3.0')), 'signature')
  })
})

test('what a phone spoke before there was a record is not known, and begins with its next code', async () => {
  const { phone } = await world.activePhone('3.3')
  const forget = server.context.db.updateTable('activation').set({ highest_version: null })
  await forget.where('activation_id', '=', phone.state.activationId).execute()
  const older = phone.speaking({ version: '3.1' })
  expectOk(await older.send(older.prepareValidation()))
  expect(await highestOf(phone)).toBe('3.1')
  await expectLeftBehind(phone, phone.speaking({ version: '3.0' }))
  expectOk(await phone.send(phone.prepareValidation()))
  expect(await highestOf(phone)).toBe('3.3')
})

describe('minimumProtocolVersion of an application', () => {
  const change = (minimumProtocolVersion: unknown) =>
    world.bank.call('PATCH', `/admin/applications/${world.applicationId}`, { minimumProtocolVersion })

  test('refuses the codes of older versions at once, and takes them again when it is removed', async () => {
    const phones = await Promise.all(ALL_PHONE_VERSIONS.map(async (version) => (await world.activePhone(version)).phone))
    for (const phone of phones) expectOk(await phone.send(phone.prepareValidation()))
    expect(expectOk(await change('3.2')).json).toMatchObject({ responseObject: { minimumProtocolVersion: '3.2' } })
    for (const phone of phones) {
      const { ctrData, counter } = phone.state
      const reply = await phone.send(phone.prepareValidation())
      if (phone.version >= '3.2') expectOk(reply)
      else {
        expectRefused(reply, 'signature')
        Object.assign(phone.state, { ctrData, counter })
        for (let i = 0; i < 6; i += 1) expectRefused(await phone.send(phone.prepareValidation({ wrongKeys })), 'signature')
        Object.assign(phone.state, { ctrData, counter })
        expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
      }
    }
    const removed = expectOk(await change(null)).json as { responseObject: object }
    expect(Object.keys(removed.responseObject)).not.toContain('minimumProtocolVersion')
    for (const phone of phones) expectOk(await phone.send(phone.prepareValidation()))
  })

  test.each(ALL_PHONE_VERSIONS)('binds no older phone: %s', async (version) => {
    expectOk(await change('3.3'))
    const { userId, code } = await world.register()
    const phone = world.newPhone(version)
    if (hasTemporaryKeys(version)) await phone.activate(code)
    else expectRefused(await phone.send(await phone.prepareActivation(code)), 'activation')
    expect(await registrationOf(world, userId)).toBe(hasTemporaryKeys(version) ? 'PENDING_COMMIT' : 'CREATED')
    expectOk(await change(null))
    if (!hasTemporaryKeys(version)) await phone.activate(code)
  })

  test.each(['3', '3.4', '', 4, ['3.3'], '5.0'])('is not %j', async (value) => {
    expect((await change(value)).status).toBe(400)
  })
})
