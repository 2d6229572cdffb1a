// POST /pa/v4/status, /pa/v4/config/application and /pa/v4/config/activation (v4 §9.1, §9.11).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, expectRefused } from '../../helpers/expectations.ts'
import { member, sendJson } from '../../../phone/http.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'
import { expectOk } from '../../helpers/world.ts'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

const administer = async (method: string, path: string, body?: unknown) => expectOk(await v4.world.bank.call(method, path, body))
const switchVersion = (isSupported: boolean) =>
  administer('PATCH', '/admin/applications/test-app/versions/default', { isSupported })

describe('POST /pa/v4/status', () => {
  const ask = (body?: unknown) => sendJson(v4.world.url, 'POST', '/pa/v4/status', body)
  const algorithmsOf = async (applicationKey: unknown) =>
    member(expectOk(await ask({ requestObject: { applicationKey } })).json, 'responseObject', 'supportedAlgorithms')

  test.each([
    [undefined],
    [{}],
    [{ requestObject: {} }],
    [{ requestObject: null }],
    [{ requestObject: { applicationKey: null } }],
  ])('tells time, name and all that the server speaks for the body %j', async (body) => {
    expect(expectOk(await ask(body)).json).toEqual({
      status: 'OK',
      responseObject: {
        serverTime: expect.any(Number),
        supportedAlgorithms: ['EC_P256', 'EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'],
        application: { name: expect.any(String), version: expect.any(String) },
      },
    })
  })

  test('lists what the application allows, protocol 3 first as long as it is admitted', async () => {
    const key = v4.app.applicationKey
    const path = '/admin/applications/test-app'
    expect(await algorithmsOf(key)).toEqual(['EC_P256', 'EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'])
    await administer('PATCH', path, { algorithms: ['EC_P384_ML_L5', 'EC_P384'] })
    expect(await algorithmsOf(key)).toEqual(['EC_P256', 'EC_P384', 'EC_P384_ML_L5'])
    await administer('PATCH', path, { isProtocol3Admitted: false })
    expect(await algorithmsOf(key)).toEqual(['EC_P384', 'EC_P384_ML_L5'])
    await administer('PATCH', path, { isProtocol3Admitted: true, algorithms: [] })
    expect(await algorithmsOf(key)).toHaveLength(4)
  })

  test('refuses an unknown key, and that of a version that is switched off', async () => {
    const of = (applicationKey: string) => ask({ requestObject: { applicationKey } })
    const reply = await of(b64(random(16)))
    expectError(reply, 400, 'ERR_STATUS')
    expect(member(reply.json, 'responseObject', 'message')).toBe('POWER_AUTH_STATUS_ERROR')
    await switchVersion(false)
    expectError(await of(v4.app.applicationKey), 400, 'ERR_STATUS')
    await switchVersion(true)
    expectOk(await of(v4.app.applicationKey))
  })

  test.each(['', ' ', 'x', 7, {}, [], 'a\u0000', '\ud800', b64(random(15)), b64(random(17)), `${'A'.repeat(21)}B==`])(
    'refuses the malformed key %j',
    async (applicationKey) => {
      expectError(await ask({ requestObject: { applicationKey } }), 400, 'ERR_VALIDATION')
    },
  )

  test.each([[[]], ['x'], [7], [{ requestObject: 'x' }], [{ requestObject: [] }]])('refuses the body %j', async (body) => {
    expectError(await ask(body), 400, 'ERR_VALIDATION')
  })
})

describe('configuration', () => {
  const config = '/admin/applications/test-app/config'
  const configOf = async (phone: ReturnType<WorldV4['newPhone']>, scope: 'application' | 'activation') =>
    phone.exchange(await phone.prepareConfiguration(scope))

  test.each(['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const)(
    'is that of the application before the activation, and the nearest item after it, with %s',
    async (algorithm) => {
      await administer('PUT', `${config}/limit`, { value: 1 })
      await administer('PUT', `${config}/limit?scope=ACTIVATION`, { value: { daily: 2 } })
      await administer('PUT', `${config}/theme`, { value: 'Žlutá' })
      const stranger = v4.newPhone(algorithm)
      const theme = { key: 'theme', value: 'Žlutá', scope: 'APPLICATION' }
      expect(await configOf(stranger, 'application')).toEqual({
        config: [{ key: 'limit', value: 1, scope: 'APPLICATION' }, theme],
      })
      const { phone } = await v4.activePhone(algorithm)
      const limit = { key: 'limit', value: { daily: 2 } as unknown, scope: 'ACTIVATION' }
      expect(await configOf(phone, 'activation')).toEqual({ config: [limit, theme] })
      await administer('PUT', `/admin/activations/${phone.state.activationId}/config/limit`, { value: null })
      expect(await configOf(phone, 'activation')).toEqual({ config: [{ ...limit, value: null }, theme] })
      const other = (await v4.activePhone(algorithm)).phone
      expect(await configOf(other, 'activation')).toEqual({ config: [limit, theme] })
      await Promise.all(
        [`${config}/limit`, `${config}/limit?scope=ACTIVATION`, `${config}/theme`].map((path) => administer('DELETE', path)),
      )
      expect(await configOf(other, 'activation')).toEqual({ config: [] })
    },
  )

  test('of an activation that is not active is refused, and comes back with it', async () => {
    const { userId, phone } = await v4.activePhone('EC_P384')
    expectOk(await v4.world.bank.change(userId, 'BLOCK'))
    const reply = await phone.send(await phone.prepareConfiguration('activation'))
    expectError(reply, 400, 'ERR_CONFIG')
    expect(member(reply.json, 'responseObject', 'message')).toBe('POWER_AUTH_CONFIG_FAILURE')
    expectOk(await v4.world.bank.change(userId, 'UNBLOCK'))
    await configOf(phone, 'activation')
    const request = await phone.prepareConfiguration('activation')
    expectOk(await v4.world.bank.change(userId, 'REMOVE'))
    expectError(await phone.send(request), 400, 'ERR_CONFIG')
  })

  test('is refused for a version that is switched off', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const [ofApplication, ofActivation] = [
      await phone.prepareConfiguration('application'),
      await phone.prepareConfiguration('activation'),
    ]
    await switchVersion(false)
    expectRefused(await phone.send(ofApplication), 'encryption')
    expectError(await phone.send(ofActivation), 400, 'ERR_CONFIG')
    await switchVersion(true)
  })

  test.each(['application', 'activation'] as const)('of the %s is answered once to one envelope', async (scope) => {
    const { phone } = await v4.activePhone('EC_P384')
    const request = await phone.prepareConfiguration(scope)
    expectOk(await phone.send(request))
    expectRefused(await phone.send(request), 'encryption')
  })
})
