// The calls of doors by roles, their structure and its faults, and the keys of repeated calls (cloud §12.1).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { doors } from '../../../src/api/door/index.ts'
import { runHousekeeping } from '../../../src/domain/housekeeping.ts'
import { member } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import type { Bank } from '../../helpers/bank.ts'
import { callDoor, createCaller, headerOf, readVerdict, RESOURCE, toDoor, verdictOf } from '../../helpers/door.ts'
import { expectError, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
beforeAll(async () => {
  v4 = await startWorldV4({ worksInBackground: false })
  bank = await createCaller(v4.world.bank, 'web-tier', 'verification', v4.world.applicationId)
})
afterAll(() => v4.close())

const at = { path: '/bank/transfer', resourceId: RESOURCE }
const wrongPin = { wrongKeys: { knowledge: random(16) } }
const newKey = (): string => Buffer.from(random(16)).toString('hex')
const activePhone = async () => (await v4.world.activePhone('3.3')).phone

describe('roles', () => {
  test.each(doors.filter(({ method }) => method === 'POST').map(({ path }) => path))('who may call %s', async (path) => {
    const { applicationId } = v4.world
    const allowed = { admin: undefined, integration: applicationId, verification: applicationId }
    const forbidden = { internal: undefined, 'read-only': applicationId }
    const nameOf = (role: string): string => `${path.slice(1).replaceAll('/', '-')}-${role}`
    const callAs = async (role: string, application: string | undefined) =>
      (await createCaller(v4.world.bank, nameOf(role), role, application)).call('POST', path, {})
    for (const [role, application] of Object.entries(allowed)) expectError(await callAs(role, application), 400, 'ERROR_REQUEST')
    for (const [role, application] of Object.entries(forbidden)) expectError(await callAs(role, application), 403, 'HTTP_403')
    expectError(await bank.as(undefined).call('POST', path, {}), 401, 'HTTP_401')
    expectError(await bank.as('web-tier:wrong').call('POST', path, {}), 401, 'HTTP_401')
  })

  test('the role verification may call the doors and nothing else', async () => {
    const paths = [
      '/operations?operationId=3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      '/registration?userId=alice',
      '/audit/log?userId=alice',
    ]
    for (const path of [...paths, '/admin/users', '/admin/applications', '/push/registration?userId=alice'])
      expectError(await bank.call('GET', path), 403, 'HTTP_403')
    expectError(await bank.register('alice'), 403, 'HTTP_403')
    expectError(await bank.createOperation({ userId: 'alice', template: 'login' }), 403, 'HTTP_403')
    expectError(await bank.call('POST', '/internal/callback/operation', {}), 403, 'HTTP_403')
  })

  test('a credential whose role was changed in the database is refused', async () => {
    const altered = await createCaller(v4.world.bank, 'altered', 'internal')
    expectError(await callDoor(altered, 'code', {}), 403, 'HTTP_403')
    await sql`update credential set role = 'verification', application_id = ${v4.world.applicationId} where username = 'altered'`.execute(
      v4.server.context.db,
    )
    v4.server.context.credentials.forget()
    expectError(await callDoor(altered, 'code', {}), 401, 'HTTP_401')
  })

  test("an activation that was given to another user in the database is nobody else's, not for a request that comes again either", async () => {
    const phone = await activePhone()
    const key = newKey()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expect((await verdictOf(bank, request, {}, key))['isValid']).toBe(true)
    const { activationId } = phone.state
    await sql`update activation set user_id = 'mallory' where activation_id = ${activationId}`.execute(v4.server.context.db)
    expectError(await callDoor(bank, 'code', toDoor(request), key), 400, 'ERROR_REQUEST')
    expect((await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' })))['isValid']).toBe(false)
  })

  test('a key whose first activation is gone is good for another request', async () => {
    const [gone, phone] = [await activePhone(), await activePhone()]
    const key = newKey()
    expect((await verdictOf(bank, gone.prepareSigned({ ...at, body: 'x' }), {}, key))['isValid']).toBe(true)
    await sql`update door_verdict set activation_id = 'gone' where activation_id = ${gone.state.activationId}`.execute(
      v4.server.context.db,
    )
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expect((await verdictOf(bank, request, {}, key))['isValid']).toBe(true)
    expect((await verdictOf(bank, request, {}, key))['isValid']).toBe(true)
  })

  test('a credential without an application is told so', async () => {
    const phone = await activePhone()
    const nobody = await createCaller(v4.world.bank, 'nobody', 'verification')
    expectError(
      await callDoor(nobody, 'code', toDoor(phone.prepareSigned({ ...at, body: 'x' }))),
      400,
      'ERROR_REGISTRATION_NOT_FOUND',
    )
  })
})

describe('what the bank did wrong is an error that changes nothing', () => {
  const CASES: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['no authorization', { authorization: undefined }, 'authorization'],
    ['a long authorization', { authorization: 'x'.repeat(4097) }, 'authorization'],
    ['no method', { method: undefined }, 'method'],
    ['another method', { method: 'TRACE' }, 'method'],
    ['no resource', { resourceId: undefined }, 'resourceId'],
    ['an empty resource', { resourceId: '' }, 'resourceId'],
    ['a resource with a line break', { resourceId: '/transfer\nx' }, 'resourceId'],
    ['a reserved resource', { resourceId: '/pa/signature/validate' }, 'resourceId'],
    ['a reserved resource of operations', { resourceId: '/operation/authorize' }, 'resourceId'],
    ['a reserved resource of the app', { resourceId: '/api/auth/token/app/operation/list' }, 'resourceId'],
    ['bad Base64', { body: 'x*' }, 'body'],
    ['a body that is too long', { body: Buffer.alloc(128 * 1024 + 1).toString('base64') }, 'body'],
    ['a long query', { query: `a=${'x'.repeat(16_383)}` }, 'query'],
    ['a body that is parsed', { body: { amount: 1 } }, 'body'],
    ['no client', { client: undefined }, 'client'],
    ['no address', { client: {} }, 'address'],
    ['an address that is none', { client: { address: 'somewhere' } }, 'address'],
    ['no factors', { factors: [] }, 'factors'],
    ['three factors', { factors: ['POSSESSION_KNOWLEDGE_BIOMETRY'] }, 'factors'],
    ['a flag that is none', { requiredFlags: ['lower'] }, 'requiredFlags'],
    ['a long text', { auditText: 'é'.repeat(600) }, 'auditText'],
    ['a text with a line break', { auditText: 'a\nb' }, 'auditText'],
  ]
  test.each(CASES)('%s', async (_, more, name) => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const reply = await callDoor(bank, 'code', toDoor(request, more), newKey())
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(JSON.stringify(member(reply.json, 'responseObject', 'violations'))).toContain(name)
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 0 })
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
  })

  test('a body of the call beyond 384 KiB', async () => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expectError(await callDoor(bank, 'code', toDoor(request, { unknown: 'x'.repeat(384 * 1024) })), 400, 'ERROR_REQUEST')
    expect(await verdictOf(bank, request, { unknown: 'x'.repeat(300 * 1024) })).toMatchObject({ isValid: true })
  })

  test.each(['short', 'x'.repeat(256), 'with blank inside it'])('the key %j', async (key) => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expectError(await callDoor(bank, 'code', toDoor(request), key), 400, 'ERROR_REQUEST')
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
  })

  test('a key that is made of the header of the phone', async () => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const [, nonce = ''] = /pa_nonce="([^"]+)"/.exec(headerOf(request, 'Authorization')) ?? []
    const [, code = ''] = /pa_signature="([^"]+)"/.exec(headerOf(request, 'Authorization')) ?? []
    expect([nonce.length, code.length]).toEqual([24, expect.any(Number)])
    for (const key of [nonce, `key-of-${nonce}`, nonce.replace(/=+$/, ''), `${code}-${code}`])
      expectError(await callDoor(bank, 'code', toDoor(request), key), 400, 'ERROR_REQUEST')
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
  })
})

