// push/device/register and inbox/*: where pushes go, and messages of the bank (mobile-token §7, §8); what both and the operations answer to
// malformed bodies, unknown paths and other methods.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashPushToken } from '../../../src/domain/secrets/secrets.ts'
import { inTransaction } from '../../../src/storage/database/database.ts'
import { COUNT_WAITING, serverUrl } from '../../helpers/app.ts'
import { expectError, readCounters } from '../../helpers/expectations.ts'
import { member, send, sendJson } from '../../../phone/http.ts'
import { type Holder, type OperationWorld, startOperationWorld } from '../../helpers/operation-world.ts'
import { SIGNED_CALLS, TOKEN_PATHS, type TokenCall } from '../../../phone/operations.ts'
import { expectOk } from '../../helpers/world.ts'

const OK = { status: 'OK' }
const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+0000$/
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_MOBILE_READS_PER_MINUTE: '1000' } })
})
afterAll(() => world.close())

const call = async ({ phone, token }: Holder, name: TokenCall, requestObject?: unknown, body?: string | Uint8Array) =>
  phone.send(await phone.prepareTokenCall(name, token, requestObject, body === undefined ? {} : { body }))
const pushOf = async (userId: string, bank = world.bank): Promise<unknown> =>
  expectOk(await bank.call('GET', `/push/registration?userId=${encodeURIComponent(userId)}`)).json

