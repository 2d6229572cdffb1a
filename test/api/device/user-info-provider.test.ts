// Claims that a server of the bank answers, in user/info and in the answer of activation/create (v3 §8.3, §13).
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { TestServer } from '../../helpers/app.ts'
import { expectRefused, expectUntouched } from '../../helpers/expectations.ts'
import { BROKEN_ANSWERS, inLog, type Provider, startProvider, UNCARRIED } from '../../helpers/provider.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { expectOk, registrationOf, startServerWithWorld, type World } from '../../helpers/world.ts'
import { PATIENCE_MS } from '../../helpers/patience.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const SECRET = 'Bearer of-the-user-info-server'

let provider: Provider
let server: TestServer
let world: World
/** Its server does not wait long for the provider; only for tests in which no answer comes. */
let impatient: World
beforeAll(async () => {
  provider = await startProvider()
  const env = {
    PAWL_USER_INFO_URL: `${provider.url}/claims?of=users`,
    PAWL_USER_INFO_TIMEOUT_MS: '60000',
    PAWL_USER_INFO_AUTHORIZATION: SECRET,
  }
  ;({ server, world } = await startServerWithWorld({ env }))
  impatient = (await startServerWithWorld({ env: { ...env, PAWL_USER_INFO_TIMEOUT_MS: '300' } })).world
})
beforeEach(() => provider.answerWith(() => ({ body: {} })))
afterAll(async () => {
  await world.close()
  await impatient.close()
  provider.close()
})

describe.each(PHONE_VERSIONS)('the claims of a provider in %s', (version) => {
  test('reach the phone, whatever their types, beside those of the server', async () => {
    const { phone, userId } = await world.activePhone(version)
    const claims = { name: 'Žofie 📱', emails: ['a@example.org'], address: { zip: 1, deep: [null, true] }, age: 1.5 }
    provider.answerWith(() => ({ body: { ...claims, sub: 'somebody else', jti: 7, iat: 'never' } }))
    const info = await phone.exchange(await phone.prepareUserInfo())
    expect(info).toEqual({ ...claims, sub: userId, jti: expect.stringMatching(UUID), iat: expect.any(Number) })
    expect(provider.questions.at(-1)).toMatchObject({
      method: 'POST',
      path: '/claims?of=users',
      headers: { 'content-type': 'application/json', authorization: SECRET },
      json: { applicationId: world.applicationId, userId, activationId: phone.state.activationId },
    })
  })

  test('come with the answer of activation/create', async () => {
    const { userId, code } = await world.register()
    provider.answerWith(() => ({ body: { name: 'Jan' } }))
    const { layer1, activationId } = await world.newPhone(version).activate(code)
    expect(layer1['userInfo']).toEqual({ name: 'Jan', sub: userId, jti: expect.stringMatching(UUID), iat: expect.any(Number) })
    expect(provider.questions.at(-1)?.json).toEqual({ applicationId: world.applicationId, userId, activationId })
  })
})

test.each([{}, { sub: 'x', iat: 1 }])('the answer %j is no claims, and activation/create leaves them out', async (body) => {
  provider.answerWith(() => ({ body }))
  const { code } = await world.register()
  expect((await world.newPhone('3.2').activate(code)).layer1).not.toHaveProperty('userInfo')
})

test('the phone of a refused activation is not asked about', async () => {
  const asked = provider.questions.length
  const phone = world.newPhone('3.1')
  expectRefused(await phone.send(await phone.prepareActivation('AAAAA-AAAAA-AAAAA-AAAAA')), 'activation')
  expect(provider.questions).toHaveLength(asked)
})

