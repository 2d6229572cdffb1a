// operation/cancel: the phone rejects. A refused rejection never counts on the operation (mobile-token §4.6).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import { expectNothingCounted, type OperationWorld, startOperationWorld } from '../../helpers/operation-world.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withBody, withHeader, withPair } from '../../../phone/header.ts'
import { expectOk } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const OK = { status: 'OK' }
const AUTH_FAIL = {
  status: 'ERROR',
  responseObject: { code: 'POWERAUTH_AUTH_FAIL', message: 'Authentication failed' },
}

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld()
})
afterAll(() => world.close())

/** A user with one operation. */
async function begin(body: Record<string, unknown> = {}, version?: (typeof PHONE_VERSIONS)[number]) {
  const holder = await world.holder(version)
  const operation = await world.operation(holder.userId, body)
  return { ...holder, holder, operation, ctrByte: (await readCounters(holder.phone)).ctrByte }
}

function expectAuthFail(reply: HttpReply): void {
  expect({ status: reply.status, json: reply.json }, reply.text).toEqual({ status: 401, json: AUTH_FAIL })
}

describe.each(PHONE_VERSIONS)('a rejection in %s', (version) => {
  test.each(['UNKNOWN', 'INCORRECT_DATA', 'UNEXPECTED_OPERATION', 'The app says so'])(
    'for %s ends the operation and is shown in the history',
    async (reason) => {
      const { holder, phone, operation, ctrByte } = await begin({}, version)
      const reply = expectOk(await phone.send(phone.prepareReject(operation.id, { reason })))
      expect(reply.json).toEqual(OK)
      expect(await world.counts(holder, operation.id)).toEqual({
        state: STATE.ACTIVE,
        ctrByte: ctrByte + 1,
        failedAttempts: 0,
        status: 'REJECTED',
        failureCount: 0,
      })
      const history = await phone.exchange(phone.prepareSignedCall('history'))
      const expected = { id: operation.id, status: 'REJECTED', statusReason: reason }
      expect(member(history, 'responseObject')).toEqual([expect.objectContaining(expected)])
      expect(await world.audit(operation.id)).toEqual(['operation_rejected'])
      expect(member((await world.bank.readOperation(operation.id)).json, 'status')).toBe('REJECTED')
    },
  )

  test('is not accepted twice', async () => {
    const { holder, phone, operation } = await begin({}, version)
    const request = phone.prepareReject(operation.id)
    expectOk(await phone.send(request))
    await expectNothingCounted(world, holder, operation.id, async () => expectAuthFail(await phone.send(request)))
  })
})