describe('push/device/register', () => {
  test.each([
    ['apns', 'apns'],
    ['fcm', 'fcm'],
    ['hms', 'hms'],
    ['ios', 'apns'],
    ['android', 'fcm'],
    ['huawei', 'hms'],
  ])('takes the platform %s', async (platform, stored) => {
    const holder = await world.holder()
    for (const [name, token] of [
      ['push', 'first token'],
      ['pushToken', 'second token'],
    ] as const) {
      const reply = expectOk(await call(holder, name, { platform, token }))
      expect(reply.json).toEqual(OK)
      const { activationId } = holder.phone.state
      expect(await pushOf(holder.userId)).toEqual({ activationId, platform: stored, token })
    }
  })

  test('keeps one token of an activation, the newest, with its environment', async () => {
    const holder = await world.holder()
    for (const environment of ['development', 'production', null, undefined]) {
      expectOk(await call(holder, 'push', { platform: 'apns', environment, token: `of ${environment}` }))
      const { activationId } = holder.phone.state
      const expected = { activationId, platform: 'apns', token: `of ${environment}`, ...(environment && { environment }) }
      expect(await pushOf(holder.userId)).toEqual(expected)
    }
    const rows = await world.db.selectFrom('push_registration').select('push_token').execute()
    for (const { push_token } of rows) expect(push_token.includes('of ')).toBe(false)
  })

  // The embedded database has one session: there nothing happens at the same time.
  test.runIf(serverUrl() !== undefined)('leaves no token of a phone that is removed at the same time', async () => {
    const [context] = world.contexts
    if (context === undefined) throw new TypeError('a world without a server')
    const { db, installationKeys } = context
    const [holder, other] = [await world.holder(), await world.holder()]
    const token = `late ${holder.userId}`
    const hash = Buffer.from(hashPushToken(installationKeys.codeLookup, 'fcm', token))
    const countWaiting = async () => (await sql.raw<{ waiting: number }>(COUNT_WAITING).execute(db)).rows[0]?.waiting
    let replies: Promise<unknown> = Promise.resolve()
    await inTransaction(db, async (tx) => {
      // Until this ends, the registration waits for its place in the index of tokens.
      await tx
        .insertInto('push_registration')
        .values({
          activation_id: other.phone.state.activationId,
          platform: 'fcm',
          environment: null,
          push_token: Buffer.of(1),
          push_token_hash: hash,
          updated_at: new Date(),
        })
        .execute()
      const registering = call(holder, 'push', { platform: 'fcm', token })
      await expect.poll(countWaiting).toBe(1)
      let isRemoved = false
      const removing = world.bank.remove(holder.userId).then(expectOk)
      void removing.finally(() => (isRemoved = true))
      await expect.poll(async () => isRemoved || (await countWaiting()) === 2).toBe(true)
      replies = Promise.all([registering, removing])
      await tx.deleteFrom('push_registration').where('push_token_hash', '=', hash).execute()
    })
    await replies
    const { activationId } = holder.phone.state
    expect(
      await db.selectFrom('push_registration').select('platform').where('activation_id', '=', activationId).execute(),
    ).toEqual([])
  })

  test.runIf(serverUrl() !== undefined)('waits for no other phone, which waits because somebody holds its row', async () => {
    const [context] = world.contexts
    if (context === undefined) throw new TypeError('a world without a server')
    const [held, other] = [await world.holder(), await world.holder()]
    const register = async (holder: Holder) => expectOk(await call(holder, 'push', { platform: 'fcm', token: holder.userId }))
    let late: Promise<unknown> = Promise.resolve()
    await inTransaction(context.db, async (tx) => {
      await sql`select from activation where activation_id = ${held.phone.state.activationId} for update`.execute(tx)
      late = register(held)
      await expect
        .poll(async () => (await sql.raw<{ waiting: number }>(COUNT_WAITING).execute(context.db)).rows[0]?.waiting)
        .toBe(1)
      await register(other)
    })
    await late
  })

  test('takes a token from the activation that had it before, and from no other', async () => {
    const [first, second, third] = [await world.holder(), await world.holder(), await world.holder()]
    const token = `moved ${first.userId}`
    expectOk(await call(third, 'push', { platform: 'fcm', token: `${token} not` }))
    expectOk(await call(first, 'push', { platform: 'apns', token }))
    expectOk(await call(second, 'push', { platform: 'ios', token }))
    expect(await pushOf(first.userId)).toEqual({})
    expect(await pushOf(second.userId)).toMatchObject({ platform: 'apns', token })
    expect(await pushOf(third.userId)).toMatchObject({ platform: 'fcm' })
    // The same text of another platform is another token.
    expectOk(await call(first, 'push', { platform: 'fcm', token }))
    expect(await pushOf(second.userId)).toMatchObject({ platform: 'apns', token })
    expect(await pushOf(first.userId)).toMatchObject({ platform: 'fcm', token })
  })

  test('leaves one owner when phones register and exchange tokens at once', async () => {
    const holders = await Promise.all(Array.from({ length: 4 }, () => world.holder()))
    const tokens = holders.map(({ userId }) => `shared ${userId}`)
    for (let round = 0; round < 4; round++) {
      const calls = holders.map((holder, i) => call(holder, 'push', { platform: 'fcm', token: tokens[(i + round) % 4] }))
      for (const reply of await Promise.all(calls)) expectOk(reply)
    }
    const one = { platform: 'fcm', token: 'of all four' }
    for (const reply of await Promise.all(holders.map((holder) => call(holder, 'push', one)))) expectOk(reply)
    const owners = await Promise.all(holders.map(({ userId }) => pushOf(userId)))
    expect(owners.filter((owner) => member(owner, 'token') !== undefined)).toHaveLength(1)
  })

  test('is forgotten with the activation, and seen by no other application', async () => {
    const holder = await world.holder()
    const side = await world.openSide()
    expectOk(await call(holder, 'push', { platform: 'fcm', token: 'x' }))
    expect(await pushOf(holder.userId, side.bank)).toEqual({})
    expect(await pushOf('nobody')).toEqual({})
    expectOk(await world.bank.remove(holder.userId))
    expect(await pushOf(holder.userId)).toEqual({})
    const left = await world.db
      .selectFrom('push_registration')
      .select('activation_id')
      .where('activation_id', '=', holder.phone.state.activationId)
      .execute()
    expect(left).toEqual([])
  })

  test('fails when the activation is blocked between the check of the token and the write', async () => {
    const holder = await world.holder()
    const { activationId } = holder.phone.state
    // The token header is used up after its check and before the write: there the activation is blocked.
    await sql`
      create function block_meanwhile() returns trigger language plpgsql as
      ${sql.raw(`$$ begin update activation set state = 'BLOCKED' where activation_id = '${activationId}'; return new; end $$`)}
    `.execute(world.db)
    await sql`create trigger block_meanwhile after insert on unique_value execute function block_meanwhile()`.execute(world.db)
    try {
      expectError(await call(holder, 'push', { platform: 'fcm', token: 'x' }), 400, 'PUSH_REGISTRATION_FAILED')
    } finally {
      await sql`drop trigger block_meanwhile on unique_value`.execute(world.db)
      await sql`drop function block_meanwhile`.execute(world.db)
    }
    const rows = await world.db.selectFrom('push_registration').select('activation_id').execute()
    expect(rows).not.toContainEqual({ activation_id: activationId })
  })

  test.each<[string, unknown]>([
    ['no platform', { token: 'x' }],
    ['a null platform', { platform: null, token: 'x' }],
    ['an unknown platform', { platform: 'symbian', token: 'x' }],
    ['a platform in capital letters', { platform: 'APNS', token: 'x' }],
    ['a platform that objects have', { platform: 'constructor', token: 'x' }],
    ['no token', { platform: 'apns' }],
    ['an empty token', { platform: 'apns', token: '' }],
    ['a blank token', { platform: 'apns', token: ' ' }],
    ['a token of a number', { platform: 'apns', token: 7 }],
    ['a token of 4097 characters', { platform: 'apns', token: 'x'.repeat(4097) }],
    ['a token with U+0000', { platform: 'apns', token: 'a\u0000' }],
    ['a token with half of a surrogate pair', { platform: 'apns', token: '\ud800' }],
    ['an unknown environment', { platform: 'apns', token: 'x', environment: 'test' }],
    ['nothing', undefined],
    ['null', null],
    ['a list', []],
  ])('with %s is refused and stores nothing', async (_, requestObject) => {
    const holder = await world.holder()
    for (const name of ['push', 'pushToken'] as const) {
      expectError(await call(holder, name, requestObject), 400, 'INVALID_REQUEST')
    }
    expect(await pushOf(holder.userId)).toEqual({})
    // A refused request does not use its token header up.
    const request = await holder.phone.prepareTokenCall('push', holder.token, requestObject)
    expectError(await holder.phone.send(request), 400, 'INVALID_REQUEST')
    expectError(await holder.phone.send(request), 400, 'INVALID_REQUEST')
  })
})

