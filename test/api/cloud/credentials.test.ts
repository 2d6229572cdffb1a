// HTTP Basic on the cloud API: refusals, roles, users, throttling (cloud §1.2, §2, §11).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBank } from '../../helpers/bank.ts'
import { errorCode, expectError, MINUTE, SECOND } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member, sendJson } from '../../../phone/http.ts'
import type { TestServer } from '../../helpers/app.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, registrationOf, startServerWithWorld } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

function expectUnauthorized(reply: HttpReply): void {
  expect({ status: reply.status, json: reply.json }).toEqual({
    status: 401,
    json: { status: 'ERROR', responseObject: { code: 'HTTP_401', message: 'Unauthorized' } },
  })
  expect(reply.headers['www-authenticate']).toBe('Basic realm="pawl", charset="UTF-8"')
}

/** Creates a user of the cloud API; its credential as `name:password`. */
async function createUser(user: Readonly<Record<string, unknown>>): Promise<string> {
  const reply = expectOk(await world.bank.call('POST', '/admin/users', user))
  return `${String(user.username)}:${String(member(reply.json, 'password'))}`
}

const integrator = (username: string, more: Readonly<Record<string, unknown>> = {}) =>
  createUser({ username, role: 'integration', application: world.applicationId, ...more })
const asUser = (credential: string) => world.bank.as(credential)
const isAccepted = async (credential: string): Promise<boolean> => (await asUser(credential).view('nobody')).status !== 401

describe('missing, malformed or wrong credentials', () => {
  const basic = (text: string | Uint8Array) => `Basic ${Buffer.from(text).toString('base64')}`
  test.each<[string, string | undefined]>([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme alone', 'Basic'],
    ['another scheme', 'Bearer abc'],
    ['text that is not Base64', 'Basic !!!!'],
    ['no colon', basic('cred-nocolon')],
    ['an empty user', basic(':x')],
    ['an unknown user', basic('cred-unknown:x')],
    ['invalid UTF-8', basic(new Uint8Array([0xff, 0x3a, 0xff]))],
    ['a zero character', basic('cred\u0000:x')],
    ['a very long user', basic(`${'x'.repeat(4000)}:x`)],
  ])('%s is unauthorized', async (_, value) => {
    const headers = value === undefined ? {} : { Authorization: value }
    expectUnauthorized(await sendJson(world.url, 'GET', '/registration?userId=x', undefined, headers))
    expectUnauthorized(await sendJson(world.url, 'POST', '/admin/application', { id: 'x' }, headers))
  })

  test('a wrong password of the administrator is unauthorized, and the right one still passes', async () => {
    const [user = ''] = String(world.bank.credential).split(':')
    expectUnauthorized(await asUser(`${user}:wrong`).view('x'))
    expectUnauthorized(await asUser(`${user}:`).view('x'))
    expectUnauthorized(await asUser(`${String(world.bank.credential)} `).view('x'))
    expectOk(await world.bank.view('x'))
  })

  test('the values compiled into the app are no credential', async () => {
    const { applicationKey, applicationSecret } = world.app
    expectUnauthorized(await asUser(`${applicationKey}:${applicationSecret}`).view('x'))
    expectUnauthorized(await asUser(`${world.applicationId}:${applicationSecret}`).view('x'))
  })

  test('the scheme is not sensitive to case', async () => {
    const headers = { Authorization: `bAsIc ${Buffer.from(String(world.bank.credential)).toString('base64')}` }
    expectOk(await sendJson(world.url, 'GET', '/registration?userId=x', undefined, headers))
  })
})