describe('Idempotency-Key', () => {
  test('a request whose answer was lost gets it when it comes again, and is the same acceptance', async () => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const key = newKey()
    const first = await verdictOf(bank, request, {}, key)
    expect(first).toMatchObject({ isValid: true, remainingAttempts: 5 })
    expect(await verdictOf(bank, request, {}, key)).toEqual(first)
    expect(await verdictOf(bank, request, {}, newKey())).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await verdictOf(bank, request)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'y' }))).toMatchObject({ isValid: true })
  })

  test('a wrong code that was counted is counted once', async () => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x', ...wrongPin })
    const key = newKey()
    const first = await verdictOf(bank, request, {}, key)
    expect(first).toMatchObject({ isValid: false, reason: 'CODE_WRONG', remainingAttempts: 4 })
    expect(await verdictOf(bank, request, {}, key)).toEqual(first)
    expect(await verdictOf(bank, request)).toMatchObject({ remainingAttempts: 3 })
    expect(await verdictOf(bank, request, {}, key)).toEqual(first)
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 2 })
  })

  test('a verdict for flags stays, and one that counted nothing is judged anew', async () => {
    const phone = await activePhone()
    const flags = { requiredFlags: ['VIP'] }
    const setFlags = async (list: string[]) =>
      expectOk(await v4.world.bank.call('PUT', `/admin/activations/${phone.state.activationId}/flags`, { flags: list }))
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const [key, other] = [newKey(), newKey()]
    expect(await verdictOf(bank, request, flags, key)).toMatchObject({ isValid: false, reason: 'FLAGS' })
    await setFlags(['VIP'])
    expect(await verdictOf(bank, request, flags, key)).toMatchObject({ isValid: false, reason: 'FLAGS', flags: [] })
    const early = phone.prepareSigned({ ...at, body: 'x', factors: 'possession' })
    expect(await verdictOf(bank, early, {}, other)).toMatchObject({ reason: 'FACTORS_NOT_ALLOWED' })
    expect(await verdictOf(bank, early, { factors: ['POSSESSION'] }, other)).toMatchObject({ isValid: true })
  })

  test('one key stands for one request of one credential', async () => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const key = newKey()
    expect(await verdictOf(bank, request, {}, key)).toMatchObject({ isValid: true })
    const others = [
      toDoor(request, { resourceId: '/other' }),
      toDoor(request, { method: 'PUT' }),
      toDoor(request, { query: 'a=1' }),
      toDoor(request, { requiredFlags: ['VIP'] }),
      toDoor(request, { factors: ['POSSESSION_KNOWLEDGE'] }),
      toDoor(phone.prepareSigned({ ...at, body: 'x' })),
    ]
    for (const body of others) expectError(await callDoor(bank, 'code', body, key), 400, 'ERROR_REQUEST')
    // The last of them was a good one, and is.
    expect(readVerdict(await callDoor(bank, 'code', others.at(-1)))).toMatchObject({ isValid: true })
    const second = await createCaller(v4.world.bank, 'second-tier', 'verification', v4.world.applicationId)
    expect(await verdictOf(second, request, {}, key)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await verdictOf(second, phone.prepareSigned({ ...at, body: 'z' }), {}, key)).toMatchObject({ isValid: true })
  })

  test('is given again beyond the budget of wrong codes', async () => {
    const phone = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const key = newKey()
    const first = await verdictOf(bank, request, {}, key)
    for (let i = 0; i < 60; i += 1) await verdictOf(bank, request)
    expect(await verdictOf(bank, request)).toMatchObject({ reason: 'TOO_MANY_FAILURES' })
    expect(await verdictOf(bank, request, {}, key)).toEqual(first)
    expect(await verdictOf(bank, request, {}, newKey())).toMatchObject({ reason: 'TOO_MANY_FAILURES' })
  })

  test('is refused when somebody changed what is kept, and nothing moves', async () => {
    const { db } = v4.server.context
    const { phone, userId: owner } = await v4.world.activePhone('3.3')
    const other = await activePhone()
    const request = phone.prepareSigned({ ...at, body: 'x', ...wrongPin })
    const key = newKey()
    await sql`delete from door_verdict`.execute(db)
    expect(await verdictOf(bank, request, {}, key)).toMatchObject({ isValid: false })
    const { rows } = await sql<{ answer: string; id: string; ends: Date }>`
      select answer, activation_id as id, expires_at as ends from door_verdict`.execute(db)
    const [kept] = rows
    if (kept === undefined) throw new TypeError('nothing is kept')
    const changes = [
      sql`answer = replace(answer, 'false', 'true')`,
      sql`activation_id = ${other.state.activationId}`,
      sql`expires_at = expires_at + interval '1 hour'`,
    ]
    for (const change of changes) {
      await sql`update door_verdict set ${change}`.execute(db)
      expectError(await callDoor(bank, 'code', toDoor(request), key), 400, 'ERROR_REQUEST')
      await sql`update door_verdict set answer = ${kept.answer}, activation_id = ${kept.id}, expires_at = ${kept.ends}`.execute(
        db,
      )
    }
    const give = (userId: string) =>
      sql`update activation set user_id = ${userId} where activation_id = ${phone.state.activationId}`.execute(db)
    await give('somebody-else')
    expectError(await callDoor(bank, 'code', toDoor(request), key), 400, 'ERROR_REQUEST')
    await give(owner)
    expect(await verdictOf(bank, request, {}, key)).toMatchObject({ isValid: false, remainingAttempts: 4, userId: owner })
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 1 })
  })

  test('is forgotten after a minute, whether or not its row is gone, and holds no code, body or name', async () => {
    const { db } = v4.server.context
    const { phone, userId } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'a body of its own' })
    const key = newKey()
    await sql`delete from door_verdict`.execute(db)
    await verdictOf(bank, request, {}, key)
    const { rows } = await sql<Record<string, unknown>>`select * from door_verdict`.execute(db)
    expect(rows).toHaveLength(1)
    const text = JSON.stringify(rows)
    for (const secret of [key, userId, 'a body of its own', 'web-tier', RESOURCE]) expect(text).not.toContain(secret)
    await v4.world.advance(59 * SECOND)
    expect(await verdictOf(bank, request, {}, key)).toMatchObject({ isValid: true, userId })
    await v4.world.advance(2 * SECOND)
    expect(await verdictOf(bank, request, {}, key)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    expect(await verdictOf(bank, phone.prepareSigned({ ...at, body: 'y' }), {}, key)).toMatchObject({ isValid: true })
    await v4.world.advance(2 * MINUTE)
    await runHousekeeping(v4.server.context)
    expect((await sql`select from door_verdict`.execute(db)).rows).toHaveLength(0)
  })
})
