// Every member of what a phone sends over a right code, absent, null, empty, of a wrong type, too long and as an unknown word. What names an
// operation and is otherwise malformed is 400 and leaves the operation as it was (mobile-token §2, §4.5).
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { expectError, STATE } from '../../helpers/expectations.ts'
import {
  type Holder,
  type OperationWorld,
  PAYMENT_DATA,
  startOperationWorld,
  type TestOperation,
} from '../../helpers/operation-world.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import type { SignedCall, TokenCall } from '../../../phone/operations.ts'
import { expectOk } from '../../helpers/world.ts'

let world: OperationWorld
let holder: Holder
beforeAll(async () => {
  world = await startOperationWorld()
})
beforeEach(async () => {
  holder = await world.holder('3.3')
})
afterAll(() => world.close())

type Json = Record<string, unknown>
type Decision = Exclude<SignedCall, 'history'>

const FACTORS = { authorize: 'possession_knowledge', cancel: 'possession' } as const

/** The whole body; undefined takes a member away. */
async function send(call: Decision, { id, data }: TestOperation, change: Json, wrongKeys = {}): Promise<HttpReply> {
  const requestObject = { id, ...(call === 'authorize' && { data }), ...change }
  const body = JSON.stringify({ requestObject })
  return holder.phone.send(holder.phone.prepareSignedCall(call, undefined, { body, factors: FACTORS[call], wrongKeys }))
}

/** What a request did to counter and operation. */
async function difference(operation: TestOperation, act: () => Promise<void>) {
  const before = await world.counts(holder, operation.id)
  await act()
  const after = await world.counts(holder, operation.id)
  const moved = (Number(after['ctrByte']) - Number(before['ctrByte']) + 256) % 256
  return { ...after, ctrByte: moved }
}
const left = { state: STATE.ACTIVE, failedAttempts: 0, status: 'PENDING', failureCount: 0 }

const LONG = 'x'.repeat(300)
const NO_TEXT = [5, true, {}, ['x']]
const NO_OBJECT = ['', 'x', 5, false, [], [1], [{}]]
const mobileTokenData = { taken: [undefined, null, {}, { 'a\nb': [null] }], malformed: [...NO_OBJECT, LONG, { a: '\0' }] }
const ofCheck = (member: string, values: readonly unknown[]): Json[] =>
  values.map((value) => ({ proximityCheck: { otp: '12345678', type: 'QR_CODE', [member]: value } }))
const of = (member: string, values: readonly unknown[]): Json[] => values.map((value) => ({ [member]: value }))

const TABLE: Readonly<Record<Decision, { readonly taken: readonly Json[]; readonly malformed: readonly Json[] }>> = {
  authorize: {
    taken: [
      ...of('proximityCheck', [undefined, null, {}, { type: 'DEEPLINK' }]),
      ...ofCheck('otp', [undefined, null, '', 'word', LONG]),
      ...ofCheck('type', [undefined, null]),
      // Nothing of them is read.
      ...ofCheck('timestampSent', [undefined, null, '', 5, {}, LONG, 'yesterday']),
      ...ofCheck('timestampReceived', [undefined, null, '', 5, [], LONG, 'yesterday']),
      ...of('mobileTokenData', mobileTokenData.taken),
      ...of('unknown', [null, '', 5, LONG]),
    ],
    malformed: [
      ...of('data', [undefined, null, '', ...NO_TEXT, `${PAYMENT_DATA}\0`, '\ud800']),
      ...of('proximityCheck', [...NO_OBJECT, '12345678', LONG]),
      ...ofCheck('otp', [12_345_678, ...NO_TEXT, '\0']),
      ...ofCheck('type', ['', 'NFC', 'qr_code', 'QR_CODE ', LONG, ...NO_TEXT]),
      ...of('mobileTokenData', mobileTokenData.malformed),
      ...of('unknown', ['\0', { '\ud800': 1 }]),
    ],
  },
  cancel: {
    taken: [
      ...of('reason', [undefined, null, '', 'WORD', 'x'.repeat(255), 'x'.repeat(256), 'ž'.repeat(2000)]),
      ...of('mobileTokenData', mobileTokenData.taken),
    ],
    malformed: [
      ...of('reason', ['x'.repeat(2001), ...NO_TEXT, '\0', '\udc00']),
      ...of('mobileTokenData', mobileTokenData.malformed),
    ],
  },
}
const END = { authorize: 'APPROVED', cancel: 'REJECTED' } as const