describe('a provider that answers', () => {
  test.each(BROKEN_ANSWERS)('%s fails user/info, and leaves the activation as it was', async (_, answer) => {
    const { phone } = await (answer === undefined ? impatient : world).activePhone('3.1')
    await expectUntouched(phone, async () => {
      provider.answerWith(() => answer)
      expectRefused(await phone.send(await phone.prepareUserInfo()), 'userInfo')
      provider.answerWith(() => ({ body: { name: 'back' } }))
      const ask = async () => expect(await phone.exchange(await phone.prepareUserInfo())).toMatchObject({ name: 'back' })
      // A server that does not wait long may miss an answer on a busy machine.
      await (answer === undefined ? vi.waitFor(ask, { timeout: PATIENCE_MS }) : ask())
    })
  })

  test.each(BROKEN_ANSWERS)('%s does not fail activation/create', async (_, answer) => {
    const own = answer === undefined ? impatient : world
    const { userId, code } = await own.register()
    provider.answerWith(() => answer)
    const phone = own.newPhone('3.1')
    expect((await phone.activate(code)).layer1).not.toHaveProperty('userInfo')
    expect(await registrationOf(own, userId)).toBe('PENDING_COMMIT')
    expectOk(await own.bank.commit(userId))
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('with personal data keeps it out of the log, also when the answer is not JSON', async () => {
    const { phone } = await world.activePhone('3.1')
    provider.answerWith(() => ({ body: '{"name":"personal-claim" oops' }))
    expectRefused(await phone.send(await phone.prepareUserInfo()), 'userInfo')
    provider.answerWith(() => ({ body: { name: 'personal-claim' } }))
    await phone.exchange(await phone.prepareUserInfo())
    expect(server.log()).toContain('no user info')
    expect(server.log()).toContain(`PAWL_USER_INFO_URL: ${provider.url} answered with no JSON object`)
    expect(server.log()).toContain(`PAWL_USER_INFO_URL: ${provider.url} answered with status 500: its log may say why`)
    expect(server.log()).not.toContain('personal-claim')
    expect(server.log()).not.toContain('of-the-user-info-server')
  })
})

test('what a provider sends behind a byte order mark is read, and numbers up to the last exact one', async () => {
  const { phone } = await world.activePhone('3.1')
  provider.answerWith(() => ({
    body: '\uFEFF{"name":"Jan","n":[9007199254740991,-9007199254740991,0.1,1e15],"constructor":{"a":1}}',
  }))
  const info = await phone.exchange(await phone.prepareUserInfo())
  expect(info).toMatchObject({
    name: 'Jan',
    n: [9_007_199_254_740_991, -9_007_199_254_740_991, 0.1, 1e15],
    constructor: { a: 1 },
  })
})

test('a member twice is told with its name, and no value', async () => {
  const { phone } = await world.activePhone('3.1')
  provider.answerWith(() => ({ body: '{"email":"first-value","email":"last-value"}' }))
  expectRefused(await phone.send(await phone.prepareUserInfo()), 'userInfo')
  expect(server.log()).toContain(`${provider.url} answered with an object that has the member \\"email\\" twice`)
  expect(server.log()).not.toMatch(/first-value|last-value/)
})

test.each(UNCARRIED)('the claim %s, which no phone would get so, is refused by its name', async (text, path, problem) => {
  const { phone } = await world.activePhone('3.3')
  provider.answerWith(() => ({ body: `{"given_name":"Jan",${text}}` }))
  expectRefused(await phone.send(await phone.prepareUserInfo()), 'userInfo')
  const { code } = await world.register()
  expect((await world.newPhone('3.2').activate(code)).layer1).not.toHaveProperty('userInfo')
  expect(server.log()).toContain(inLog(`PAWL_USER_INFO_URL: the claim ${JSON.stringify(path)} ${problem}`))
})

test('claims of the provider stand above stored ones of the same name', async () => {
  const { phone, userId } = await world.activePhone('3.3')
  const path = `/admin/applications/${world.applicationId}/claims/${userId}`
  expectOk(await world.bank.call('PUT', path, { name: 'stored', only: 'stored' }))
  provider.answerWith(() => ({ body: { name: 'asked' } }))
  expect(await phone.exchange(await phone.prepareUserInfo())).toMatchObject({ name: 'asked', only: 'stored' })
})
