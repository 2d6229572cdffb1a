// operation/authorize: the phone approves; what counts, what does not, and that all of it moves together (mobile-token §4.5).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import {
  beginStep,
  expectNothingCounted,
  type Holder,
  type OperationWorld,
  PAYMENT,
  PAYMENT_DATA,
  startOperationWorld,
  type TestOperation,
} from '../../helpers/operation-world.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withBody, withHeader, withPair } from '../../../phone/header.ts'
import type { AuthorizeOptions } from '../../../phone/operations.ts'
import { expectOk } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const HEADER = 'X-PowerAuth-Authorization'
const OK = { status: 'OK' }
const WRONG_KEYS = { knowledge: random(16) }
const AUTH_FAIL = {
  status: 'ERROR',
  responseObject: { code: 'POWERAUTH_AUTH_FAIL', message: 'Authentication failed' },
}

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld()
})
afterAll(() => world.close())

interface Case extends Holder {
  readonly holder: Holder
  readonly operation: TestOperation
  readonly authorize: (options?: AuthorizeOptions & { readonly data?: unknown }) => Promise<HttpReply>
  /** Counter byte of the server before anything of the test was sent. */
  readonly ctrByte: number
}

/** A user with one operation. */
async function begin(body: Record<string, unknown> = {}, version?: (typeof PHONE_VERSIONS)[number]): Promise<Case> {
  const holder = await world.holder(version)
  const operation = await world.operation(holder.userId, body)
  const { phone } = holder
  const authorize: Case['authorize'] = ({ data = operation.data, ...options } = {}) =>
    phone.send(phone.prepareAuthorize({ id: operation.id, data }, options))
  return { ...holder, holder, operation, authorize, ctrByte: (await readCounters(phone)).ctrByte }
}

function expectAuthFail(reply: HttpReply): void {
  expect({ status: reply.status, json: reply.json }, reply.text).toEqual({ status: 401, json: AUTH_FAIL })
}

