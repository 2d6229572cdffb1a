// Structural errors of the cloud API and the order of its checks (cloud §1.2, §1.3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError } from '../../helpers/expectations.ts'
import { type HttpReply, member } from '../../../phone/http.ts'
import type { Violation } from '../../../src/lib/errors.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

/** Values that are not identifiers: missing, blank, too long, of another type, or with control characters. */
const NO_IDENTIFIER: [string, unknown][] = [
  ['missing', undefined],
  ['null', null],
  ['a number', 7],
  ['a boolean', true],
  ['an array', ['x']],
  ['an object', {}],
  ['empty', ''],
  ['blank', '   '],
  ['blank beyond ASCII', '\u00a0\u2003'],
  ['256 characters', 'x'.repeat(256)],
  ['256 UTF-16 units in 128 characters', '📱'.repeat(128)],
  ['with a zero character', 'a\u0000b'],
  ['with a line break', 'a\nb'],
  ['ending in a line break', 'a\n'],
  ['with a tabulator', 'a\tb'],
  ['with a delete character', 'a\u007fb'],
]

describe('an identifier that is', () => {
  test.each(NO_IDENTIFIER)('%s is refused as userId wherever there is a body', async (_, userId) => {
    const calls = [
      ['POST', '/registration', { userId }],
      ['POST', '/registration/commit', { userId }],
      ['PUT', '/registration', { userId, change: 'BLOCK' }],
    ] as const
    for (const [method, path, json] of calls) {
      const reply = await world.bank.call(method, path, json)
      expectError(reply, 400, 'ERROR_REQUEST')
      const violations = member(reply.json, 'responseObject', 'violations')
      // A zero character is refused anywhere in the body, so the violation may name the body instead.
      const fieldName = String(userId).includes('\u0000') ? expect.stringMatching(/^(userId|body)$/) : 'userId'
      expect(violations).toEqual([expect.objectContaining({ fieldName, hint: expect.any(String) })])
    }
  })

  test.each(NO_IDENTIFIER.filter(([, value]) => typeof value === 'string'))(
    '%s is refused as userId in a query',
    async (_, userId) => {
      for (const method of ['GET', 'DELETE']) {
        const reply = await world.bank.call(method, `/registration?userId=${encodeURIComponent(String(userId))}`)
        expectError(reply, 400, 'ERROR_REQUEST')
        expect(member(reply.json, 'responseObject', 'violations')).toEqual([expect.objectContaining({ fieldName: 'userId' })])
      }
    },
  )

  test.each(['', '?userid=x', '?userId=a&userId=b', '?userId[]=a', '?userId'])(
    'not in the query %j is refused',
    async (query) => {
      for (const method of ['GET', 'DELETE']) {
        expectError(await world.bank.call(method, `/registration${query}`), 400, 'ERROR_REQUEST')
      }
    },
  )

  test.each(['x'.repeat(255), `${'📱'.repeat(127)}x`, 'a b', '\u00a0x'])('%j is good', async (userId) => {
    expectOk(await world.bank.register(userId))
  })
})

