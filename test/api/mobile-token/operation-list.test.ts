// operation/list, detail, detail/claim and history: what a phone sees of the operations of its user (mobile-token §1 to §4.4).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCode, expectError, HOUR, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import {
  expectNothingCounted,
  type Holder,
  type OperationWorld,
  PAYMENT,
  PAYMENT_DATA,
  startOperationWorld,
} from '../../helpers/operation-world.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withHeader, withPair } from '../../../phone/header.ts'
import type { TokenCall, TokenOptions } from '../../../phone/operations.ts'
import { expectOk } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+0000$/
const AUTH_FAIL = {
  status: 'ERROR',
  responseObject: { code: 'POWERAUTH_AUTH_FAIL', message: 'Authentication failed' },
}

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_MOBILE_READS_PER_MINUTE: '1000' } })
})
afterAll(() => world.close())

const call = async ({ phone, token }: Holder, name: TokenCall, requestObject?: unknown, options?: TokenOptions) =>
  phone.send(await phone.prepareTokenCall(name, token, requestObject, options))
const list = async (holder: Holder, options?: TokenOptions): Promise<Record<string, unknown>[]> =>
  member(expectOk(await call(holder, 'list', undefined, options)).json, 'responseObject') as Record<string, unknown>[]
const idsOf = (objects: readonly Record<string, unknown>[]) => objects.map(({ id }) => id)
const history = async ({ phone }: Holder): Promise<Record<string, unknown>[]> =>
  member(await phone.exchange(phone.prepareSignedCall('history')), 'responseObject') as Record<string, unknown>[]
/** A date of the wire, milliseconds; strict, as iOS is. */
const timeOf = (date: unknown): number => (DATE.test(String(date)) ? Date.parse(String(date).replace('+0000', 'Z')) : Number.NaN)

describe.each(PHONE_VERSIONS)('operation/list in %s', (version) => {
  test('is empty, then has what was created', async () => {
    const holder = await world.holder(version)
    const before = expectOk(await call(holder, 'list'))
    expect(before.headers['content-type']).toMatch(/^application\/json/)
    expect(Object.keys(before.json as object).toSorted()).toEqual(['currentTimestamp', 'responseObject', 'status'])
    expect(before.json).toMatchObject({ status: 'OK', responseObject: [] })
    const { id, created, expires } = await world.operation(holder.userId)
    const after = expectOk(await call(holder, 'list')).json
    expect(member(after, 'responseObject')).toEqual([
      {
        id,
        name: 'authorize_payment',
        data: PAYMENT_DATA,
        status: 'PENDING',
        operationCreated: expect.stringMatching(DATE),
        operationExpires: expect.stringMatching(DATE),
        allowedSignatureType: { type: '2FA', variants: ['possession_knowledge', 'possession_biometry'] },
        formData: { title: 'Payment', message: 'Please confirm the payment', attributes: [] },
      },
    ])
    const [first] = member(after, 'responseObject') as Record<string, unknown>[]
    expect(timeOf(first?.['operationCreated'])).toBe(Math.floor(created / SECOND) * SECOND)
    expect(timeOf(first?.['operationExpires'])).toBe(Math.floor(expires / SECOND) * SECOND)
    const now = await holder.phone.serverTime()
    expect(Math.abs(timeOf(member(after, 'currentTimestamp')) - now)).toBeLessThan(10 * SECOND)
  })

  test.each(['', '{', 'null', '[]', '{"requestObject":7}', '\u0000'])('does not look at the body %j', async (body) => {
    const holder = await world.holder(version)
    const { id } = await world.operation(holder.userId)
    expect(idsOf(await list(holder, { body }))).toEqual([id])
  })

  test.each(['possession', 'possession_knowledge', 'possession_biometry'] as const)('takes a token of %s', async (factors) => {
    const holder = await world.holder(version)
    const { id } = await world.operation(holder.userId)
    const token = await holder.phone.createToken(factors)
    expect(idsOf(await list({ ...holder, token }))).toEqual([id])
  })

  test('neither moves the counter nor uses the token header up', async () => {
    const holder = await world.holder(version)
    const { id } = await world.operation(holder.userId)
    const { ctrByte } = await readCounters(holder.phone)
    const request = await holder.phone.prepareTokenCall('list', holder.token)
    for (let i = 0; i < 3; i++) {
      expect(idsOf(member(expectOk(await holder.phone.send(request)).json, 'responseObject') as never)).toEqual([id])
    }
    expect(await readCounters(holder.phone)).toEqual({ state: STATE.ACTIVE, ctrByte, failedAttempts: 0 })
  })

  test('is in the Svc dialect too', async () => {
    const { userId, phone, token } = await world.holder(version, { dialect: 'Svc' })
    await world.operation(userId)
    const request = await phone.prepareTokenCall('list', token)
    expect(Object.keys(request.headers)).toContain('X-Svc-Token')
    expectOk(await phone.send(request))
    const wrong = await phone.prepareTokenCall('list', { ...token, secret: random(16) })
    expect((await phone.send(wrong)).json).toEqual(AUTH_FAIL)
  })
})