describe.each(PHONE_VERSIONS)('an approval in %s', (version) => {
  test.each(['possession', 'possession_knowledge', 'possession_biometry'] as const)('by %s', async (factors) => {
    const template = await world.template({ signatureTypes: [factors] })
    const { holder, phone, operation, authorize, ctrByte } = await begin({ template }, version)
    const reply = expectOk(await authorize({ factors }))
    expect(reply.json).toEqual(OK)
    expect(reply.headers['content-type']).toMatch(/^application\/json/)
    expect(await world.counts(holder, operation.id)).toEqual({
      state: STATE.ACTIVE,
      ctrByte: ctrByte + 1,
      failedAttempts: 0,
      status: 'APPROVED',
      failureCount: 0,
    })
    expect(member((await world.bank.readOperation(operation.id)).json, 'status')).toBe('APPROVED')
    expect(await world.audit(operation.id)).toEqual(['operation_approved'])
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('with a wrong password fails; the same operation then succeeds with the right one', async () => {
    const { holder, operation, authorize, ctrByte } = await begin({}, version)
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    const failed = { state: STATE.ACTIVE, ctrByte, failedAttempts: 1, status: 'PENDING', failureCount: 1 }
    expect(await world.counts(holder, operation.id)).toEqual(failed)
    expectOk(await authorize())
    const approved = { state: STATE.ACTIVE, ctrByte: ctrByte + 2, failedAttempts: 0, status: 'APPROVED', failureCount: 1 }
    expect(await world.counts(holder, operation.id)).toEqual(approved)
  })

  test('is not accepted twice', async () => {
    const { holder, phone, operation } = await begin({}, version)
    const request = phone.prepareAuthorize(operation)
    expectOk(await phone.send(request))
    const before = await world.counts(holder, operation.id)
    expectAuthFail(await phone.send(request))
    expect(await world.counts(holder, operation.id)).toEqual(before)
    expect(await world.audit(operation.id)).toEqual(['operation_approved'])
  })
})

describe('an approval', () => {
  test('keeps who approved, from where and with what', async () => {
    const { phone, operation } = await begin()
    const mobileTokenData = { any: 'json', nested: { list: [1, null, 'ž'] } }
    const request = phone.prepareAuthorize(operation, { factors: 'possession_biometry', mobileTokenData })
    expectOk(await phone.send(withHeader(request, 'User-Agent', `App/1 ${'x'.repeat(400)}`)))
    const stored = await world.stored(operation.id)
    expect(stored).toMatchObject({ status: 'APPROVED', statusReason: null, finalizedAt: expect.any(Date) })
    expect(stored.additionalData).toEqual({
      activationId: phone.state.activationId,
      applicationId: world.applicationId,
      authFactor: 'possession_biometry',
      ipAddress: expect.stringMatching(/127\.0\.0\.1$/),
      userAgent: `App/1 ${'x'.repeat(249)}`,
      mobileTokenData,
    })
  })

  test('takes the id in capital letters, unknown members and any white space that the code covers', async () => {
    const { phone, operation } = await begin()
    const requestObject = {
      id: operation.id.toUpperCase(),
      data: operation.data,
      unknown: [1],
      proximityCheck: null,
      mobileTokenData: null,
    }
    const body = `\n ${JSON.stringify({ requestObject, other: {} }, null, '\t')} \n`
    expectOk(await phone.send(phone.prepareSignedCall('authorize', undefined, { body })))
  })

  test('is in the Svc dialect too', async () => {
    const holder = await world.holder('3.3', { dialect: 'Svc' })
    const operation = await world.operation(holder.userId)
    const request = holder.phone.prepareAuthorize(operation)
    expect(Object.keys(request.headers)).toContain('X-Svc-Authorization')
    expectOk(await holder.phone.send(request))
    expectAuthFail(await holder.phone.send(request))
  })

  test('compares the data exactly, whatever is in it', async () => {
    const template = await world.template({ dataTemplate: 'A0*T${text}' })
    const parameters = { text: 'Ž*\\ 📱 &amp; "quoted"\u2028' }
    const { operation, authorize } = await begin({ template, parameters })
    expect(operation.data).toBe('A0*TŽ\\*\\\\ 📱 &amp; "quoted"\u2028')
    expectError(await authorize({ data: operation.data.normalize('NFD') }), 401, 'OPERATION_FAILED')
    expectOk(await authorize())
  })

  test('is one transaction: when one part cannot be stored, nothing is', async () => {
    const { holder, phone, operation } = await begin()
    const right = phone.prepareAuthorize(operation)
    const wrong = phone.prepareAuthorize(operation, { wrongKeys: WRONG_KEYS })
    const { rows } = await sql<{ count: string }>`select count(*) as count from audit_trail`.execute(world.db)
    await sql`create function fail_operation() returns trigger language plpgsql as 'begin raise exception ''no''; end'`.execute(
      world.db,
    )
    await sql`create trigger fail_operation before update on operation for each row execute function fail_operation()`.execute(
      world.db,
    )
    try {
      await expectNothingCounted(world, holder, operation.id, async () => {
        for (const request of [right, wrong]) {
          const reply = await phone.send(request)
          expectError(reply, 500, 'ERROR_GENERIC')
          expect(reply.text).not.toContain('no"')
        }
      })
      const after = await sql<{ count: string }>`select count(*) as count from audit_trail`.execute(world.db)
      expect(after.rows).toEqual(rows)
    } finally {
      await sql`drop trigger fail_operation on operation`.execute(world.db)
      await sql`drop function fail_operation`.execute(world.db)
    }
    expectAuthFail(await phone.send(wrong))
    expectOk(await phone.send(right))
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, status: 'APPROVED', failureCount: 1 })
  })
})