describe('a rejection', () => {
  test('keeps the reason and who rejected; one over 32 characters is no status reason', async () => {
    const { phone, operation } = await begin()
    const reason = 'x'.repeat(33)
    const request = phone.prepareReject(operation.id, { reason, mobileTokenData: { a: [1] } })
    expectOk(await phone.send(withHeader(request, 'User-Agent', 'App/1')))
    const stored = await world.stored(operation.id)
    expect(stored).toMatchObject({ status: 'REJECTED', statusReason: null, finalizedAt: expect.any(Date) })
    expect(stored.additionalData).toEqual({
      activationId: phone.state.activationId,
      applicationId: world.applicationId,
      ipAddress: expect.stringMatching(/127\.0\.0\.1$/),
      userAgent: 'App/1',
      rejectReason: reason,
      mobileTokenData: { a: [1] },
    })
    const history = await phone.exchange(phone.prepareSignedCall('history'))
    expect(Object.keys((member(history, 'responseObject') as object[])[0] ?? {})).not.toContain('statusReason')
  })

  test.each([undefined, null, 'x'.repeat(32), 'x'.repeat(255), 'Důvod 📱'])('takes the reason %j', async (reason) => {
    const { phone, operation } = await begin()
    expectOk(await phone.send(phone.prepareReject(operation.id, { reason })))
    const stored = await world.stored(operation.id)
    expect(stored.statusReason).toBe(typeof reason === 'string' && reason.length <= 32 ? reason : null)
    expect(stored.additionalData?.['rejectReason']).toBe(reason ?? undefined)
  })

  test('takes the id in capital letters and needs no data', async () => {
    const { phone, operation } = await begin()
    expectOk(await phone.send(phone.prepareReject(operation.id.toUpperCase())))
  })

  test('is possible after failed approvals, and for operations that the phone may not approve', async () => {
    const { holder, phone, operation } = await begin({ template: await world.template({ activationFlag: 'VIP' }) })
    expectAuthFail(await phone.send(phone.prepareAuthorize(operation, { wrongKeys: { knowledge: random(16) } })))
    expectOk(await phone.send(phone.prepareReject(operation.id)))
    // Possession resets no failed attempts.
    const counted = { failedAttempts: 1, status: 'REJECTED', failureCount: 1 }
    expect(await world.counts(holder, operation.id)).toMatchObject(counted)
    expectError(await phone.send(phone.prepareAuthorize(operation)), 400, 'OPERATION_ALREADY_FINISHED')
  })

  test.each(['possession_knowledge', 'possession_biometry', 'knowledge', 'possession_knowledge_biometry'] as const)(
    'by %s is refused before anything is counted',
    async (factors) => {
      const { holder, phone, operation } = await begin()
      await expectNothingCounted(world, holder, operation.id, async () => {
        expectAuthFail(await phone.send(phone.prepareReject(operation.id, { factors })))
      })
      expectOk(await phone.send(phone.prepareReject(operation.id)))
    },
  )

  test('with a wrong code touches nothing', async () => {
    const { holder, phone, operation } = await begin({ template: await world.template({ maxFailureCount: 1 }) })
    const good = phone.prepareReject(operation.id, { reason: 'UNKNOWN' })
    await expectNothingCounted(world, holder, operation.id, async () => {
      const wrong = [
        phone.prepareReject(operation.id, { wrongKeys: { possession: random(16) } }),
        withBody(good, Buffer.from(good.body).toString().replace('UNKNOWN', 'unknown')),
        withPair(good, 'pa_nonce', b64(random(16))),
        withPair(good, 'pa_activation_id', UNKNOWN_ID),
        withPair(good, 'pa_application_key', b64(random(16))),
        withHeader(good, 'X-PowerAuth-Authorization', undefined),
      ]
      for (const request of wrong) expectAuthFail(await phone.send(request))
    })
    expectOk(await phone.send(good))
  })

  test('of a blocked phone touches nothing', async () => {
    const { holder, phone, userId, operation } = await begin()
    expectOk(await world.bank.change(userId, 'BLOCK'))
    await expectNothingCounted(world, holder, operation.id, async () => {
      expectAuthFail(await phone.send(phone.prepareReject(operation.id)))
    })
  })

  test('of an operation of somebody else answers like an unknown one and touches nothing', async () => {
    const side = await world.openSide()
    const other = await begin()
    const foreign = await world.holder('3.2', {}, side)
    const far = await world.operation(foreign.userId, {}, side.bank)
    const unclaimed = await begin()
    await world.unclaim(unclaimed.operation.id)
    const { phone } = await world.holder()
    const texts = new Set<string>()
    for (const id of [other.operation.id, far.id, unclaimed.operation.id, UNKNOWN_ID, 'x']) {
      const reply = await phone.send(phone.prepareReject(id))
      expectError(reply, 400, 'INVALID_OPERATION')
      texts.add(reply.text)
    }
    expect(texts.size).toBe(1)
    for (const { id } of [other.operation, far, unclaimed.operation])
      expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0, statusReason: null })
  })

  test.each([
    ['APPROVED', 'OPERATION_ALREADY_FINISHED'],
    ['REJECTED', 'OPERATION_ALREADY_FINISHED'],
    ['FAILED', 'OPERATION_ALREADY_FAILED'],
    ['CANCELED', 'OPERATION_ALREADY_CANCELED'],
    ['EXPIRED', 'OPERATION_EXPIRED'],
  ] as const)('of one that is %s is %s', async (status, code) => {
    const { holder, phone, operation, ctrByte } = await begin()
    await world.db.updateTable('operation').set({ status }).where('operation_id', '=', operation.id).execute()
    expectError(await phone.send(phone.prepareReject(operation.id, { reason: 'UNKNOWN' })), 400, code)
    const counted = { state: STATE.ACTIVE, ctrByte: ctrByte + 1, failedAttempts: 0, status, failureCount: 0 }
    expect(await world.counts(holder, operation.id)).toEqual(counted)
    expect(await world.stored(operation.id)).toMatchObject({ statusReason: null, additionalData: null })
  })

  test('after the time of the operation is OPERATION_EXPIRED though nobody has stored that', async () => {
    const { phone, operation } = await begin({ template: await world.template({ expirationSeconds: 1 }) })
    await world.advance(SECOND)
    expectError(await phone.send(phone.prepareReject(operation.id)), 400, 'OPERATION_EXPIRED')
  })
})

describe('a body', () => {
  test.each<[string, string]>([
    ['is empty', ''],
    ['has no request object', '{}'],
    ['has no id', '{"requestObject":{"reason":"UNKNOWN"}}'],
    ['has a null id', '{"requestObject":{"id":null}}'],
    ['has an empty id', '{"requestObject":{"id":""}}'],
    ['has an id of a number', '{"requestObject":{"id":1}}'],
    ['has an id with U+0000', '{"requestObject":{"id":"ID\\u0000"}}'],
  ])('that %s is a failed authentication and counts nothing', async (_, body) => {
    const { holder, phone, operation } = await begin()
    const text = body.replace('ID', operation.id)
    await expectNothingCounted(world, holder, operation.id, async () => {
      expectAuthFail(await phone.send(phone.prepareReject(undefined, { body: text })))
    })
    expectOk(await phone.send(phone.prepareReject(operation.id)))
  })

  test('that is not JSON, of another type or too large is invalid and counts nothing', async () => {
    const { holder, phone, operation } = await begin()
    const good = JSON.stringify({ requestObject: { id: operation.id } })
    const bodies = [
      '{',
      `${good}x`,
      good.replace('{', `{"x":"${'x'.repeat(256 * 1024)}",`),
      good.replace('{', `{"x":"${'x'.repeat(16 * 1024)}",`),
      `${'['.repeat(100)}${']'.repeat(100)}`,
    ]
    await expectNothingCounted(world, holder, operation.id, async () => {
      for (const body of bodies) expectError(await phone.send(phone.prepareReject('', { body })), 400, 'INVALID_REQUEST')
      const contentType = 'text/plain'
      expectError(await phone.send(phone.prepareReject('', { body: good, contentType })), 400, 'INVALID_REQUEST')
    })
  })
})