describe('a structural error', () => {
  test('names every violation with the value as sent, cut at 128 characters', async () => {
    const reply = await world.bank.change('x'.repeat(300), 'EXPLODE')
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(member(reply.json, 'responseObject', 'message')).toBe('Request validation failed')
    const violations = member(reply.json, 'responseObject', 'violations') as { fieldName: string; invalidValue: string }[]
    const byName = new Map(violations.map((violation) => [violation.fieldName, violation.invalidValue]))
    expect(byName).toEqual(
      new Map([
        ['userId', 'x'.repeat(128)],
        ['change', 'EXPLODE'],
      ]),
    )
  })

  test.each([
    ['POST', '/registration', (value: string) => ({ userId: value })],
    ['POST', '/v2/registrations/state', (value: string) => ({ registrationIds: [value.slice(0, 255)], change: 'BLOCK' })],
  ] as const)('of %s %s leaves no half of a character where it cuts a value', async (method, path, bodyOf) => {
    const reply = await world.bank.call(method, path, bodyOf(`${'x'.repeat(127)}${'📱'.repeat(100)}`))
    expect(member(reply.json, 'responseObject', 'violations')).toEqual([
      expect.objectContaining({ invalidValue: `${'x'.repeat(127)}\ufffd` }),
    ])
  })

  test.each(['%20', '%0A', '1%20', '%2B1', '0x10', '0b1', '1_0', '1.5', '1e-1', '1e400', '-1', 'NaN', 'Infinity', ''])(
    'is the number %s in a query',
    async (number) => {
      for (const query of [`limit=${number}`, `lastUsedBefore=${number}`]) {
        const reply = await world.bank.call('GET', `/v2/registrations?${query}`)
        expectError(reply, 400, 'ERROR_REQUEST')
        const [fieldName] = query.split('=')
        expect(member(reply.json, 'responseObject', 'violations')).toEqual([expect.objectContaining({ fieldName })])
      }
    },
  )

  test.each(['7', '07', '7.0', '7e0', '0.7E+1'])('is not the number %s in a query', async (number) => {
    expectOk(await world.bank.call('GET', `/v2/registrations?limit=${encodeURIComponent(number)}`))
  })

  test.each(['1', 'True', 'true%20', 'yes', ''])('is the truth %j in a query', async (truth) => {
    expectError(await world.bank.call('GET', `/inbox/messages?userId=x&onlyUnread=${truth}`), 400, 'ERROR_REQUEST')
  })

  test.each([undefined, null, 7, '', 'block', 'Block', 'BLOCK ', 'DELETE', ['BLOCK']])('is the change %j', async (change) => {
    const reply = await world.bank.change(world.newUser(), change)
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(member(reply.json, 'responseObject', 'violations')).toEqual([expect.objectContaining({ fieldName: 'change' })])
  })

  test.each([7, 'x'.repeat(256), 'a\u0000b', {}])('is the external user or block reason %j', async (value) => {
    const { userId } = await world.activePhone('3.3')
    expectError(await world.bank.change(userId, 'BLOCK', { blockReason: value }), 400, 'ERROR_REQUEST')
    expectError(await world.bank.change(userId, 'BLOCK', { externalUserId: value }), 400, 'ERROR_REQUEST')
    expectError(await world.bank.commit(userId, { externalUserId: value }), 400, 'ERROR_REQUEST')
    expect(member((await world.bank.view(userId)).json, 'registration')).toBe('ACTIVE')
  })

  test.each(['{', 'userId=x', '', '[]', '"x"', 'null', '7', '{"userId":"x"} {}'])('is the body %j', async (body) => {
    for (const [method, path] of [
      ['POST', '/registration'],
      ['POST', '/registration/commit'],
      ['PUT', '/registration'],
    ] as const) {
      expectError(await world.bank.callRaw(method, path, body, 'application/json'), 400, 'ERROR_REQUEST')
    }
  })

  test('is the body null, also where no member is needed', async () => {
    expectOk(await world.bank.call('POST', '/admin/users', { username: 'null-body', role: 'internal' }))
    for (const [method, path] of [
      ['POST', '/admin/users/null-body/password'],
      ['PATCH', '/admin/applications/test-app'],
    ] as const) {
      const reply = await world.bank.callRaw(method, path, 'null', 'application/json')
      expectError(reply, 400, 'ERROR_REQUEST')
      expect(member(reply.json, 'responseObject', 'violations')).toEqual([{ fieldName: 'body', hint: 'must be object' }])
    }
    expectError(await world.bank.callRaw('POST', '/admin/application', 'null', 'application/json'), 400, 'ERROR_ADMIN')
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', undefined])('is the content type %j', async (type) => {
    const body = JSON.stringify({ userId: world.newUser() })
    const reply = await world.bank.callRaw('POST', '/registration', body, type)
    expectError(reply, 400, 'ERROR_REQUEST')
    const violations = [{ fieldName: 'Content-Type', hint: 'must be application/json' }]
    expect(member(reply.json, 'responseObject', 'violations')).toEqual(violations)
  })

  test('is a body of invalid UTF-8 or over 256 KiB', async () => {
    const invalid = Buffer.concat([Buffer.from('{"userId":"'), Buffer.from([0xff]), Buffer.from('"}')])
    expectError(await world.bank.callRaw('POST', '/registration', invalid, 'application/json'), 400, 'ERROR_REQUEST')
    const large = JSON.stringify({ userId: world.newUser(), unknown: 'x'.repeat(256 * 1024) })
    expectError(await world.bank.callRaw('POST', '/registration', large, 'application/json'), 400, 'ERROR_REQUEST')
  })

  test.each(['/admin/webhooks/%0A', '/admin/webhooks/%0A/deliveries', '/admin/templates/%0A', '/admin/apps/%0A'])(
    'is no identifier in the path %s',
    async (path) => {
      const reply = await world.bank.call('GET', path)
      expectError(reply, 400, 'ERROR_REQUEST')
      const fieldName = expect.stringMatching(/^(id|name)$/)
      expect(member(reply.json, 'responseObject', 'violations')).toEqual([expect.objectContaining({ fieldName })])
    },
  )

  test('does not depend on stored data', async () => {
    const { userId } = await world.register()
    expectError(await world.bank.change(userId, 'EXPLODE'), 400, 'ERROR_REQUEST')
    expectError(await world.bank.change(world.newUser(), 'EXPLODE'), 400, 'ERROR_REQUEST')
  })

  test('is never a server error', async () => {
    const odd = ['\ud800', 'a\ud800b', '\uffff', '__proto__', 'constructor', '\u202e', '%00']
    for (const userId of odd) {
      const reply = await world.bank.register(userId)
      expect([200, 400], reply.text).toContain(reply.status)
      expect((await world.bank.view(encodeURI(userId.toWellFormed()))).status).toBeLessThan(500)
    }
    for (const query of ['?userId=%', '?userId=%ff', '?userId=%E0%A4%A', '?userId=%00', `?userId=${'x'.repeat(10_000)}`]) {
      expect((await world.bank.call('GET', `/registration${query}`)).status).toBeLessThan(500)
    }
  })

  test('is not an unknown member or an unknown query parameter', async () => {
    const userId = world.newUser()
    expectOk(await world.bank.call('POST', '/registration', { userId, applicationId: 'x', flags: [1] }))
    expectOk(await world.bank.call('GET', `/registration?userId=${userId}&applicationId=x&x[y]=z`))
  })
})