describe('a right code', () => {
  test.each<[string, unknown]>([
    ['another amount', PAYMENT_DATA.replace('A10EUR', 'A11EUR')],
    ['a space more', `${PAYMENT_DATA} `],
    ['small letters', PAYMENT_DATA.toLowerCase()],
    ['a word', 'A2'],
  ])('over %s as data counts on the operation and moves the counter', async (_, data) => {
    const { holder, operation, authorize, ctrByte } = await begin()
    expectError(await authorize({ data }), 401, 'OPERATION_FAILED')
    expect(await world.counts(holder, operation.id)).toEqual({
      state: STATE.ACTIVE,
      ctrByte: ctrByte + 1,
      failedAttempts: 0,
      status: 'PENDING',
      failureCount: 1,
    })
    expect(await world.audit(operation.id)).toEqual([])
    expectOk(await authorize())
  })

  test('of factors that the template does not list counts on the operation', async () => {
    for (const [signatureTypes, factors] of [
      [['possession_knowledge'], 'possession_biometry'],
      [['possession_knowledge'], 'possession'],
      [['possession_biometry'], 'possession_knowledge'],
      [['possession'], 'possession_knowledge'],
    ] as const) {
      const template = await world.template({ signatureTypes })
      const { holder, operation, authorize, ctrByte } = await begin({ template })
      expectError(await authorize({ factors }), 401, 'OPERATION_FAILED')
      const counted = { ctrByte: ctrByte + 1, failedAttempts: 0, status: 'PENDING', failureCount: 1 }
      expect(await world.counts(holder, operation.id)).toMatchObject(counted)
      expectOk(await authorize({ factors: signatureTypes[0] }))
    }
  })

  test('resets the failed attempts of the activation, though the approval fails', async () => {
    const { holder, operation, authorize } = await begin()
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    expectError(await authorize({ data: 'A2' }), 401, 'OPERATION_FAILED')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 2 })
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    // Possession alone resets nothing.
    expectError(await authorize({ factors: 'possession' }), 401, 'OPERATION_FAILED')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 1, failureCount: 4 })
  })

  test('with wrong data fails the operation exactly at its maximum', async () => {
    const { holder, operation, authorize, ctrByte } = await begin()
    for (let failures = 1; failures < 5; failures++) {
      expectError(await authorize({ data: 'A2' }), 401, 'OPERATION_FAILED')
      expect(await world.stored(operation.id)).toMatchObject({ status: 'PENDING', failureCount: failures, finalizedAt: null })
    }
    expectError(await authorize({ data: 'A2' }), 400, 'OPERATION_ALREADY_FAILED')
    const ended = { state: STATE.ACTIVE, ctrByte: ctrByte + 5, failedAttempts: 0, status: 'FAILED', failureCount: 5 }
    expect(await world.counts(holder, operation.id)).toEqual(ended)
    expect((await world.stored(operation.id)).finalizedAt).toBeInstanceOf(Date)
    expect(await world.audit(operation.id)).toEqual(['operation_failed'])
    expectError(await authorize(), 400, 'OPERATION_ALREADY_FAILED')
    expect(await world.counts(holder, operation.id)).toEqual({ ...ended, ctrByte: ctrByte + 6 })
  })

  test('with one failure allowed fails at the first', async () => {
    const template = await world.template({ maxFailureCount: 1 })
    const { operation, authorize } = await begin({ template })
    expectError(await authorize({ data: 'A2' }), 400, 'OPERATION_ALREADY_FAILED')
    expect(await world.stored(operation.id)).toMatchObject({ status: 'FAILED', failureCount: 1 })
  })

  test.each([
    ['APPROVED', 'OPERATION_ALREADY_FINISHED'],
    ['REJECTED', 'OPERATION_ALREADY_FINISHED'],
    ['FAILED', 'OPERATION_ALREADY_FAILED'],
    ['CANCELED', 'OPERATION_ALREADY_CANCELED'],
    ['EXPIRED', 'OPERATION_EXPIRED'],
  ] as const)('for an operation that is %s is %s and counts nothing on it', async (status, code) => {
    const { holder, operation, authorize, ctrByte } = await begin()
    await world.db.updateTable('operation').set({ status }).where('operation_id', '=', operation.id).execute()
    expectError(await authorize(), 400, code)
    // Wrong data is not looked at any more.
    expectError(await authorize({ data: 'A2' }), 400, code)
    const counted = { state: STATE.ACTIVE, ctrByte: ctrByte + 2, failedAttempts: 0, status, failureCount: 0 }
    expect(await world.counts(holder, operation.id)).toEqual(counted)
    // A wrong code counts on the activation alone.
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    expect(await world.counts(holder, operation.id)).toEqual({ ...counted, failedAttempts: 1 })
    expect(await world.audit(operation.id)).toEqual([])
  })

  test('after the time of the operation is OPERATION_EXPIRED though nobody has stored that', async () => {
    const template = await world.template({ expirationSeconds: 60 })
    const { operation, authorize } = await begin({ template })
    await world.advance(60 * SECOND)
    expectError(await authorize(), 400, 'OPERATION_EXPIRED')
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    expect((await world.stored(operation.id)).failureCount).toBe(0)
  })

  test('shortly before the end approves', async () => {
    const template = await world.template({ expirationSeconds: 60 })
    const { authorize } = await begin({ template })
    await world.advance(50 * SECOND)
    expectOk(await authorize())
  })
})