describe('roles', () => {
  /** `hint` says which role would do. */
  function expectForbidden(reply: HttpReply, hint?: string): void {
    const violations = [
      { fieldName: 'role', hint: hint ?? (expect.stringMatching(/^must be admin\b.*, this is \w+/) as unknown) },
    ]
    expect({ status: reply.status, json: reply.json }).toEqual({
      status: 403,
      json: { status: 'ERROR', responseObject: { code: 'HTTP_403', message: 'Forbidden', violations } },
    })
  }

  test('an integration user registers in its own application and administers nothing', async () => {
    const bank = asUser(await integrator('role-integration'))
    const userId = world.newUser()
    expectOk(await bank.register(userId))
    expect(await registrationOf(world, userId)).toBe('CREATED')
    expectForbidden(await bank.createApplication('nope'), 'must be admin, this is integration')
    expectForbidden(await bank.call('GET', `/admin/application?id=${world.applicationId}`))
    expectForbidden(await bank.call('GET', '/admin/applications'))
    expectForbidden(await bank.call('GET', '/admin/users'))
    expectForbidden(await bank.call('POST', '/admin/users', { username: 'x', role: 'admin' }))
  })

  test('an internal user does neither', async () => {
    const bank = asUser(await createUser({ username: 'role-internal', role: 'internal' }))
    expectForbidden(await bank.register(world.newUser()))
    expectForbidden(await bank.view('x'), 'must be admin or integration or read-only, this is internal')
    expectForbidden(await bank.commit('x'))
    expectForbidden(await bank.change('x', 'BLOCK'))
    expectForbidden(await bank.remove('x'))
    expectForbidden(await bank.call('GET', '/admin/users'))
  })

  test('a second administrator does what the first does', async () => {
    const bank = asUser(await createUser({ username: 'role-admin', role: 'admin' }))
    expectOk(await bank.createApplication(world.newUser()))
    const userId = world.newUser()
    expectOk(await bank.register(userId))
    expect(await registrationOf(world, userId)).toBe('CREATED')
  })

  test('a credential without application has no access to registrations', async () => {
    const bank = asUser(await createUser({ username: 'role-homeless', role: 'integration' }))
    const { userId } = await world.pendingPhone('3.3')
    for (const reply of [
      await bank.register(world.newUser()),
      await bank.commit(userId),
      await bank.change(userId, 'REMOVE'),
      await bank.remove(userId),
    ]) {
      expectError(reply, 400, 'ERROR_REGISTRATION_NOT_FOUND')
    }
    const view = await bank.view(userId)
    expect(view.status === 200 ? view.json : errorCode(view)).toEqual(
      view.status === 200 ? { registration: 'NONE' } : 'ERROR_REGISTRATION_NOT_FOUND',
    )
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  })

  test('users of one application are invisible in another', async () => {
    const other = world.newUser()
    expectOk(await world.bank.createApplication(other))
    const bank = asUser(await createUser({ username: 'role-other', role: 'integration', application: other }))
    const { userId } = await world.activePhone('3.3')
    expect((await bank.view(userId)).json).toEqual({ registration: 'NONE' })
    expectError(await bank.change(userId, 'BLOCK'), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await bank.remove(userId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await bank.register(userId))
    expect((await bank.view(userId)).json).toMatchObject({ registration: 'CREATED' })
    expect(await registrationOf(world, userId)).toBe('ACTIVE')
  })
})

describe('users', () => {
  test('are created with a generated password that is shown once', async () => {
    const reply = expectOk(
      await world.bank.call('POST', '/admin/users', { username: 'gen', role: 'integration', application: world.applicationId }),
    )
    expect(reply.json).toEqual({
      username: 'gen',
      role: 'integration',
      application: world.applicationId,
      password: expect.any(String),
    })
    const password = String(member(reply.json, 'password'))
    expect(Buffer.from(password).length).toBeGreaterThanOrEqual(40)
    expect(await isAccepted(`gen:${password}`)).toBe(true)
    const list = expectOk(await world.bank.call('GET', '/admin/users'))
    expect(member(list.json, 'users')).toEqual(expect.arrayContaining([expect.objectContaining({ username: 'gen' })]))
    expect(list.text).not.toContain(password)
  })

  test('may have a chosen password of any characters', async () => {
    for (const [username, password] of [
      ['chosen-utf8', 'žluťoučký kůň 📱'],
      ['chosen-colon', 'a:b:c:d:e:f:g:h'],
      ['uživatel', '  surrounded by blanks  '],
    ]) {
      const reply = await world.bank.call('POST', '/admin/users', {
        username,
        password,
        role: 'integration',
        application: 'test-app',
      })
      expectOk(reply)
      expect(await isAccepted(`${username}:${password}`)).toBe(true)
      expect(await isAccepted(`${username}:${password}x`)).toBe(false)
    }
  })

  test.each<[string, Record<string, unknown>]>([
    ['no name', { role: 'admin' }],
    ['a name with a colon', { username: 'a:b', role: 'admin' }],
    ['an empty name', { username: '', role: 'admin' }],
    ['a name with a zero character', { username: 'a\u0000', role: 'admin' }],
    ['no role', { username: 'norole' }],
    ['an unknown role', { username: 'unknownrole', role: 'root' }],
    ['an application that is not text', { username: 'numberapp', role: 'integration', application: 7 }],
    ['an expiry in the past', { username: 'pastexpiry', role: 'admin', expiresAt: 1_700_000_000_000 }],
    ['an expiry that is not a number', { username: 'textexpiry', role: 'admin', expiresAt: 'soon' }],
    ['an empty password', { username: 'emptypassword', role: 'admin', password: '' }],
    ['a short password', { username: 'shortpassword', role: 'admin', password: 'elevenchars' }],
    ['a password that is guessed first', { username: 'weakpassword', role: 'admin', password: 'Administrator1!' }],
  ])('are not created with %s', async (_, user) => {
    expectError(await world.bank.call('POST', '/admin/users', user), 400, 'ERROR_REQUEST')
  })

  test('are not created twice, nor for an application nobody knows', async () => {
    const credential = await integrator('twice')
    const again = { username: 'twice', role: 'admin' }
    expectError(await world.bank.call('POST', '/admin/users', again), 400, 'ERROR_ADMIN')
    expect(await isAccepted(credential)).toBe(true)
    const lost = { username: 'lost', role: 'integration', application: 'no-such-application' }
    expectError(await world.bank.call('POST', '/admin/users', lost), 400, 'ERROR_ADMIN')
  })

  test('are removed for good', async () => {
    const credential = await integrator('removed')
    expect(await isAccepted(credential)).toBe(true)
    expectOk(await world.bank.call('DELETE', '/admin/users/removed'))
    expect(await isAccepted(credential)).toBe(false)
    expectError(await world.bank.call('DELETE', '/admin/users/removed'), 400, 'ERROR_ADMIN')
    const list = expectOk(await world.bank.call('GET', '/admin/users'))
    expect(list.text).not.toContain('"removed"')
  })

  test('get a new password, and the old one dies at once', async () => {
    const credential = await integrator('reset')
    expect(await isAccepted(credential)).toBe(true)
    const reply = expectOk(await world.bank.call('POST', '/admin/users/reset/password', {}))
    expect(reply.json).toEqual({ username: 'reset', password: expect.any(String) })
    expect(await isAccepted(credential)).toBe(false)
    expect(await isAccepted(`reset:${String(member(reply.json, 'password'))}`)).toBe(true)
    expectError(await world.bank.call('POST', '/admin/users/no-such-user/password', {}), 400, 'ERROR_ADMIN')
  })

  test('may use both passwords while they change them', async () => {
    const old = await integrator('rotate')
    const request = { password: 'a chosen new password', keepPreviousSeconds: 60 }
    expectOk(await world.bank.call('POST', '/admin/users/rotate/password', request))
    expect([await isAccepted(old), await isAccepted('rotate:a chosen new password')]).toEqual([true, true])
    await world.advance(MINUTE + SECOND)
    expect([await isAccepted(old), await isAccepted('rotate:a chosen new password')]).toEqual([false, true])
  })

  test('may not have expired from the start', async () => {
    const expiresAt = await world.newPhone('3.3').serverTime()
    const user = { username: 'over', role: 'admin', expiresAt }
    const reply = await world.bank.call('POST', '/admin/users', user)
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(member(reply.json, 'responseObject', 'violations')).toEqual([
      { fieldName: 'expiresAt', invalidValue: String(expiresAt), hint: 'must be in the future' },
    ])
    expect(expectOk(await world.bank.call('GET', '/admin/users')).text).not.toContain('"over"')
  })

  test('may expire', async () => {
    const expiresAt = (await world.newPhone('3.3').serverTime()) + 10 * MINUTE
    const generated = await integrator('expires', { expiresAt })
    const chosen = await integrator('expires-chosen', { expiresAt, password: 'a chosen password' })
    expect([await isAccepted(generated), await isAccepted(chosen)]).toEqual([true, true])
    await world.advance(10 * MINUTE + SECOND)
    expect([await isAccepted(generated), await isAccepted(chosen)]).toEqual([false, false])
  })
})

describe('throttling', () => {
  // Twenty slow hashes take a minute of a busy machine.
  beforeAll(() => server.clock.stop())
  afterAll(() => server.clock.go())

  test('after 20 failures in a minute refuses a user and source for a minute, the right password as well', async () => {
    const right = await integrator('throttled')
    const wrong = asUser('throttled:wrong')
    for (let i = 0; i < 20; i++) expectUnauthorized(await wrong.view('x'))
    const reply = await wrong.view('x')
    expectError(reply, 429, 'HTTP_429')
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60)
    expectError(await asUser(right).view('x'), 429, 'HTTP_429')
    expectError(await wrong.view('x'), 429, 'HTTP_429')
    expectUnauthorized(await asUser('throttled-other:wrong').view('x'))
    await world.advance(MINUTE + SECOND)
    expectUnauthorized(await wrong.view('x'))
    expectOk(await asUser(right).view('x'))
  })

  test('treats unknown names like any other', async () => {
    const stranger = asUser('no-such-user-at-all:wrong')
    for (let i = 0; i < 20; i++) expectUnauthorized(await stranger.view('x'))
    expectError(await stranger.view('x'), 429, 'HTTP_429')
  })

  test('does not count requests without credentials', async () => {
    const nobody = createBank(world.url, undefined)
    for (let i = 0; i < 30; i++) expectUnauthorized(await nobody.view('x'))
  })

  test('counts failures that come at once', async () => {
    const replies = await Promise.all(Array.from({ length: 30 }, () => asUser('flooded:wrong').view('x')))
    const throttled = replies.filter((reply) => reply.status === 429)
    expect(throttled).toHaveLength(10)
  })
})