describe('operation/list', () => {
  test('has the newest first and at most 100', async () => {
    const holder = await world.holder()
    const made: string[] = []
    for (let i = 0; i < 103; i++) {
      made.unshift((await world.operation(holder.userId)).id)
      await world.advance(2)
    }
    expect(idsOf(await list(holder))).toEqual(made.slice(0, 100))
    expect(idsOf(await history(holder))).toEqual(made.slice(0, 100))
  })

  test('leaves out what is over, also what nobody has stored as expired', async () => {
    const holder = await world.holder()
    const short = await world.template({ expirationSeconds: 60 })
    const { id: kept } = await world.operation(holder.userId)
    await world.operation(holder.userId, { template: short })
    for (const status of ['APPROVED', 'REJECTED', 'FAILED', 'EXPIRED', 'CANCELED'] as const) {
      const { id } = await world.operation(holder.userId)
      await world.db.updateTable('operation').set({ status }).where('operation_id', '=', id).execute()
    }
    await world.advance(MINUTE)
    expect(idsOf(await list(holder))).toEqual([kept])
  })

  test('has only the operations of this user in this application', async () => {
    const side = await world.openSide()
    const [holder, other] = [await world.holder(), await world.holder()]
    const foreign = await world.holder('3.2', {}, side)
    const { id } = await world.operation(holder.userId)
    await world.operation(other.userId)
    await world.operation(foreign.userId, {}, side.bank)
    await world.unclaim((await world.operation(holder.userId)).id)
    expect(idsOf(await list(holder))).toEqual([id])
    // The same user id in the other application is somebody else.
    await world.db.updateTable('operation').set({ user_id: foreign.userId }).where('operation_id', '=', id).execute()
    expect(idsOf(await list(foreign))).not.toContain(id)
  })

  test('says what factors an operation takes', async () => {
    const holder = await world.holder()
    const cases = [
      [['possession'], { type: '1FA', variants: [] }],
      [['possession', 'possession_knowledge'], { type: '1FA', variants: [] }],
      [['possession_biometry'], { type: '2FA', variants: ['possession_biometry'] }],
      [['possession_knowledge'], { type: '2FA', variants: ['possession_knowledge'] }],
    ] as const
    for (const [signatureTypes, expected] of cases) {
      const { id } = await world.operation(holder.userId, { template: await world.template({ signatureTypes }) })
      const found = (await list(holder)).find((object) => object['id'] === id)
      expect(found?.['allowedSignatureType']).toEqual(expected)
    }
  })

  test('is in the first language that there is, else in English', async () => {
    const holder = await world.holder()
    await world.operation(holder.userId, { language: 'cs' })
    const cases: [string | undefined, string][] = [
      ['cs', 'Platba'],
      ['cs-CZ,en;q=0.5', 'Platba'],
      ['de, cs;q=0.9, en;q=0.8', 'Platba'],
      ['cs;q=0.1, en;q=0.8', 'Payment'],
      ['CS', 'Platba'],
      ['de', 'Payment'],
      ['*', 'Payment'],
      ['', 'Payment'],
      ['garbage;;;q=;, \u00ff', 'Payment'],
      ['x'.repeat(4000), 'Payment'],
      [undefined, 'Payment'],
    ]
    for (const [language, title] of cases) {
      const [object] = await list(holder, language === undefined ? {} : { language })
      expect(member(object, 'formData', 'title'), language).toBe(title)
    }
  })

  test('has numbers as the phone writes them, though its template lacks the language', async () => {
    const holder = await world.holder()
    const params = { amount: 'amount', currency: 'currency' }
    const attributes = [{ id: 'a', type: 'AMOUNT', text: 'A', params }]
    const texts = { en: { title: 'Payment', message: 'x', attributes }, cs: { title: 'Platba', message: 'x', attributes } }
    const parameters = { ...PAYMENT, amount: '1234.5' }
    await world.operation(holder.userId, { template: await world.template({ texts }), parameters })
    for (const [language, title, valueFormatted] of [
      ['de-DE', 'Payment', '1.234,50\u00a0€'],
      ['de_DE', 'Payment', '1.234,50\u00a0€'],
      ['cs_CZ', 'Platba', '1\u00a0234,50\u00a0€'],
      ['fr, cs;q=0.9', 'Platba', '1\u202f234,50\u00a0€'],
      ['en, cs;q=0.9', 'Payment', '€1,234.50'],
      // Nobody writes numbers in it.
      ['tlh, cs;q=0.5', 'Platba', '1\u00a0234,50\u00a0€'],
      ['tlh', 'Payment', '€1,234.50'],
      ['*', 'Payment', '€1,234.50'],
    ]) {
      const [object] = await list(holder, { language: language ?? '' })
      const shown = [member(object, 'formData', 'title'), member(object, 'formData', 'attributes', '0', 'valueFormatted')]
      expect(shown, language).toEqual([title, valueFormatted])
    }
  })

  test('takes the alphabetically first language when there is no English', async () => {
    const holder = await world.holder()
    const texts = {
      sk: { title: 'Platba sk', message: 'x', attributes: [] },
      de: { title: 'Zahlung', message: 'x', attributes: [] },
    }
    await world.operation(holder.userId, { template: await world.template({ texts }) })
    const [object] = await list(holder, { language: 'fr' })
    expect(member(object, 'formData', 'title')).toBe('Zahlung')
  })

  test('formats amounts by the language and keeps the number as it was given', async () => {
    const holder = await world.holder()
    const attributes = [
      { id: 'amount', type: 'AMOUNT', text: 'Amount', params: { amount: 'amount', currency: 'currency' } },
      { id: 'account', type: 'KEY_VALUE', text: 'To', params: { value: 'iban' } },
      { id: 'gone', type: 'NOTE', text: 'Note', params: { note: 'no such parameter' } },
    ]
    const texts = { en: { title: 'T', message: 'M', attributes } }
    const parameters = { ...PAYMENT, amount: '12345678901234567890.129' }
    await world.operation(holder.userId, { template: await world.template({ texts }), parameters })
    const reply = expectOk(await call(holder, 'list', undefined, { language: 'en' }))
    const [object] = member(reply.json, 'responseObject') as Record<string, unknown>[]
    expect(member(object, 'formData', 'attributes')).toEqual([
      expect.objectContaining({ type: 'AMOUNT', id: 'amount', label: 'Amount', currency: 'EUR', currencyFormatted: '€' }),
      { type: 'KEY_VALUE', id: 'account', label: 'To', value: PAYMENT.iban },
    ])
    expect(reply.text).toContain('"amount":12345678901234567890.129')
    expect(reply.text).toContain('12,345,678,901,234,567,890.129')
    // Android's parser wants to know the type first.
    expect(reply.text).toMatch(/\{"type":"AMOUNT"/)
  })

  test.each([
    ['X', { flipButtons: true }],
    ['C', { blockApprovalOnCall: true }],
    [
      'F',
      {
        preApprovalScreen: {
          type: 'WARNING',
          heading: expect.any(String),
          message: expect.any(String),
          items: expect.any(Array),
          approvalType: 'SLIDER',
        },
      },
    ],
    ['', undefined],
  ])('of the risk flags %j has the ui that phones parse', async (riskFlags, ui) => {
    const holder = await world.holder()
    await world.operation(holder.userId, { template: await world.template({ riskFlags }) })
    const [object] = await list(holder)
    expect(object?.['ui']).toEqual(ui)
    expect(Object.keys(object ?? {}).includes('ui')).toBe(ui !== undefined)
  })

  test.each([
    ['PowerAuthNetworking/1.5.1 (en;wifi) com.bank.app/1.0.0 (Apple; iOS/16.0; iPhone12,3)', 'LISTITEM'],
    ['PowerAuthNetworking/1.5.1 (cs;cellular) com.bank.app/1.0.0 (Apple; iPadOS/18.2; iPad13,1)', 'LISTITEM'],
    ['PowerAuthNetworking/1.5.1 (en;wifi) com.bank.app/1.0.0 (Samsung; Android/14; SM-A047F)', 'LIST_ITEM'],
    ['PowerAuthNetworkingJS/1.0.0 com.bank.app/1.0.0 (Apple; iOS/18.2; iPhone16)', 'LIST_ITEM'],
    [undefined, 'LIST_ITEM'],
  ])('for the SDK %j spells elements of a list as it reads them', async (userAgent, type) => {
    const holder = await world.holder()
    const screen = { type: 'INFO', heading: 'H', message: 'M', elements: [{ type: 'LIST_ITEM', text: 'T' }] }
    const texts = { en: { title: 'T', message: 'M', attributes: [], ui: { preApprovalScreens: [screen] } } }
    const { id } = await world.operation(holder.userId, { template: await world.template({ texts }) })
    for (const [name, requestObject] of [['list'], ['detail', { id }], ['claim', { id }]] as const) {
      const request = await holder.phone.prepareTokenCall(name, holder.token, requestObject)
      const reply = expectOk(await holder.phone.send(withHeader(request, 'User-Agent', userAgent)))
      expect(reply.text).toContain(`"elements":[{"type":"${type}","text":"T"}]`)
    }
  })

  test('does not depend on the clock of a phone that asks the server for the time', async () => {
    const holder = await world.holder('3.1')
    const { id } = await world.operation(holder.userId)
    const now = await holder.phone.serverTime()
    // Old versions have a window of two hours, newer ones synchronize.
    for (const timestamp of [now - HOUR, now + HOUR]) expect(idsOf(await list(holder, { timestamp }))).toEqual([id])
  })

  test('refuses more than 60 reads a minute of one phone', async () => {
    const limited = await startOperationWorld({ hasStoppedClock: true })
    try {
      const [holder, other] = [await limited.holder(), await limited.holder()]
      const read = async ({ phone, token }: Holder, name: TokenCall, requestObject?: unknown) =>
        phone.send(await phone.prepareTokenCall(name, token, requestObject))
      const { id } = await limited.operation(holder.userId)
      for (let i = 0; i < 58; i++) expectOk(await read(holder, 'list'))
      expectOk(await read(holder, 'detail', { id }))
      expectOk(await read(holder, 'inboxCount'))
      for (const [name, body] of [
        ['list', undefined],
        ['detail', { id }],
        ['inboxCount', undefined],
        ['inboxList', { page: 0, size: 10 }],
        ['inboxDetail', { id: 'x' }],
      ] as const) {
        const reply = await read(holder, name, body)
        expectError(reply, 429, 'TOO_MANY_REQUESTS')
        expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      }
      expectOk(await read(other, 'list'))
      expectOk(await holder.phone.send(holder.phone.prepareAuthorize({ id, data: PAYMENT_DATA })))
      await limited.advance(61 * SECOND)
      expectOk(await read(holder, 'list'))
    } finally {
      await limited.close()
    }
  })
})

describe('a token', () => {
  const READS = ['list', 'detail', 'inboxCount', 'inboxList', 'inboxDetail'] as const
  const WRITES = ['claim', 'push', 'pushToken', 'inboxRead', 'inboxReadAll'] as const
  const BODIES: Record<TokenCall, (id: string) => unknown> = {
    list: () => undefined,
    detail: (id) => ({ id }),
    claim: (id) => ({ id }),
    push: () => ({ platform: 'apns', token: 'x' }),
    pushToken: () => ({ platform: 'fcm', token: 'x' }),
    inboxCount: () => undefined,
    inboxList: () => ({ page: 0, size: 10 }),
    inboxDetail: () => ({ id: 'x' }),
    inboxRead: () => ({ id: 'x' }),
    inboxReadAll: () => undefined,
  }

  test.each([...READS, ...WRITES])('that is wrong in any way is refused by %s with one answer', async (name) => {
    const holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    const { phone, token, userId } = holder
    const good = await phone.prepareTokenCall(name, token, BODIES[name](id))
    const now = await phone.serverTime()
    const other = await world.holder()
    const wrong = [
      withHeader(good, 'X-PowerAuth-Token', undefined),
      withHeader(good, 'X-PowerAuth-Token', ''),
      withHeader(good, 'X-PowerAuth-Token', 'PowerAuth x'),
      withPair(good, 'token_id', UNKNOWN_ID),
      withPair(good, 'token_id', other.token.id),
      withPair(good, 'token_digest', b64(random(32))),
      withPair(good, 'nonce', b64(random(16))),
      withPair(good, 'timestamp', String(now + 1)),
      withPair(good, 'timestamp', '-1'),
      withPair(good, 'timestamp', '9'.repeat(30)),
      withPair(good, 'version', '3.1'),
      await phone.prepareTokenCall(name, token, BODIES[name](id), { timestamp: now - 6 * MINUTE }),
      await phone.prepareTokenCall(name, token, BODIES[name](id), { timestamp: now + 6 * MINUTE }),
      await phone.prepareTokenCall(name, { ...token, secret: random(16) }, BODIES[name](id)),
    ]
    for (const request of wrong) {
      const reply = await phone.send(request)
      expect({ status: reply.status, json: reply.json }).toEqual({ status: 401, json: AUTH_FAIL })
    }
    // None of it burned the genuine request.
    const code = errorCode(await phone.send(good))
    expect([undefined, 'INBOX_FAILED']).toContain(code)
    expectOk(await world.bank.change(userId, 'BLOCK'))
    const blocked = await phone.prepareTokenCall(name, token, BODIES[name](id))
    expect((await phone.send(blocked)).json).toEqual(AUTH_FAIL)
    expectOk(await world.bank.remove(userId))
    expect((await phone.send(blocked)).json).toEqual(AUTH_FAIL)
    expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
  })

  test.each(WRITES)('is good once at %s', async (name) => {
    const { phone, token, userId } = await world.holder()
    const { id } = await world.operation(userId)
    const request = await phone.prepareTokenCall(name, token, BODIES[name](id))
    expect((await phone.send(request)).status).not.toBe(401)
    expect((await phone.send(request)).json).toEqual(AUTH_FAIL)
  })

  test.each(READS)('may come again at %s', async (name) => {
    const { phone, token, userId } = await world.holder()
    const { id } = await world.operation(userId)
    const request = await phone.prepareTokenCall(name, token, BODIES[name](id))
    for (let i = 0; i < 3; i++) expect((await phone.send(request)).status).not.toBe(401)
  })

  test('that was removed is refused', async () => {
    const holder = await world.holder()
    await holder.phone.exchange(holder.phone.prepareTokenRemove(holder.token.id))
    expect((await call(holder, 'list')).json).toEqual(AUTH_FAIL)
  })
})

describe('operation/detail', () => {
  test('shows one operation as the list does', async () => {
    const holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    const reply = expectOk(await call(holder, 'detail', { id: id.toUpperCase() }))
    expect(Object.keys(reply.json as object).toSorted()).toEqual(['currentTimestamp', 'responseObject', 'status'])
    expect([member(reply.json, 'responseObject')]).toEqual(await list(holder))
    expect(timeOf(member(reply.json, 'currentTimestamp'))).not.toBeNaN()
    const czech = expectOk(await call(holder, 'detail', { id }, { language: 'cs' }))
    expect(member(czech.json, 'responseObject', 'formData', 'title')).toBe('Platba')
  })

  test('shows an operation that nobody has claimed, and claims nothing', async () => {
    const holder = await world.holder()
    const { id } = await world.operation((await world.holder()).userId)
    await world.unclaim(id)
    expect(member(expectOk(await call(holder, 'detail', { id })).json, 'responseObject', 'id')).toBe(id)
    expect((await world.stored(id)).userId).toBeNull()
  })

  test.each([
    ['APPROVED', 'OPERATION_ALREADY_FINISHED'],
    ['REJECTED', 'OPERATION_ALREADY_FINISHED'],
    ['FAILED', 'OPERATION_ALREADY_FAILED'],
    ['CANCELED', 'OPERATION_ALREADY_CANCELED'],
    ['EXPIRED', 'OPERATION_EXPIRED'],
  ] as const)('of one that is %s is %s, and so is its claim', async (status, code) => {
    const holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    await world.db.updateTable('operation').set({ status }).where('operation_id', '=', id).execute()
    expectError(await call(holder, 'detail', { id }), 400, code)
    expectError(await call(holder, 'claim', { id }), 400, code)
  })

  test('of one whose time is over is OPERATION_EXPIRED though nobody has stored that', async () => {
    const holder = await world.holder()
    const template = await world.template({ expirationSeconds: 1 })
    const { id } = await world.operation(holder.userId, { template })
    await world.unclaim(id)
    await world.advance(SECOND)
    expectError(await call(holder, 'detail', { id }), 400, 'OPERATION_EXPIRED')
    expectError(await call(holder, 'claim', { id }), 400, 'OPERATION_EXPIRED')
    expect((await world.stored(id)).userId).toBeNull()
  })

  test('of another user, another application or nobody gets one answer', async () => {
    const side = await world.openSide()
    const [holder, other] = [await world.holder(), await world.holder()]
    const foreign = await world.holder('3.2', {}, side)
    const ids = [
      (await world.operation(other.userId)).id,
      (await world.operation(foreign.userId, {}, side.bank)).id,
      UNKNOWN_ID,
      'x',
      'x'.repeat(255),
    ]
    // Whatever has become of it: a stranger does not learn the state either.
    const over = (await world.operation(other.userId)).id
    expectOk(await world.bank.cancelOperation(over))
    for (const name of ['detail', 'claim'] as const) {
      const replies = []
      for (const id of [...ids, over]) replies.push(await call(holder, name, { id }))
      for (const reply of replies) expectError(reply, 400, 'INVALID_OPERATION')
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
    }
    // An unclaimed one of another application is unknown too.
    await world.unclaim(ids[1] ?? '')
    expectError(await call(holder, 'claim', { id: ids[1] }), 400, 'INVALID_OPERATION')
    expect((await world.stored(ids[1] ?? '')).userId).toBeNull()
  })
})

describe('operation/detail/claim', () => {
  test('gives an unclaimed operation to the first, and stays an answer for that one', async () => {
    const [first, second] = [await world.holder(), await world.holder()]
    const { id } = await world.operation(first.userId)
    await world.unclaim(id)
    expect(idsOf(await list(first))).toEqual([])
    const reply = expectOk(await call(first, 'claim', { id }))
    expect(Object.keys(reply.json as object).toSorted()).toEqual(['currentTimestamp', 'responseObject', 'status'])
    expect(member(reply.json, 'responseObject', 'id')).toBe(id)
    expect((await world.stored(id)).userId).toBe(first.userId)
    expect(idsOf(await list(first))).toEqual([id])
    expectOk(await call(first, 'claim', { id: id.toUpperCase() }))
    for (const name of ['claim', 'detail'] as const) expectError(await call(second, name, { id }), 400, 'INVALID_OPERATION')
    expect(await list(second)).toEqual([])
  })

  test('then lets the phone approve', async () => {
    const holder = await world.holder()
    const operation = await world.operation(holder.userId)
    await world.unclaim(operation.id)
    expectError(await holder.phone.send(holder.phone.prepareAuthorize(operation)), 400, 'INVALID_OPERATION')
    expect(await world.stored(operation.id)).toMatchObject({ failureCount: 0, userId: null })
    expectOk(await call(holder, 'claim', { id: operation.id }))
    expectOk(await holder.phone.send(holder.phone.prepareAuthorize(operation)))
    expect((await world.stored(operation.id)).status).toBe('APPROVED')
  })
})

describe.each(PHONE_VERSIONS)('operation/history in %s', (version) => {
  test('has everything that became of the operations, newest first', async () => {
    const holder = await world.holder(version)
    const { phone, userId } = holder
    const short = await world.template({ expirationSeconds: 60 })
    const make = async (template?: string) => {
      await world.advance(2)
      return world.operation(userId, template === undefined ? {} : { template })
    }
    const expired = await make(short)
    await world.advance(MINUTE)
    const [approved, rejected, canceled, failed, pending] = [await make(), await make(), await make(), await make(), await make()]
    expectOk(await phone.send(phone.prepareAuthorize(approved)))
    expectOk(await phone.send(phone.prepareReject(rejected.id, { reason: 'INCORRECT_DATA' })))
    expectOk(await world.bank.cancelOperation(canceled.id, 'TIMEOUT_OF_BANK'))
    for (let i = 0; i < 5; i++) await phone.send(phone.prepareAuthorize({ ...failed, data: 'A2' }))
    const { ctrByte } = await readCounters(phone)
    const reply = expectOk(await phone.send(phone.prepareSignedCall('history')))
    expect(Object.keys(reply.json as object).toSorted()).toEqual(['responseObject', 'status'])
    const objects = member(reply.json, 'responseObject') as Record<string, unknown>[]
    expect(objects.map((object) => [object['id'], object['status'], object['statusReason']])).toEqual([
      [pending.id, 'PENDING', undefined],
      [failed.id, 'FAILED', undefined],
      [canceled.id, 'CANCELED', 'TIMEOUT_OF_BANK'],
      [rejected.id, 'REJECTED', 'INCORRECT_DATA'],
      [approved.id, 'APPROVED', undefined],
      [expired.id, 'EXPIRED', undefined],
    ])
    expect(reply.text).not.toContain('null')
    expect((await readCounters(phone)).ctrByte).toBe(ctrByte + 1)
  })

  test('takes two factors only', async () => {
    const { phone } = await world.holder(version)
    expectOk(await phone.send(phone.prepareSignedCall('history', undefined, { factors: 'possession_biometry' })))
    const before = await readCounters(phone)
    for (const factors of ['possession', 'knowledge', 'possession_knowledge_biometry'] as const) {
      expect((await phone.send(phone.prepareSignedCall('history', undefined, { factors }))).json).toEqual(AUTH_FAIL)
    }
    expect(await readCounters(phone)).toEqual(before)
  })

  test('counts a wrong code and does not take one twice', async () => {
    const { phone } = await world.holder(version)
    const wrong = phone.prepareSignedCall('history', undefined, { wrongKeys: { knowledge: random(16) } })
    expect((await phone.send(wrong)).json).toEqual(AUTH_FAIL)
    expect((await readCounters(phone)).failedAttempts).toBe(1)
    const right = phone.prepareSignedCall('history')
    expectOk(await phone.send(right))
    expect((await readCounters(phone)).failedAttempts).toBe(0)
    expect((await phone.send(right)).json).toEqual(AUTH_FAIL)
  })
})

describe('operation/history', () => {
  test('is in the language of the phone and has no operation of others', async () => {
    const [holder, other] = [await world.holder(), await world.holder()]
    await world.operation(other.userId)
    const { id } = await world.operation(holder.userId)
    const reply = expectOk(await holder.phone.send(holder.phone.prepareSignedCall('history', undefined, { language: 'cs' })))
    const objects = member(reply.json, 'responseObject') as Record<string, unknown>[]
    expect(idsOf(objects)).toEqual([id])
    expect(member(objects[0], 'formData', 'title')).toBe('Platba')
  })

  test('refuses a token, and the list refuses a code', async () => {
    const { phone, token, userId } = await world.holder()
    const { id } = await world.operation(userId)
    const tokenHeaders = (await phone.prepareTokenCall('list', token)).headers
    const withToken = { ...phone.prepareSignedCall('history'), headers: tokenHeaders }
    expect((await phone.send(withToken)).json).toEqual(AUTH_FAIL)
    const { headers, body } = phone.prepareSignedCall('history')
    const withCode = { ...(await phone.prepareTokenCall('list', token)), headers, body }
    expect((await phone.send(withCode)).json).toEqual(AUTH_FAIL)
    await expectNothingCounted(world, { phone, userId }, id, async () => {
      const authorize = { ...phone.prepareAuthorize({ id, data: PAYMENT_DATA }), headers: tokenHeaders }
      expect((await phone.send(authorize)).json).toEqual(AUTH_FAIL)
    })
  })
})