describe('a wrong code', () => {
  test('counts on operation and activation, up to both maxima at once', async () => {
    const { holder, operation, authorize, ctrByte } = await begin()
    for (let failures = 1; failures < 5; failures++) {
      expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
      const counted = { state: STATE.ACTIVE, ctrByte, failedAttempts: failures, status: 'PENDING', failureCount: failures }
      expect(await world.counts(holder, operation.id)).toEqual(counted)
    }
    expectError(await authorize({ wrongKeys: WRONG_KEYS }), 400, 'OPERATION_ALREADY_FAILED')
    const ended = { state: STATE.BLOCKED, ctrByte, failedAttempts: 5, status: 'FAILED', failureCount: 5 }
    expect(await world.counts(holder, operation.id)).toEqual(ended)
    expect(await world.audit(operation.id)).toEqual(['operation_failed'])
    for (const wrongKeys of [{}, WRONG_KEYS]) expectAuthFail(await authorize({ wrongKeys }))
    expect(await world.counts(holder, operation.id)).toEqual(ended)
  })

  test('fails the operation at its own maximum', async () => {
    const template = await world.template({ maxFailureCount: 2 })
    const { holder, operation, authorize } = await begin({ template })
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    expectError(await authorize({ wrongKeys: WRONG_KEYS }), 400, 'OPERATION_ALREADY_FAILED')
    const ended = { state: STATE.ACTIVE, failedAttempts: 2, status: 'FAILED', failureCount: 2 }
    expect(await world.counts(holder, operation.id)).toMatchObject(ended)
    // From here on it is wrong for the activation only.
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    expect(await world.counts(holder, operation.id)).toMatchObject({ ...ended, failedAttempts: 3 })
  })

  test('is none when it covers another body, nonce, resource or method: that guesses nothing', async () => {
    const { holder, phone, operation } = await begin()
    const good = phone.prepareAuthorize(operation)
    const [first = '', ...rest] = Buffer.from(good.body).toString().split(operation.data)
    const { headers } = phone.prepareReject(operation.id, { factors: 'possession_knowledge' })
    const wrong = [
      withBody(good, [first, ...rest].join(operation.data.replace('A10EUR', 'A99EUR'))),
      withBody(good, Buffer.concat([Buffer.from(good.body), Buffer.from(' ')])),
      withPair(good, 'pa_nonce', b64(random(16))),
      { ...good, headers },
    ]
    await expectNothingCounted(world, holder, operation.id, async () => {
      for (const request of wrong) expectAuthFail(await phone.send(request))
    })
    expectOk(await phone.send(good))
  })
})