describe.each(['authorize', 'cancel'] as const)('with a right code, %s', (call) => {
  test('takes what can be understood', async () => {
    const { userId } = holder
    for (const change of TABLE[call].taken) {
      const operation = await world.operation(userId)
      expect({ change, status: (await send(call, operation, change)).status }).toEqual({ change, status: 200 })
      expect(await world.counts(holder, operation.id)).toMatchObject({ status: END[call], failureCount: 0 })
    }
  })

  test('refuses what names an operation and is otherwise malformed, and the operation stays as it was', async () => {
    const operation = await world.operation(holder.userId)
    for (const change of TABLE[call].malformed) {
      const done = await difference(operation, async () => {
        const reply = await send(call, operation, change)
        expect({ change, status: reply.status, json: reply.json }).toMatchObject({
          change,
          status: 400,
          json: { status: 'ERROR', responseObject: { code: 'INVALID_REQUEST' } },
        })
      })
      expect({ change, ...done }).toEqual({ change, ...left, ctrByte: 1 })
    }
    expect(await world.audit(operation.id)).toEqual([])
    expectOk(await send(call, operation, {}))
  })

  test('answers what names no operation like a wrong code, and uses up nothing', async () => {
    const operation = await world.operation(holder.userId)
    const bodies = [
      ...of('id', [undefined, null, '', ...NO_TEXT, 'x'.repeat(256), `${operation.id}\0`, '\ud800']).map((change) => ({
        requestObject: { data: operation.data, reason: 'UNKNOWN', ...change },
      })),
      ...of('requestObject', [undefined, null, ...NO_OBJECT, operation.id]),
      null,
      [],
    ]
    for (const body of bodies) {
      const request = { body: JSON.stringify(body), factors: FACTORS[call] }
      const done = await difference(operation, async () => {
        const reply = await holder.phone.send(holder.phone.prepareSignedCall(call, undefined, request))
        expectError(reply, 401, 'POWERAUTH_AUTH_FAIL')
      })
      expect({ body, ...done }).toEqual({ body, ...left, ctrByte: 0 })
    }
  })

  test.each(['no-such-operation', 'x'.repeat(255), '00000000-0000-4000-8000-000000000000', "'; --"])(
    'refuses the unknown operation %.40s',
    async (id) => {
      const operation = await world.operation(holder.userId)
      const done = await difference(operation, async () =>
        expectError(await send(call, operation, { id }), 400, 'INVALID_OPERATION'),
      )
      expect(done).toEqual({ ...left, ctrByte: 1 })
    },
  )
})

test('a malformed body over a code of another user touches nothing of the operation', async () => {
  const other = await world.holder('3.2')
  const operation = await world.operation(other.userId)
  expectError(await send('authorize', operation, { mobileTokenData: [1] }), 400, 'INVALID_REQUEST')
  expectError(await send('cancel', operation, { reason: 5 }), 400, 'INVALID_REQUEST')
  expect(await world.counts(other, operation.id)).toMatchObject({ ...left, failureCount: 0 })
})

test.each([{ proximityCheck: { otp: 1 } }, { mobileTokenData: [1] }, { data: null }])(
  'a wrong code over a malformed body is a wrong code: %j',
  async (change) => {
    const operation = await world.operation(holder.userId)
    const reply = await send('authorize', operation, change, { knowledge: random(16) })
    expectError(reply, 401, 'POWERAUTH_AUTH_FAIL')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 1, status: 'PENDING', failureCount: 1 })
    expectOk(await send('authorize', operation, {}))
  },
)

test('no one-time password of a malformed body is in the audit log', async () => {
  const operation = await world.operation(holder.userId)
  const otp = 73_524_961
  for (const proximityCheck of [{ otp }, { otp: [String(otp)] }, String(otp), { otp: String(otp), type: 'NFC' }]) {
    expectError(await send('authorize', operation, { proximityCheck }), 400, 'INVALID_REQUEST')
  }
  const { rows } = await sql`select event_data from audit_trail`.execute(world.db)
  expect(JSON.stringify(rows)).not.toContain(String(otp))
  expect(JSON.stringify(rows)).toContain(operation.id)
})

describe('with a token, a malformed body is refused:', () => {
  const NO_REQUESTS = [undefined, null, {}, [], 'x', 5]
  const ofOperation = [...NO_REQUESTS, ...of('id', [null, '', 5, ['x'], 'x'.repeat(256)])]
  const page = { page: 0, size: 1 }
  const device = { platform: 'apns', token: 't', environment: 'production' }
  test.each<[Exclude<TokenCall, 'list' | 'inboxCount' | 'inboxReadAll'>, readonly unknown[]]>([
    ['detail', ofOperation],
    ['claim', ofOperation],
    ['inboxDetail', ofOperation],
    ['inboxRead', ofOperation],
    [
      'inboxList',
      [
        ...NO_REQUESTS,
        ...of('page', [undefined, null, '', '0', -1, 0.5, [0]]).map((change) => ({ ...page, ...change })),
        ...of('size', [undefined, null, '', '1', 0, 101, 1.5, [1]]).map((change) => ({ ...page, ...change })),
        ...of('onlyUnread', ['', 'true', 0, 1, []]).map((change) => ({ ...page, ...change })),
      ],
    ],
    [
      'push',
      [
        ...NO_REQUESTS,
        ...of('platform', [undefined, null, '', 5, 'wns', 'APNS', LONG]).map((change) => ({ ...device, ...change })),
        ...of('token', [undefined, null, '', ' ', 5, {}, 'x'.repeat(4097), 't\0']).map((change) => ({ ...device, ...change })),
        ...of('environment', ['', 'test', 5, LONG]).map((change) => ({ ...device, ...change })),
      ],
    ],
  ])('%s', async (call, requestObjects) => {
    const { phone, token } = holder
    for (const requestObject of requestObjects) {
      const reply = await phone.send(await phone.prepareTokenCall(call, token, requestObject))
      expect({ requestObject, status: reply.status, json: reply.json }).toMatchObject({
        requestObject,
        status: 400,
        json: { responseObject: { code: 'INVALID_REQUEST' } },
      })
    }
  })

  test('but null is taken for absent', async () => {
    const { phone, token } = holder
    expectOk(await phone.send(await phone.prepareTokenCall('inboxList', token, { ...page, onlyUnread: null })))
    expectOk(await phone.send(await phone.prepareTokenCall('push', token, { ...device, environment: null })))
  })
})