describe('the inbox', () => {
  const leave = async (
    userId: string,
    subject: string,
    more: Record<string, unknown> = {},
    bank = world.bank,
  ): Promise<string> => {
    const body = { userId, subject, summary: `summary of ${subject}`, body: `body of ${subject}`, ...more }
    return String(member(expectOk(await bank.call('POST', '/inbox/messages', body)).json, 'messageId'))
  }
  const page = async (holder: Holder, requestObject: unknown) => expectOk(await call(holder, 'inboxList', requestObject)).json
  const subjects = (json: unknown) => (member(json, 'responseObject') as { subject: string }[]).map(({ subject }) => subject)
  const unread = async (holder: Holder) =>
    member(expectOk(await call(holder, 'inboxCount')).json, 'responseObject', 'countUnread')

  test('is empty for a bank that does not use it', async () => {
    const holder = await world.holder()
    expect(expectOk(await call(holder, 'inboxCount')).json).toEqual({ ...OK, responseObject: { countUnread: 0 } })
    const empty = { ...OK, responseObject: [], page: 0, size: 10 }
    expect(await page(holder, { page: 0, size: 10, onlyUnread: true })).toEqual(empty)
    expect(expectOk(await call(holder, 'inboxReadAll')).json).toEqual(OK)
  })

  test('counts the unread ones of the newest 10,000, so that a count takes no longer with more', async () => {
    const holder = await world.holder()
    await leave(holder.userId, 'newest')
    await sql`
      insert into inbox_message (message_id, application_id, user_id, type, subject, summary, body, is_read, created_at)
      select message_id || i, application_id, user_id, type, subject, summary, body, i <= 3, created_at - i * interval '1 second'
      from inbox_message, generate_series(1, 10100) i where user_id = ${holder.userId}`.execute(world.db)
    expect(await unread(holder)).toBe(9_997)
  })

  test('shows messages newest first, page by page', async () => {
    const holder = await world.holder()
    for (let i = 0; i < 25; i++) {
      await leave(holder.userId, `m${i}`)
      await world.advance(2)
    }
    expect(await unread(holder)).toBe(25)
    const first = await page(holder, { page: 0, size: 10 })
    expect(member(first, 'page')).toBe(0)
    expect(member(first, 'size')).toBe(10)
    const second = await page(holder, { page: 1, size: 10, onlyUnread: false })
    const third = await page(holder, { page: 2, size: 10 })
    const expected = Array.from({ length: 25 }, (_, i) => `m${24 - i}`)
    expect([first, second, third].flatMap(subjects)).toEqual(expected)
    expect(subjects(await page(holder, { page: 3, size: 10 }))).toEqual([])
    expect(subjects(await page(holder, { page: 100_000, size: 100 }))).toEqual([])
  })

  test('shows a message, marks it, and marks all', async () => {
    const holder = await world.holder()
    const id = await leave(holder.userId, 'html', { type: 'html' })
    const text = await leave(holder.userId, 'text')
    const listed = {
      id,
      type: 'html',
      subject: 'html',
      summary: 'summary of html',
      read: false,
      timestampCreated: expect.stringMatching(DATE),
    }
    const list = member(await page(holder, { page: 0, size: 10 }), 'responseObject')
    expect(list).toContainEqual(listed)
    expect(list).toContainEqual(expect.objectContaining({ id: text, type: 'text' }))
    const detail = { ...OK, responseObject: { ...listed, body: 'body of html' } }
    expect(expectOk(await call(holder, 'inboxDetail', { id })).json).toEqual(detail)
    // Looking at it does not mark it.
    expect(await unread(holder)).toBe(2)
    for (let i = 0; i < 2; i++) expect(expectOk(await call(holder, 'inboxRead', { id })).json).toEqual(OK)
    expect(await unread(holder)).toBe(1)
    expect(subjects(await page(holder, { page: 0, size: 10, onlyUnread: true }))).toEqual(['text'])
    expect(subjects(await page(holder, { page: 0, size: 10, onlyUnread: false }))).toHaveLength(2)
    expectOk(await call(holder, 'inboxReadAll'))
    expect(await unread(holder)).toBe(0)
  })

  test('is listed, read and cleared by the bank, which leaves messages as unread as they were', async () => {
    const holder = await world.holder()
    const first = await leave(holder.userId, 'first')
    await world.advance(2)
    const second = await leave(holder.userId, 'second', { type: 'html' })
    expectOk(await call(holder, 'inboxRead', { id: first }))
    const list = async (query = ''): Promise<unknown> =>
      member(expectOk(await world.bank.call('GET', `/inbox/messages?userId=${holder.userId}${query}`)).json, 'messages')
    const messageOf = (messageId: string, subject: string, more: object) => ({
      messageId,
      type: 'text',
      subject,
      summary: `summary of ${subject}`,
      isRead: false,
      timestampCreated: expect.any(Number) as unknown,
      ...more,
    })
    const [newer, older] = [messageOf(second, 'second', { type: 'html' }), messageOf(first, 'first', { isRead: true })]
    expect(await list()).toEqual([newer, older])
    expect(await list('&onlyUnread=true')).toEqual([newer])
    expect(await list('&limit=1&page=1')).toEqual([older])
    const whole = { ...newer, userId: holder.userId, body: 'body of second' }
    expect(expectOk(await world.bank.call('GET', `/inbox/messages/${second}`)).json).toEqual(whole)
    expect(await unread(holder)).toBe(1)
    expect(expectOk(await world.bank.call('DELETE', `/inbox/messages/${second}`)).json).toEqual({ status: 'OK' })
    expectError(await world.bank.call('DELETE', `/inbox/messages/${second}`), 400, 'ERROR_REQUEST')
    expectError(await world.bank.call('GET', `/inbox/messages/${second}`), 400, 'ERROR_REQUEST')
    expect(subjects(await page(holder, { page: 0, size: 10 }))).toEqual(['first'])
    // A bank has the messages of its application alone.
    const side = await world.openSide()
    expect(member(expectOk(await side.bank.call('GET', `/inbox/messages?userId=${holder.userId}`)).json, 'messages')).toEqual([])
    expectError(await side.bank.call('GET', `/inbox/messages/${first}`), 400, 'ERROR_REQUEST')
    expectError(await side.bank.call('DELETE', `/inbox/messages/${first}`), 400, 'ERROR_REQUEST')
    expect(await list()).toEqual([older])
  })

  test('is that of one user in one application', async () => {
    const side = await world.openSide()
    const [holder, other] = [await world.holder(), await world.holder()]
    const foreign = await world.holder('3.2', {}, side)
    const ids = [
      await leave(other.userId, 'of another'),
      await leave(foreign.userId, 'of a third', {}, side.bank),
      UNKNOWN_ID,
      'x',
    ]
    for (const id of ids) {
      expectError(await call(holder, 'inboxDetail', { id }), 400, 'INBOX_FAILED')
      expectError(await call(holder, 'inboxRead', { id }), 400, 'INBOX_FAILED')
    }
    expectOk(await call(holder, 'inboxReadAll'))
    expect([await unread(holder), await unread(other), await unread(foreign)]).toEqual([0, 1, 1])
  })

  test('stays with the user when the phone is changed', async () => {
    const holder = await world.holder()
    await leave(holder.userId, 'kept')
    expectOk(await world.bank.remove(holder.userId))
    const { code } = await world.register(holder.userId)
    const phone = world.newPhone('3.2')
    await phone.activate(code)
    expectOk(await world.bank.commit(holder.userId))
    expect(await unread({ userId: holder.userId, phone, token: await phone.createToken('possession') })).toBe(1)
  })

  test.each<[TokenCall, unknown]>([
    ['inboxList', undefined],
    ['inboxList', {}],
    ['inboxList', { page: 0 }],
    ['inboxList', { size: 10 }],
    ['inboxList', { page: -1, size: 10 }],
    ['inboxList', { page: 0, size: 0 }],
    ['inboxList', { page: 0, size: -1 }],
    ['inboxList', { page: 0, size: 101 }],
    ['inboxList', { page: 1e15, size: 10 }],
    ['inboxList', { page: 0.5, size: 10 }],
    ['inboxList', { page: '0', size: 10 }],
    ['inboxList', { page: 0, size: 10, onlyUnread: 'yes' }],
    ['inboxDetail', undefined],
    ['inboxDetail', {}],
    ['inboxDetail', { id: '' }],
    ['inboxDetail', { id: 7 }],
    ['inboxDetail', { id: 'a\u0000' }],
    ['inboxRead', { id: null }],
    ['inboxRead', { id: ['x'] }],
    ['inboxRead', { id: 'x'.repeat(256) }],
    ['detail', undefined],
    ['detail', {}],
    ['detail', { id: null }],
    ['detail', { id: '' }],
    ['detail', { id: 7 }],
    ['detail', { id: 'a\u0000' }],
    ['detail', { id: '\udc00' }],
    ['detail', { id: 'x'.repeat(256) }],
    ['claim', undefined],
    ['claim', { id: { $ne: null } }],
  ])('and operations refuse for %s the request object %j', async (name, requestObject) => {
    expectError(await call(await world.holder(), name, requestObject), 400, 'INVALID_REQUEST')
  })

  test('takes messages from the bank only when they are whole', async () => {
    const { userId } = await world.holder()
    const good = { userId, subject: 's', summary: 's', body: 'b' }
    for (const change of [
      { userId: '' },
      { subject: '' },
      { subject: 'x'.repeat(256) },
      { summary: undefined },
      { body: 7 },
      { body: 'a\u0000' },
      { type: 'markdown' },
    ]) {
      expectError(await world.bank.call('POST', '/inbox/messages', { ...good, ...change }), 400, 'ERROR_REQUEST')
    }
    expectError(await world.bank.as(undefined).call('POST', '/inbox/messages', good), 401, 'HTTP_401')
    expectError(await world.bank.as(undefined).call('GET', `/push/registration?userId=${userId}`), 401, 'HTTP_401')
    expectError(await world.bank.call('GET', '/push/registration'), 400, 'ERROR_REQUEST')
  })
})