describe('an operation of somebody else', () => {
  test('answers a right code like an unknown one, and is not touched', async () => {
    const side = await world.openSide()
    const [holder, other] = [await world.holder(), await world.holder()]
    const foreign = await world.holder('3.2', {}, side)
    const operations = [await world.operation(other.userId), await world.operation(foreign.userId, {}, side.bank)]
    const over = await world.operation(other.userId)
    expectOk(await world.bank.cancelOperation(over.id))
    const { ctrByte } = await readCounters(holder.phone)
    const texts = new Set<string>()
    for (const id of [...operations.map((operation) => operation.id), over.id, UNKNOWN_ID, 'x']) {
      for (const data of [PAYMENT_DATA, 'A2']) {
        const reply = await holder.phone.send(holder.phone.prepareAuthorize({ id, data }))
        expectError(reply, 400, 'INVALID_OPERATION')
        texts.add(reply.text)
      }
    }
    expect(texts.size).toBe(1)
    expect(await readCounters(holder.phone)).toEqual({ state: STATE.ACTIVE, ctrByte: ctrByte + 10, failedAttempts: 0 })
    for (const { id } of operations) expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
  })

  test('is never burned by wrong codes', async () => {
    const side = await world.openSide()
    const other = await world.holder()
    const foreign = await world.holder('3.2', {}, side)
    const template = await world.template({ maxFailureCount: 1 })
    const operations = [
      await world.operation(other.userId, { template }),
      await world.operation(foreign.userId, { template }, side.bank),
    ]
    for (const operation of operations) {
      const { phone } = await world.holder()
      for (let i = 0; i < 6; i++) expectAuthFail(await phone.send(phone.prepareAuthorize(operation, { wrongKeys: WRONG_KEYS })))
      expect(await readCounters(phone)).toMatchObject({ state: STATE.BLOCKED, failedAttempts: 5 })
      const pressed = { factors: 'possession', wrongKeys: { possession: random(16) } } as const
      for (let i = 0; i < 3; i++) expectAuthFail(await phone.send(phone.prepareAuthorize(operation, pressed)))
      expect(await world.stored(operation.id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
    }
  })

  test('is never burned through a claim: an unclaimed one has no user whose attempts count', async () => {
    const { holder, operation, authorize } = await begin()
    await world.unclaim(operation.id)
    expectAuthFail(await authorize({ wrongKeys: WRONG_KEYS }))
    expectError(await authorize({ data: 'A2' }), 400, 'INVALID_OPERATION')
    expect(await world.counts(holder, operation.id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
  })
})

describe('a stranger who knows the id of an operation', () => {
  const GARBAGE = b64(random(32))

  test.each(['possession_knowledge', 'possession_biometry', 'possession'] as const)(
    'burns nothing with garbage in a header of %s that names no activation of its user',
    async (factors) => {
      const template = await world.template({ maxFailureCount: 1, signatureTypes: ['possession', 'possession_knowledge'] })
      const { holder, phone, operation } = await begin({ template })
      const other = await world.holder()
      const blocked = await world.holder()
      expectOk(await world.bank.change(blocked.userId, 'BLOCK'))
      const removed = await world.holder()
      expectOk(await world.bank.remove(removed.userId))
      const pending = await world.pendingPhone('3.2')
      const good = phone.prepareAuthorize(operation, { factors })
      await expectNothingCounted(world, holder, operation.id, async () => {
        for (const id of [
          UNKNOWN_ID,
          other.phone.state.activationId,
          blocked.phone.state.activationId,
          removed.phone.state.activationId,
          pending.phone.state.activationId,
        ]) {
          const named = withPair(good, 'pa_activation_id', id)
          expectAuthFail(await phone.send(withPair(named, 'pa_signature', GARBAGE)))
        }
      })
      expectOk(await phone.send(factors === 'possession_biometry' ? phone.prepareAuthorize(operation) : good))
    },
  )

  test('burns nothing with forged codes of possession alone, however many, and its user approves', async () => {
    const template = await world.template({ maxFailureCount: 2, signatureTypes: ['possession', 'possession_knowledge'] })
    const { holder, operation, authorize } = await begin({ template })
    await expectNothingCounted(world, holder, operation.id, async () => {
      for (let i = 0; i < 6; i += 1)
        expectAuthFail(await authorize({ factors: 'possession', wrongKeys: { possession: random(16) } }))
    })
    expectOk(await authorize({ factors: 'possession' }))
    expect(await world.stored(operation.id)).toMatchObject({ status: 'APPROVED' })
  })

  test('burns nothing while the activation of its user is blocked', async () => {
    const { holder, userId, operation, authorize } = await begin({ template: await world.template({ maxFailureCount: 1 }) })
    expectOk(await world.bank.change(userId, 'BLOCK'))
    await expectNothingCounted(world, holder, operation.id, async () => {
      for (const wrongKeys of [{}, WRONG_KEYS]) expectAuthFail(await authorize({ wrongKeys }))
      expectAuthFail(await authorize({ factors: 'possession', wrongKeys: { possession: random(16) } }))
    })
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expectOk(await authorize())
  })

  test('burns nothing with a missing, broken or forbidden header', async () => {
    const { holder, phone, operation } = await begin({ template: await world.template({ maxFailureCount: 1 }) })
    const good = phone.prepareAuthorize(operation)
    await expectNothingCounted(world, holder, operation.id, async () => {
      const wrong = [
        withHeader(good, HEADER, undefined),
        withHeader(good, HEADER, ''),
        withHeader(good, HEADER, 'PowerAuth'),
        withHeader(good, HEADER, `Basic ${GARBAGE}`),
        withHeader(good, HEADER, 'x'.repeat(8000)),
        withHeader(good, 'X-Svc-Authorization', 'Svc x="y"'),
        withPair(good, 'pa_activation_id', undefined),
        withPair(good, 'pa_signature', undefined),
        withPair(good, 'pa_signature', ''),
        withPair(good, 'pa_signature', 'x'),
        withPair(good, 'pa_nonce', 'x'),
        withPair(good, 'pa_version', '9.9'),
        withPair(good, 'pa_version', '2.1'),
        withPair(good, 'pa_signature_type', 'knowledge'),
        withPair(good, 'pa_signature_type', 'possession_knowledge_biometry'),
        withPair(good, 'pa_signature_type', 'none'),
      ]
      for (const request of wrong) expectAuthFail(await phone.send(request))
    })
    expectOk(await phone.send(good))
  })

  test('burns nothing with an unknown application key or one of another application', async () => {
    const { operation, phone } = await begin({ template: await world.template({ maxFailureCount: 1 }) })
    const side = await world.openSide()
    const good = phone.prepareAuthorize(operation)
    for (const key of [b64(random(16)), side.app.applicationKey]) {
      expectAuthFail(await phone.send(withPair(good, 'pa_application_key', key)))
    }
    expect(await world.stored(operation.id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
    expectOk(await phone.send(good))
  })
})

describe('a body', () => {
  test.each<[string, string]>([
    ['is empty', ''],
    ['has no request object', '{}'],
    ['has a null request object', '{"requestObject":null}'],
    ['has a list for a request object', '{"requestObject":[]}'],
    ['is a list', '[]'],
    ['is null', 'null'],
    ['has no id', '{"requestObject":{"data":"DATA"}}'],
    ['has a null id', '{"requestObject":{"id":null,"data":"DATA"}}'],
    ['has an empty id', '{"requestObject":{"id":"","data":"DATA"}}'],
    ['has an id of a number', '{"requestObject":{"id":7,"data":"DATA"}}'],
    ['has an id of a list', '{"requestObject":{"id":["ID"],"data":"DATA"}}'],
    ['has an id of 256 characters', `{"requestObject":{"id":"${'x'.repeat(256)}","data":"DATA"}}`],
    ['has an id with U+0000', '{"requestObject":{"id":"ID\\u0000","data":"DATA"}}'],
  ])('that %s is a failed authentication and counts nothing', async (_, body) => {
    const { holder, phone, operation } = await begin()
    const text = body.replace('ID', operation.id).replace('DATA', operation.data)
    await expectNothingCounted(world, holder, operation.id, async () => {
      for (const wrongKeys of [{}, WRONG_KEYS]) {
        expectAuthFail(await phone.send(phone.prepareSignedCall('authorize', undefined, { body: text, wrongKeys })))
      }
    })
    expectOk(await phone.send(phone.prepareAuthorize(operation)))
  })

  test('that is not JSON, not text, too deep or too large is invalid and counts nothing', async () => {
    const { holder, phone, operation } = await begin()
    const good = JSON.stringify({ requestObject: { id: operation.id, data: operation.data } })
    const bodies = [
      '{',
      'id=x',
      `${good}x`,
      `\ufeff${good}`,
      Buffer.concat([Buffer.from(good.slice(0, -1)), Buffer.from(',"x":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      good.replace('{', '{"__proto__":{},'),
      good.replace('{', `{"deep":${'['.repeat(5000)}${']'.repeat(5000)},`),
      good.replace('{', `{"deep":${'{"a":'.repeat(65)}1${'}'.repeat(65)},`),
      good.replace('{', `{"padding":"${'x'.repeat(256 * 1024)}",`),
      good.replace('{', `{"padding":"${'x'.repeat(64 * 1024)}",`),
    ]
    await expectNothingCounted(world, holder, operation.id, async () => {
      for (const body of bodies) {
        const reply = await phone.send(phone.prepareSignedCall('authorize', undefined, { body }))
        expectError(reply, 400, 'INVALID_REQUEST')
        expect(phone.state.ctrData).toBeDefined()
      }
      for (const contentType of ['text/plain', 'application/x-www-form-urlencoded']) {
        const request = phone.prepareSignedCall('authorize', undefined, { body: good, contentType })
        expectError(await phone.send(request), 400, 'INVALID_REQUEST')
      }
    })
    expectOk(await phone.send(phone.prepareAuthorize(operation)))
  })

  test('of 10 MB does not bring the server down', async () => {
    const { phone, operation } = await begin()
    const body = Buffer.alloc(10 * 1024 * 1024, 0x20)
    // The server may close the connection before it has read everything.
    const reply = await phone.send(phone.prepareSignedCall('authorize', undefined, { body })).catch(() => undefined)
    if (reply) expectError(reply, 400, 'INVALID_REQUEST')
    expectOk(await phone.send(phone.prepareAuthorize(operation)))
  })

  test('with a member twice counts the last one, which the code covers too', async () => {
    const { phone, operation } = await begin()
    const body = `{"requestObject":{"id":"${UNKNOWN_ID}","id":"${operation.id}","data":"A2","data":${JSON.stringify(operation.data)}}}`
    expectOk(await phone.send(phone.prepareSignedCall('authorize', undefined, { body })))
  })

  test('may hold 60 KB of data of the app', async () => {
    const { operation, authorize } = await begin()
    const mobileTokenData = { blob: 'x'.repeat(60 * 1024) }
    expectOk(await authorize({ mobileTokenData }))
    expect((await world.stored(operation.id)).additionalData).toMatchObject({ mobileTokenData })
  })
})

describe('flags of the activation', () => {
  test.each(['VERIFICATION_PENDING', 'VERIFICATION_IN_PROGRESS', 'A,VERIFICATION_PENDING'])(
    'with %s nothing is approved, and the operation does not count it',
    async (flags) => {
      const { holder, operation, authorize, ctrByte } = await begin()
      await world.setFlags(holder, flags)
      for (const data of [PAYMENT_DATA, 'A2']) expectAuthFail(await authorize({ data }))
      const counted = { state: STATE.ACTIVE, ctrByte: ctrByte + 2, failedAttempts: 0, status: 'PENDING', failureCount: 0 }
      expect(await world.counts(holder, operation.id)).toEqual(counted)
      await world.setFlags(holder, 'VERIFICATION_PENDING_NOT,OTHER')
      expectOk(await authorize())
    },
  )

  test('that an operation demands must be there', async () => {
    const template = await world.template({ activationFlag: 'VIP' })
    const { holder, operation, authorize } = await begin({ template })
    for (const flags of ['', 'VIPS', 'vip', 'V,IP']) {
      await world.setFlags(holder, flags)
      for (const data of [PAYMENT_DATA, 'A2']) expectError(await authorize({ data }), 400, 'OPERATION_REQUIRES_ACTIVATION_FLAG')
    }
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, status: 'PENDING', failureCount: 0 })
    await world.setFlags(holder, 'OTHER,VIP')
    expectOk(await authorize())
  })

  test('come after the state of the operation and before its data', async () => {
    const template = await world.template({ activationFlag: 'VIP' })
    const { holder, operation, authorize } = await begin({ template })
    await world.setFlags(holder, 'VERIFICATION_PENDING')
    expectAuthFail(await authorize())
    expectOk(await world.bank.cancelOperation(operation.id))
    expectError(await authorize(), 400, 'OPERATION_ALREADY_CANCELED')
  })
})

describe('a proximity check', () => {
  let template: string
  beforeAll(async () => {
    template = await world.template({ isProximityCheckEnabled: true })
  })
  const shownOtp = async ({ id }: TestOperation): Promise<string> =>
    String(member(expectOk(await world.bank.readOperation(id)).json, 'proximityOtp'))

  test.each(['QR_CODE', 'DEEPLINK'])('by %s lets a phone approve that has seen the screen', async (type) => {
    const { operation, authorize } = await begin({ template })
    const otp = await shownOtp(operation)
    const times = { timestampReceived: '2026-01-02T14:44:00+0000', timestampSent: '2026-01-02T14:44:05+0000' }
    expectOk(await authorize({ proximityCheck: { otp, type, ...times } }))
    expect((await world.stored(operation.id)).additionalData).toMatchObject({ proximityCheckType: type })
    expect(JSON.stringify((await world.stored(operation.id)).additionalData)).not.toContain(otp)
  })

  test.each([{}, { timestampReceived: -1, timestampSent: 1e30 }, { timestampReceived: 'soon', timestampSent: null }])(
    'does not look at the times %j',
    async (times) => {
      const { operation, authorize } = await begin({ template })
      expectOk(await authorize({ proximityCheck: { otp: await shownOtp(operation), type: 'QR_CODE', ...times } }))
    },
  )

  test('that fails or is left out counts on the operation and moves the counter', async () => {
    const { holder, operation, authorize, ctrByte } = await begin({ template })
    const otp = await shownOtp(operation)
    const other = await shownOtp((await begin({ template })).operation)
    for (const [index, wrong] of [undefined, '', `${otp} `, other].entries()) {
      const proximityCheck = wrong === undefined ? undefined : { otp: wrong, type: 'QR_CODE' }
      expectError(await authorize({ proximityCheck }), 401, 'OPERATION_FAILED')
      const counted = { ctrByte: ctrByte + index + 1, failedAttempts: 0, status: 'PENDING', failureCount: index + 1 }
      expect(await world.counts(holder, operation.id)).toMatchObject(counted)
    }
    expectError(await authorize({ proximityCheck: { otp: '0', type: 'DEEPLINK' } }), 400, 'OPERATION_ALREADY_FAILED')
    expectError(await authorize({ proximityCheck: { otp, type: 'QR_CODE' } }), 400, 'OPERATION_ALREADY_FAILED')
  })

  test('takes the password of the step before, not an older one', async () => {
    const first = await begin({ template })
    await beginStep(world)
    const otp = await shownOtp(first.operation)
    await world.advance(30 * SECOND)
    expect(await shownOtp(first.operation)).not.toBe(otp)
    expectOk(await first.authorize({ proximityCheck: { otp, type: 'QR_CODE' } }))
    const second = await begin({ template })
    const old = await shownOtp(second.operation)
    await world.advance(60 * SECOND)
    expectError(await second.authorize({ proximityCheck: { otp: old, type: 'QR_CODE' } }), 401, 'OPERATION_FAILED')
  })

  test('whose seed was altered in the database shows no password and takes none: the approval counts as one without it', async () => {
    const { operation, authorize } = await begin({ template })
    const otp = await shownOtp(operation)
    await sql`update operation set proximity_seed = ${Buffer.alloc(60)} where operation_id = ${operation.id}`.execute(world.db)
    expect(expectOk(await world.bank.readOperation(operation.id)).json).not.toHaveProperty('proximityOtp')
    expectError(await authorize({ proximityCheck: { otp, type: 'QR_CODE' } }), 401, 'OPERATION_FAILED')
    expectError(await authorize({}), 401, 'OPERATION_FAILED')
    expect(await world.stored(operation.id)).toMatchObject({ status: 'PENDING', failureCount: 2 })
  })

  test('is ignored for an operation that has none', async () => {
    const { authorize } = await begin()
    expectOk(await authorize({ proximityCheck: { otp: '12345678', type: 'DEEPLINK' } }))
  })

  test('leaves its password neither in the audit log nor in the log', async () => {
    const { operation, authorize, userId } = await begin({ template })
    const otp = await shownOtp(operation)
    expectError(await authorize({ data: 'A2', proximityCheck: { otp, type: 'QR_CODE' } }), 401, 'OPERATION_FAILED')
    expectOk(await authorize({ proximityCheck: { otp, type: 'QR_CODE' } }))
    const { rows } = await sql<{ data: string }>`select event_data as data from audit_trail where user_id = ${userId}`.execute(
      world.db,
    )
    expect(rows.filter(({ data }) => data.includes('/operation/authorize'))).toHaveLength(2)
    expect(rows.filter(({ data }) => data.includes(otp))).toEqual([])
    expect(rows.filter(({ data }) => data.includes(PAYMENT.iban)).length).toBeGreaterThan(0)
  })
})

test('a code that changes nothing, because it was accepted before, leaves a row in the audit log', async () => {
  const { phone, operation } = await begin()
  const request = phone.prepareAuthorize({ id: operation.id, data: operation.data })
  expectOk(await phone.send(request))
  expectAuthFail(await phone.send(request))
  const { rows } = await sql<{ type: string }>`select event_type as type from audit_trail
    where activation_id = ${phone.state.activationId} order by sequence desc limit 1`.execute(world.db)
  expect(rows).toEqual([{ type: 'signature_does_not_match' }])
})
