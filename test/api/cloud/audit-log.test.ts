// GET /audit/log: what happened to the devices of a user (cloud §7).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { sealAll } from '../../helpers/audit.ts'
import { expectError, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { type HttpReply, member, toQuery } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { type Bound, expectOk, openWorld, type World } from '../../helpers/world.ts'

interface Item {
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  readonly timestamp: number
}

const DAY = 86_400_000

let server: TestServer
let world: World
let bound: Bound
let start: number
beforeAll(async () => {
  server = await startTestServer()
  world = await openWorld({
    urls: [server.url],
    admin: `${server.admin.user}:${server.admin.password}`,
    advance: (milliseconds) => server.clock.advance(milliseconds),
    close: () => server.close(),
  })
  start = server.context.platform.now()
  bound = await world.activePhone('3.3')
  expectOk(await bound.phone.send(bound.phone.prepareValidation({ body: '{"amount":"10"}' })))
  await bound.phone.send(bound.phone.prepareValidation({ body: 'x', wrongKeys: { knowledge: random(16) } }))
  server.clock.advance(SECOND)
  expectOk(await world.bank.change(bound.userId, 'BLOCK', { blockReason: 'LOST' }))
  expectOk(await world.bank.remove(bound.userId))
})
afterAll(() => world.close())

const read = (query: Readonly<Record<string, unknown>>, bank = world.bank): Promise<HttpReply> =>
  bank.call('GET', `/audit/log?${toQuery(query)}`)
const itemsOf = (reply: HttpReply): Item[] => member(expectOk(reply).json, 'items') as Item[]
const list = async (query: Readonly<Record<string, unknown>> = {}): Promise<Item[]> =>
  itemsOf(await read({ userId: bound.userId, ...query }))

async function createUser(user: Readonly<Record<string, unknown>>): Promise<World['bank']> {
  const reply = expectOk(await world.bank.call('POST', '/admin/users', user))
  return world.bank.as(`${String(user['username'])}:${String(member(reply.json, 'password'))}`)
}

const STORY = [
  'registration_removed',
  'registration_blocked',
  'signature_does_not_match',
  'signature_ok',
  'registration_committed',
  'registration_keys_exchanged',
  'registration_created',
]

/** The rows of a user, with the credential that asked for what they tell. */
const listAsked = async (userId: string): Promise<(Item & { verifiedBy?: string })[]> => {
  const path = `/admin/applications/${world.applicationId}/audit?${toQuery({ userId })}`
  return member(expectOk(await world.bank.call('GET', path)).json, 'items') as (Item & { verifiedBy?: string })[]
}
const nameOfBank = (): string => world.bank.credential?.split(':')[0] ?? ''

test('administrators read which credential made, committed, blocked and removed a registration', async () => {
  const items = await listAsked(bound.userId)
  const named = items.filter(({ verifiedBy }) => verifiedBy === nameOfBank()).map(({ eventType }) => eventType)
  expect(named).toEqual(['registration_removed', 'registration_blocked', 'registration_committed', 'registration_created'])
  // The rest is what the phone did.
  expect(items.filter(({ verifiedBy }) => verifiedBy === undefined)).toHaveLength(STORY.length - named.length)
})

test('tells the story of a user, newest first, with four members an item', async () => {
  const items = await list()
  expect(items.map(({ eventType }) => eventType)).toEqual(STORY)
  for (const item of items) {
    expect(Object.keys(item)).toEqual(['activationId', 'eventType', 'eventData', 'timestamp'])
    expect(item.activationId).toBe(bound.phone.state.activationId)
    expect(Number.isInteger(item.timestamp)).toBe(true)
    expect(item.timestamp).toBeGreaterThanOrEqual(start)
  }
  expect(items[3]?.eventData).toBe('POST\n/pa/signature/validate\n{"amount":"10"}')
  expect(items[1]?.eventData).toBe('{"reason":"LOST"}')
  expect(items[5]?.eventData).toBe('{"protocolVersion":"3","platform":"ios"}')
})

test('tells what the bank asked of a user and took back, under the device that was to be asked', async () => {
  const { userId, phone } = await world.activePhone('3.3')
  const create = async (headers = {}): Promise<string> => {
    const reply = await world.bank.createOperation({ userId, template: 'login' }, headers)
    return String(member(expectOk(reply).json, 'operationId'))
  }
  const [first, second, third] = [await create(), await create(), await create({ 'Idempotency-Key': 'once' })]
  expect(await create({ 'Idempotency-Key': 'once' })).toBe(third)
  expectOk(await world.bank.cancelOperation(first, 'CHANGED'))
  expectError(await world.bank.cancelOperation(first), 400, 'ERROR_OPERATION_STATE_CHANGE')
  // The registration goes, what was asked of it can still be taken back.
  expectOk(await world.bank.remove(userId))
  expectOk(await world.bank.cancelOperation(second))
  const items = await list({ userId })
  const told = items.filter(({ eventType }) => eventType.startsWith('operation_')).toReversed()
  expect(told.map(({ eventType, eventData }) => [eventType, JSON.parse(eventData)])).toEqual([
    ...[first, second, third].map((operationId) => [
      'operation_created',
      { operationId, template: 'login', operationType: 'login' },
    ]),
    ['operation_canceled', { operationId: first, reason: 'CHANGED' }],
    ['operation_canceled', { operationId: second }],
  ])
  expect(new Set(items.map(({ activationId }) => activationId))).toEqual(new Set([phone.state.activationId]))
  const asked = (await listAsked(userId)).filter(({ eventType }) => eventType.startsWith('operation_'))
  expect(asked.map(({ verifiedBy }) => verifiedBy)).toEqual(told.map(nameOfBank))
})

test('is the same after the rows were sealed', async () => {
  const before = await list()
  await sealAll(server.context)
  expect(await list()).toEqual(before)
})

describe('the range', () => {
  test('includes both of its ends', async () => {
    const items = await list()
    const time = items[1]?.timestamp ?? 0
    const at = items.filter(({ timestamp }) => timestamp === time)
    expect(await list({ timestampFrom: time, timestampTo: time })).toEqual(at)
    const later = items.filter(({ timestamp }) => timestamp > time)
    expect(await list({ timestampFrom: time + 1 })).toEqual(later)
    expect(await list({ timestampTo: time })).toEqual(items.slice(later.length))
  })

  test('may end in the future, even beyond the calendar, and begin with the epoch', async () => {
    expect(await list({ timestampFrom: 0, timestampTo: '9223372036854775807' })).toHaveLength(STORY.length)
  })

  test('may hold nothing', async () => {
    expect(await list({ timestampFrom: 0, timestampTo: 1 })).toEqual([])
  })

  test.each<[string, Record<string, unknown>]>([
    ['text', { timestampFrom: 'yesterday' }],
    ['nothing', { timestampFrom: '' }],
    ['negative', { timestampFrom: -1 }],
    ['a fraction', { timestampTo: '1.5' }],
    ['an exponent', { timestampTo: '1e3' }],
    ['hexadecimal', { timestampTo: '0x10' }],
    ['a blank', { timestampTo: ' 1' }],
    ['a zero character', { timestampTo: '1\0' }],
    ['beyond 64 bits', { timestampTo: '99999999999999999999' }],
    ['no time before which to look', { before: 'x' }],
    ['turned round', { timestampFrom: 2, timestampTo: 1 }],
    ['of an end before the default start', { timestampTo: 1 }],
    ['of a start in the future', { timestampFrom: 9_999_999_999_999 }],
  ])('is refused when it is %s', async (_, query) => {
    const refusal = await read({ userId: bound.userId, ...query })
    expectError(refusal, 400, 'ERROR_AUDIT')
    // The refusal names a time that was sent.
    const violations = member(member(refusal.json, 'responseObject'), 'violations') as readonly { fieldName: string }[]
    expect(Object.keys(query)).toContain(violations[0]?.fieldName)
  })

  test('is refused when an end is given twice', async () => {
    const reply = await world.bank.call('GET', `/audit/log?userId=${bound.userId}&timestampFrom=1&timestampFrom=2`)
    expectError(reply, 400, 'ERROR_AUDIT')
  })
})

describe('the user', () => {
  test.each(['', '   ', 'a\0b', 'x'.repeat(256)])('%j is a structural error, whatever else is wrong', async (userId) => {
    expectError(await read({ userId }), 400, 'ERROR_REQUEST')
    expectError(await read({ userId, timestampFrom: 'x' }), 400, 'ERROR_REQUEST')
  })

  test('is needed', async () => {
    expectError(await world.bank.call('GET', '/audit/log'), 400, 'ERROR_REQUEST')
  })

  test('who never had a registration in this application is refused', async () => {
    expectError(await read({ userId: 'nobody' }), 400, 'ERROR_AUDIT')
    expectOk(await world.bank.createApplication('elsewhere'))
    const bank = await createUser({ username: 'elsewhere', role: 'integration', application: 'elsewhere' })
    expectError(await read({ userId: bound.userId }, bank), 400, 'ERROR_AUDIT')
    expectOk(await bank.register(bound.userId))
    expect(itemsOf(await read({ userId: bound.userId }, bank)).map(({ eventType }) => eventType)).toEqual([
      'registration_created',
    ])
    expect(await list()).toHaveLength(STORY.length)
  })

  test('is unknown to a credential without application', async () => {
    const bank = await createUser({ username: 'homeless', role: 'integration' })
    expectError(await read({ userId: bound.userId }, bank), 400, 'ERROR_AUDIT')
  })
})

describe('paging', () => {
  test('with limit and before reaches every item once, also those of one millisecond', async () => {
    const all = await list()
    for (const limit of [1, 2, 5, 1000]) {
      const pages: Item[][] = []
      let before: number | undefined
      do {
        const page = await list({ limit, ...(before !== undefined && { before }) })
        if (page.length === 0) break
        pages.push(page)
        before = page.at(-1)?.timestamp
      } while (pages.length < 10)
      expect(pages.flat()).toEqual(all)
    }
  })

  test.each([0, -1, 1001, 'x', 1.5])('is refused with the limit %s', async (limit) => {
    expectError(await read({ userId: bound.userId, limit }), 400, 'ERROR_REQUEST')
  })
})

test('needs a credential whose role may read', async () => {
  expectError(await read({ userId: 'x' }, world.bank.as(undefined)), 401, 'HTTP_401')
  const internal = await createUser({ username: 'internal', role: 'internal' })
  expectError(await read({ userId: 'x' }, internal), 403, 'HTTP_403')
  expectError(await world.bank.call('POST', '/audit/log'), 404, 'ERROR_NOT_FOUND')
})

test('begins 30 days ago when nothing else is said', async () => {
  server.clock.advance(30 * DAY - 5 * MINUTE)
  expect(await list()).toHaveLength(STORY.length)
  server.clock.advance(10 * MINUTE)
  expect(await list()).toEqual([])
  expect(await list({ timestampFrom: start })).toHaveLength(STORY.length)
})