describe('the order of checks is route, credentials, role, structure, state', () => {
  const integrator = { username: 'order-integrator', role: 'integration', application: 'test-app' }
  const internal = { username: 'order-internal', role: 'internal' }
  const outside = { username: 'order-outside', role: 'integration' }
  const users: Record<string, string> = {}
  beforeAll(async () => {
    for (const user of [integrator, internal, outside]) {
      const created = expectOk(await world.bank.call('POST', '/admin/users', user))
      users[user.username] = `${user.username}:${String(member(created.json, 'password'))}`
    }
  })

  test('an unknown path or method is unknown with and without credentials', async () => {
    const unknown = [
      ['POST', '/'],
      ['GET', '/no/such/path'],
      ['POST', '/registrations'],
      ['PATCH', '/registration'],
      ['GET', '/registration/commit'],
      ['PUT', '/admin/application'],
      ['GET', '/registration/'],
    ] as const
    for (const [method, path] of unknown) {
      for (const credential of [world.bank.credential, undefined, 'nobody:nothing', users['order-internal']]) {
        expectError(await world.bank.as(credential).call(method, path), 404, 'ERROR_NOT_FOUND')
      }
    }
    expectError(await world.bank.as(undefined).callRaw('POST', '/nope', '{', 'application/json'), 404, 'ERROR_NOT_FOUND')
  })

  test('a caller without credentials learns nothing about structure', async () => {
    const stranger = world.bank.as(undefined)
    expectError(await stranger.callRaw('POST', '/registration', '{', 'application/json'), 401, 'HTTP_401')
    expectError(await stranger.callRaw('POST', '/registration', '{}', 'text/plain'), 401, 'HTTP_401')
    expectError(await stranger.call('GET', '/registration'), 401, 'HTTP_401')
    expectError(await stranger.call('POST', '/admin/application', {}), 401, 'HTTP_401')
  })

  test('a caller without the role learns nothing about structure or state', async () => {
    const bank = world.bank.as(users['order-internal'])
    expectError(await bank.callRaw('POST', '/registration', '{', 'application/json'), 403, 'HTTP_403')
    expectError(await bank.callRaw('POST', '/registration', '{}', 'text/plain'), 403, 'HTTP_403')
    expectError(await bank.call('GET', '/registration'), 403, 'HTTP_403')
    expectError(await bank.register(world.newUser()), 403, 'HTTP_403')
    const other = world.bank.as(users['order-integrator'])
    expectError(await other.call('POST', '/admin/application', {}), 403, 'HTTP_403')
    expectError(await other.call('GET', '/admin/application?id=test-app'), 403, 'HTTP_403')
  })

  test('structure that no schema describes comes before application and state', async () => {
    const bank = world.bank.as(users['order-outside'])
    const userId = world.newUser()
    expectError(await bank.call('POST', '/v2/registrations', { userId }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    for (const wrong of [{ otpPhase: 'ON_COMMIT' }, { expiresAt: 1 }])
      expectError(await bank.call('POST', '/v2/registrations', { userId, ...wrong }), 400, 'ERROR_REQUEST')
    const place = '/admin/applications/unknown/operations?beforeTimestamp=1'
    expectError(await world.bank.call('GET', place), 400, 'ERROR_REQUEST')
    const user = { username: 'order-late', role: 'integration', application: 'unknown', expiresAt: 1 }
    expectError(await world.bank.call('POST', '/admin/users', user), 400, 'ERROR_REQUEST')
  })

  test('structure comes before state', async () => {
    const { userId } = await world.register()
    expectError(await world.bank.register(userId), 400, 'ERROR_REGISTRATION')
    expectError(
      await world.bank.callRaw('POST', '/registration', `{"userId":"${userId}"`, 'application/json'),
      400,
      'ERROR_REQUEST',
    )
  })
})

describe('an id that pawl made', () => {
  test('is the same in capitals, in every path, query and body', async () => {
    const { bank } = world
    const made = async (path: string, json: unknown, name: string): Promise<string> =>
      String(member(expectOk(await bank.call('POST', path, json)).json, name)).toUpperCase()
    const { userId, phone } = await world.activePhone('3.3')
    const id = phone.state.activationId.toUpperCase()
    const operation = await made('/v2/operations', { userId, template: 'login', registrationId: id }, 'operationId')
    const text = { userId, subject: 'a', summary: 'b', body: 'c' }
    const message = await made('/inbox/messages', text, 'messageId')
    const receiver = { application: 'test-app', kind: 'ACTIVATION', name: 'w', url: 'https://receiver.example', isEnabled: false }
    // A webhook that was imported keeps an id in any form, so capitals are another id.
    const webhook = (await made('/admin/webhooks', receiver, 'id')).toLowerCase()
    expectError(await bank.call('GET', `/admin/webhooks/${webhook.toUpperCase()}`), 400, 'ERROR_ADMIN')
    const reads = [
      ...['', '/history', '/tokens', '/device-keys'].map((part) => `/v2/registrations/${id}${part}`),
      `/v2/operations/${operation}`,
      `/operations?operationId=${operation}`,
      `/operations/offline/qr?operationId=${operation}&registrationId=${id}`,
      `/inbox/messages/${message}`,
      `/admin/webhooks/${webhook}`,
      `/admin/webhooks/${webhook}/deliveries?objectId=${id}`,
      `/admin/applications/test-app/registrations/${id}`,
      `/admin/activations/${id}/config`,
    ]
    for (const path of reads) expectOk(await bank.call('GET', path))
    const found = await bank.call('GET', `/admin/applications/test-app/audit?userId=${userId}&activationId=${id}`)
    expect(member(found.json, 'items')).not.toEqual([])
    const writes = [
      ['PUT', `/v2/registrations/${id}/name`, { name: 'renamed' }],
      ['PUT', `/v2/registrations/${id}/flags`, { flags: ['VIP'] }],
      ['PUT', `/admin/activations/${id}/flags`, { flags: [] }],
      ['PUT', `/admin/activations/${id}/config/a`, { value: 1 }],
      ['POST', '/offline/challenges', { activationId: id, data: 'x', resourceId: '/cash', body: '' }],
      ['DELETE', `/admin/activations/${id}/config/a`, undefined],
      ['DELETE', `/inbox/messages/${message}`, undefined],
      ['DELETE', `/admin/webhooks/${webhook}`, undefined],
      ['DELETE', `/operations?operationId=${operation}`, undefined],
      ['POST', '/v2/registrations/state', { registrationIds: [id], change: 'BLOCK' }],
      ['PUT', `/v2/registrations/${id}`, { change: 'UNBLOCK' }],
      ['DELETE', `/v2/registrations/${id}`, undefined],
    ] as const
    for (const [method, path, json] of writes) expectOk(await bank.call(method, path, json))
    expect(member((await bank.view(userId)).json, 'registration')).toBe('NONE')
  })
})

test('a refusal for a state names the state', async () => {
  const { bank } = world
  const { userId, phone } = await world.activePhone('3.3')
  const path = `/v2/registrations/${phone.state.activationId}`
  const said = async (reply: Promise<HttpReply>): Promise<unknown> => {
    const { status, json } = await reply
    expect(status).toBe(400)
    return (member(json, 'responseObject', 'violations') as Violation[]).map(({ fieldName, hint }) => `${fieldName} ${hint}`)
  }
  expect(await said(bank.change(userId, 'UNBLOCK'))).toEqual(['registration is ACTIVE'])
  expect(await said(bank.call('PUT', path, { change: 'UNBLOCK' }))).toEqual(['registration is ACTIVE'])
  expect(await said(bank.call('POST', `${path}/commit`, {}))).toEqual(['registration is ACTIVE'])
  const all = { registrationIds: [phone.state.activationId], change: 'UNBLOCK' }
  const told = ['registrationIds nothing was changed because of this one', 'registration is ACTIVE']
  expect(await said(bank.call('POST', '/v2/registrations/state', all))).toEqual(told)
  expect(await said(bank.commit(userId))).toEqual(['registration must be PENDING_COMMIT'])
  const operationId = String(member(expectOk(await bank.createOperation({ userId, template: 'login' })).json, 'operationId'))
  expectOk(await bank.cancelOperation(operationId))
  expect(await said(bank.cancelOperation(operationId))).toEqual(['operation is CANCELED'])
  expect(await said(bank.offlineQr(operationId))).toEqual(['operation is CANCELED'])
  expectOk(await bank.change(userId, 'BLOCK'))
  const inactive = ['registration must be ACTIVE, and of this user and application']
  expect(await said(bank.createOperation({ userId, template: 'login' }))).toEqual(inactive)
  expect(await said(bank.offlineQr(operationId))).toEqual(inactive)
  expect(await said(bank.call('POST', '/offline/challenges', { userId, data: 'x', resourceId: '/a', body: '' }))).toEqual(
    inactive,
  )
})
