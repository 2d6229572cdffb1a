// vault/unlock: a forbidden factor combination is refused before its code is looked at, whatever the body is (v3 §10.5, §12).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectError, expectUntouched } from '../../helpers/expectations.ts'
import { expectOk, startWorld, type World } from '../../helpers/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

test.each(['knowledge', 'biometry', 'possession_knowledge_biometry', 'possession'] as const)(
  'a body that is not JSON, signed with %s, moves and counts nothing',
  async (factors) => {
    const { phone } = await world.activePhone('3.3')
    await expectUntouched(phone, async () => {
      const request = { path: '/pa/v3/vault/unlock', resourceId: '/pa/vault/unlock', factors, body: 'not JSON' }
      expectError(await phone.send(phone.prepareSigned(request)), 400, 'ERR_SECURE_VAULT')
    })
  },
)

test('biometry opens the vault where the application says so', async () => {
  const { phone } = await world.activePhone('3.3')
  const path = `/admin/applications/${world.applicationId}`
  expectOk(await world.bank.call('PATCH', path, { vaultFactors: ['POSSESSION_BIOMETRY'] }))
  const vaultKey = await phone.exchange(await phone.prepareVaultUnlock({ factors: 'possession_biometry' }))
  expect(vaultKey).toEqual(phone.state.keys?.vault)
  expectOk(await world.bank.call('PATCH', path, { vaultFactors: [] }))
  const request = await phone.prepareVaultUnlock({ factors: 'possession_biometry' })
  expectError(await phone.send(request), 400, 'ERR_SECURE_VAULT')
})