describe('every endpoint', () => {
  const PATHS = [...Object.values(TOKEN_PATHS), ...Object.values(SIGNED_CALLS).map(([path]) => path)]

  test.each(PATHS)('%s knows POST only, and no path below it', async (path) => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      expectError(await sendJson(world.url, method, path), 404, 'ERROR_NOT_FOUND')
    }
    for (const other of [`${path}/`, `${path}/x`, path.toUpperCase()]) {
      expectError(await sendJson(world.url, 'POST', other, {}), 404, 'ERROR_NOT_FOUND')
    }
  })

  test.each([
    '/api',
    '/api/',
    '/api/auth/token/app/operation',
    '/api/auth/token/app/operation/authorize/offline',
    '/api/activation',
  ])('%s is unknown, whatever its body', async (path) => {
    const body = Buffer.from('{')
    const headers = { 'Content-Type': 'application/json' }
    expectError(await send(world.url, { method: 'POST', path, headers, body }), 404, 'ERROR_NOT_FOUND')
  })

  test.each((Object.keys(TOKEN_PATHS) as TokenCall[]).filter((name) => name !== 'list'))(
    '%s refuses what is not a JSON object and ignores what it does not know',
    async (name) => {
      const holder = await world.holder()
      const bodies = [
        '{',
        '[]',
        'null',
        '7',
        '\ufeff{}',
        '{"__proto__":{}}',
        `{"x":${'['.repeat(5000)}${']'.repeat(5000)}}`,
        `{"x":"${'x'.repeat(256 * 1024)}"}`,
        Buffer.from([0x7b, 0xff, 0x7d]),
        '{"requestObject":{"id":"x"},"x":"\\u0000"}',
      ]
      for (const body of bodies) expectError(await call(holder, name, undefined, body), 400, 'INVALID_REQUEST')
      const request = await holder.phone.prepareTokenCall(name, holder.token, {})
      const plain = { ...request, headers: { ...request.headers, 'Content-Type': 'text/plain' } }
      expectError(await holder.phone.send(plain), 400, 'INVALID_REQUEST')
      const huge = { ...request, body: Buffer.alloc(10 * 1024 * 1024, 0x20) }
      const reply = await holder.phone.send(huge).catch(() => undefined)
      if (reply) expectError(reply, 400, 'INVALID_REQUEST')
      expect((await holder.phone.send(request)).status).toBeLessThan(401)
      if (name === 'inboxCount' || name === 'inboxReadAll') {
        for (const body of ['', '{}', '{"requestObject":{}}', '{"requestObject":[1],"unknown":null}']) {
          expectOk(await call(holder, name, undefined, body))
        }
      }
    },
  )

  test('list reads no body: whatever it is, as long as it is not too long', async () => {
    const holder = await world.holder()
    for (const body of ['', '{', '[]', '7', '{"__proto__":{}}', Buffer.from([0x7b, 0xff, 0x7d]), '{"requestObject":[1]}'])
      expectOk(await call(holder, 'list', undefined, body))
    const request = await holder.phone.prepareTokenCall('list', holder.token, {})
    expectOk(await holder.phone.send({ ...request, headers: { ...request.headers, 'Content-Type': 'text/plain' } }))
    const huge = `{"x":"${'x'.repeat(256 * 1024)}"}`
    expectError(await call(holder, 'list', undefined, huge), 400, 'INVALID_REQUEST')
  })

  test('of the history checks the code before the body', async () => {
    const { phone } = await world.holder()
    const { ctrByte } = await readCounters(phone)
    expectError(await phone.send(phone.prepareSignedCall('history', undefined, { body: '{' })), 400, 'INVALID_REQUEST')
    expect((await readCounters(phone)).ctrByte).toBe(ctrByte + 1)
    for (const body of ['', '{}', '{"requestObject":null}']) {
      expectOk(await phone.send(phone.prepareSignedCall('history', undefined, { body })))
    }
  })
})
