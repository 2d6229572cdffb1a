// /operations: creating, reading and cancelling what a user is asked to approve (cloud §5, §6.1 to §6.4, §1.2, §1.3).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCode, expectError, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import { type OperationWorld, PAYMENT, PAYMENT_DATA, startOperationWorld } from '../../helpers/operation-world.ts'
import { expectOk } from '../../helpers/world.ts'

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const OK = { status: 'OK' }
const MEMBERS = [
  'operationId',
  'userId',
  'status',
  'template',
  'operationType',
  'parameters',
  'failureCount',
  'maxFailureCount',
  'timestampCreated',
  'timestampExpires',
]

let world: OperationWorld
let userId: string
beforeAll(async () => {
  world = await startOperationWorld()
  ;({ userId } = await world.holder())
})
afterAll(() => world.close())

const violationsOf = (json: unknown): unknown => member(json, 'responseObject', 'violations')
const countOperations = async (): Promise<number> =>
  (await world.db.selectFrom('operation').select('operation_id').execute()).length

describe('POST /operations', () => {
  test('answers with the members of the contract, in its order, and nothing else', async () => {
    const template = await world.template({ maxFailureCount: 3, expirationSeconds: 120 })
    const before = Date.now()
    const reply = expectOk(await world.bank.createOperation({ userId, template, parameters: PAYMENT, externalId: 'transfer 7' }))
    expect(Object.keys(reply.json as object)).toEqual(MEMBERS)
    expect(reply.json).toEqual({
      operationId: expect.stringMatching(UUID_V4),
      userId,
      status: 'PENDING',
      template,
      operationType: 'authorize_payment',
      parameters: PAYMENT,
      failureCount: 0,
      maxFailureCount: 3,
      timestampCreated: expect.any(Number),
      timestampExpires: expect.any(Number),
    })
    const { timestampCreated, timestampExpires } = reply.json as Record<string, number>
    expect(timestampCreated).toBeGreaterThanOrEqual(before)
    expect(timestampExpires).toBe(Number(timestampCreated) + 120 * SECOND)
  })

  test('takes absent and null members as defaults and ignores unknown ones', async () => {
    const template = await world.template({ dataTemplate: 'A2' })
    const bodies = [
      { userId, template },
      { userId, template, language: null, externalId: null, parameters: null },
      {
        userId,
        template,
        parameters: {},
        applicationId: 'other',
        status: 'APPROVED',
        maxFailureCount: 99,
        operationId: UNKNOWN_ID,
      },
    ]
    for (const body of bodies) {
      const reply = expectOk(await world.bank.createOperation(body))
      expect(reply.json).toMatchObject({ status: 'PENDING', parameters: {}, maxFailureCount: 5 })
      expect(member(reply.json, 'operationId')).not.toBe(UNKNOWN_ID)
      const id = String(member(reply.json, 'operationId'))
      const row = await world.db
        .selectFrom('operation')
        .select(['language', 'external_id'])
        .where('operation_id', '=', id)
        .executeTakeFirst()
      expect(row).toEqual({ language: 'en', external_id: null })
    }
  })

  test('stores the language in lower case, and external ids need not differ', async () => {
    for (const language of ['cs', 'CS', 'Cs']) {
      const { id } = await world.operation(userId, { language, externalId: 'same' })
      const row = await world.db
        .selectFrom('operation')
        .select(['language', 'external_id'])
        .where('operation_id', '=', id)
        .executeTakeFirst()
      expect(row).toEqual({ language: 'cs', external_id: 'same' })
    }
  })

  test('composes the data from escaped parameters and keeps those that it does not use', async () => {
    const template = await world.template({ dataTemplate: 'A0*T${text}*N${note}' })
    const parameters = { text: 'a*b\\c\nd', note: '${text}', unused: 'x', ž: 'ý' }
    const reply = expectOk(await world.bank.createOperation({ userId, template, parameters }))
    expect(member(reply.json, 'parameters')).toEqual(parameters)
    expect((await world.stored(String(member(reply.json, 'operationId')))).data).toBe('A0*Ta\\*b\\\\c\\nd*N${text}')
  })

  test.each<[string, string]>([
    ['of a number', '0'],
    ['that objects have', 'constructor'],
    ['that objects have, too', 'toString'],
    ['beyond ASCII', '📱'],
    ['of 255 characters', 'x'.repeat(255)],
    ['that is blank', ' '],
  ])('echoes a parameter whose name is one %s', async (_, name) => {
    const template = await world.template({ dataTemplate: 'A2' })
    const parameters = { [name]: 'value', other: '' }
    const created = expectOk(await world.bank.createOperation({ userId, template, parameters }))
    expect(member(created.json, 'parameters')).toEqual(parameters)
    const read = expectOk(await world.bank.readOperation(String(member(created.json, 'operationId'))))
    expect(read.json).toEqual(created.json)
  })

  test('takes a value of 4096 characters and a thousand parameters', async () => {
    const template = await world.template({ dataTemplate: 'A0*T${text}' })
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`p${i}`, 'x']))
    const parameters = { ...many, text: 'x'.repeat(4096) }
    const reply = expectOk(await world.bank.createOperation({ userId, template, parameters }))
    expect(member(reply.json, 'parameters')).toEqual(parameters)
  })

  test('copies what it needs: a later template changes no operation', async () => {
    const templateName = await world.template({ templateName: 'to-be-changed', maxFailureCount: 2 })
    const { id } = await world.operation(userId, { template: templateName })
    const before = (await world.bank.readOperation(id)).json
    await world.template({ templateName, maxFailureCount: 9, operationType: 'other', expirationSeconds: 1 })
    expect((await world.bank.readOperation(id)).json).toEqual(before)
  })

  test.each(['NONE', 'CREATED', 'PENDING_COMMIT', 'BLOCKED', 'REMOVED'])(
    'refuses a user whose registration is %s, and creates nothing',
    async (state) => {
      const owner = await userInState(state)
      const count = await countOperations()
      const template = await world.template()
      const body = { userId: owner, template, parameters: PAYMENT }
      expectError(await world.bank.createOperation(body), 400, 'ERROR_REGISTRATION_NOT_FOUND')
      // Whether there is such a template, and what it needs, depends on the registration too.
      expectError(await world.bank.createOperation({ ...body, template: 'none' }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
      expectError(await world.bank.createOperation({ ...body, parameters: {} }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
      const keyed = await world.bank.createOperation(body, { 'Idempotency-Key': `refused-${state}` })
      expectError(keyed, 400, 'ERROR_REGISTRATION_NOT_FOUND')
      expect(await countOperations()).toBe(count)
    },
  )

  test('gives an idempotency key back when it creates nothing', async () => {
    const { userId: owner, code } = await world.register()
    const body = { userId: owner, template: await world.template(), parameters: PAYMENT }
    const headers = { 'Idempotency-Key': 'given-back' }
    expectError(await world.bank.createOperation(body, headers), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const phone = world.newPhone('3.3')
    await phone.activate(code)
    expectOk(await world.bank.commit(owner))
    expectOk(await world.bank.createOperation(body, headers))
  })

  test('names the template that does not exist', async () => {
    for (const template of ['no-such-template', 'Payment', '__proto__', 'x'.repeat(255)]) {
      const reply = await world.bank.createOperation({ userId, template })
      expectError(reply, 400, 'ERROR_REQUEST')
      const [violation] = violationsOf(reply.json) as unknown[]
      expect(violation).toEqual({ fieldName: 'template', invalidValue: template.slice(0, 128), hint: expect.any(String) })
    }
  })

  test('names the parameters that the template misses, and creates nothing', async () => {
    const count = await countOperations()
    const template = await world.template()
    const reply = await world.bank.createOperation({ userId, template, parameters: { iban: PAYMENT.iban, Amount: '1' } })
    expectError(reply, 400, 'ERROR_REQUEST')
    expect((violationsOf(reply.json) as { fieldName: string }[]).map(({ fieldName }) => fieldName)).toEqual([
      'parameters.amount',
      'parameters.currency',
    ])
    expect(await countOperations()).toBe(count)
  })

  test('refuses a payment that a phone could not read', async () => {
    const template = await world.template()
    for (const [name, value] of [
      ['amount', '-1'],
      ['amount', '1,5'],
      ['currency', 'eur'],
      ['iban', 'DE 89'],
      ['iban', ''],
    ] as const) {
      const reply = await world.bank.createOperation({ userId, template, parameters: { ...PAYMENT, [name]: value } })
      expectError(reply, 400, 'ERROR_REQUEST')
      expect(JSON.stringify(violationsOf(reply.json)), value).toContain(`"parameters.${name}"`)
    }
  })
})

describe('a body of POST /operations', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['no user', { userId: undefined }, 'userId'],
    ['a blank user', { userId: ' ' }, 'userId'],
    ['a user of a number', { userId: 7 }, 'userId'],
    ['a user with a control character', { userId: 'a\nb' }, 'userId'],
    ['a user of 256 characters', { userId: 'x'.repeat(256) }, 'userId'],
    ['no template', { template: undefined }, 'template'],
    ['a null template', { template: null }, 'template'],
    ['a blank template', { template: '' }, 'template'],
    ['a template of 256 characters', { template: 'x'.repeat(256) }, 'template'],
    ['a language of one letter', { language: 'e' }, 'language'],
    ['a language of three letters', { language: 'eng' }, 'language'],
    ['a language with a region', { language: 'en-GB' }, 'language'],
    ['an empty language', { language: '' }, 'language'],
    ['a language beyond ASCII', { language: 'čš' }, 'language'],
    ['a language of a number', { language: 42 }, 'language'],
    ['an external id of a number', { externalId: 1 }, 'externalId'],
    ['an external id of 256 characters', { externalId: 'x'.repeat(256) }, 'externalId'],
    ['parameters of a text', { parameters: 'a=b' }, 'parameters'],
    ['parameters of a list', { parameters: ['a'] }, 'parameters'],
    ['a parameter of a number', { parameters: { ...PAYMENT, x: 1 } }, 'parameters.x'],
    ['a null parameter', { parameters: { ...PAYMENT, x: null } }, 'parameters.x'],
    ['a parameter of an object', { parameters: { ...PAYMENT, x: {} } }, 'parameters.x'],
    ['a parameter of 4097 characters', { parameters: { ...PAYMENT, x: 'x'.repeat(4097) } }, 'parameters.x'],
    ['a parameter without name', { parameters: { ...PAYMENT, '': 'x' } }, 'parameters'],
    ['a parameter name of 256 characters', { parameters: { ...PAYMENT, ['x'.repeat(256)]: 'x' } }, 'parameters'],
    ['a line break in a parameter name', { parameters: { ...PAYMENT, 'a\nb': 'x' } }, 'parameters'],
    ['U+0000 in a parameter', { parameters: { ...PAYMENT, x: 'a\u0000' } }, 'parameters.x'],
    ['U+0000 in a parameter name', { parameters: { ...PAYMENT, 'a\u0000': 'x' } }, 'parameters'],
    ['a tabulator in a parameter', { parameters: { ...PAYMENT, x: 'a\tb' } }, 'parameters.x'],
    ['U+001F in a parameter', { parameters: { ...PAYMENT, x: '\u001f' } }, 'parameters.x'],
    ['half of a surrogate pair', { parameters: { ...PAYMENT, x: '\ud800' } }, 'parameters.x'],
    ['U+0000 in the external id', { externalId: 'a\u0000b' }, 'externalId'],
    ['half of a surrogate pair in an unknown member', { unknown: ['\udc00'] }, 'unknown.0'],
  ])('with %s is refused, and nothing is created', async (_, change, fieldName) => {
    const template = await world.template()
    const count = await countOperations()
    const reply = await world.bank.createOperation({ userId, template, parameters: PAYMENT, ...change })
    expectError(reply, 400, 'ERROR_REQUEST')
    const names = (violationsOf(reply.json) as { fieldName: string }[]).map((violation) => violation.fieldName)
    expect(names).toContain(fieldName)
    expect(await countOperations()).toBe(count)
  })

  test('that is not a JSON object, too deep, repeated or too large is refused', async () => {
    const template = await world.template()
    const good = JSON.stringify({ userId, template, parameters: PAYMENT })
    const count = await countOperations()
    const bodies = [
      '',
      '{',
      '[]',
      'null',
      '7',
      `\ufeff${good}`,
      `${good}x`,
      good.replace('{', '{"__proto__":{},'),
      good.replace('{', `{"deep":${'['.repeat(5000)}${']'.repeat(5000)},`),
      good.replace('{', `{"padding":"${'x'.repeat(256 * 1024)}",`),
    ]
    for (const body of bodies) {
      expectError(await world.bank.callRaw('POST', '/operations', body, 'application/json'), 400, 'ERROR_REQUEST')
    }
    expectError(await world.bank.callRaw('POST', '/operations', good, 'text/plain'), 400, 'ERROR_REQUEST')
    expect(await countOperations()).toBe(count)
  })

  test('says which names parameters may have, and which members no body has', async () => {
    const long = await world.bank.call('POST', '/operations', {
      userId,
      template: 'payment',
      parameters: { ['x'.repeat(256)]: '1' },
    })
    expect(member(long.json, 'responseObject', 'violations')).toEqual([
      { fieldName: 'parameters', hint: 'must have names of 1 to 255 characters without control characters' },
    ])
    const prototype = await world.bank.callRaw('POST', '/operations', '{"__proto__":{}}', 'application/json')
    expect(prototype.text).toContain('without a member __proto__')
  })

  test('with a member twice counts the last one, as JSON parsers do', async () => {
    const template = await world.template({ dataTemplate: 'A2' })
    const body = `{"userId":"nobody","userId":${JSON.stringify(userId)},"template":"none","template":"${template}"}`
    const reply = expectOk(await world.bank.callRaw('POST', '/operations', body, 'application/json'))
    expect(reply.json).toMatchObject({ userId, template })
  })

  test('of 10 MB does not bring the server down', async () => {
    const huge = Buffer.alloc(10 * 1024 * 1024, 0x20)
    // The server may close the connection before it has read everything.
    const reply = await world.bank.callRaw('POST', '/operations', huge, 'application/json').catch(() => undefined)
    if (reply) expectError(reply, 400, 'ERROR_REQUEST')
    await world.operation(userId)
  })
})

describe('Idempotency-Key', () => {
  let template: string
  beforeAll(async () => {
    template = await world.template()
  })
  const create = (key: string, change: Record<string, unknown> = {}, bank = world.bank) =>
    bank.createOperation({ userId, template, parameters: PAYMENT, ...change }, { 'Idempotency-Key': key })

  test('the same request again gives the first answer and creates nothing', async () => {
    const first = expectOk(await create('again'))
    const count = await countOperations()
    expect(expectOk(await create('again')).text).toBe(first.text)
    // Another order of members and an explicit default are the same request.
    const reordered = { parameters: Object.fromEntries(Object.entries(PAYMENT).reverse()), language: 'EN', externalId: null }
    const again = expectOk(await create('again', reordered))
    expect(again.json).toEqual(first.json)
    expect(await countOperations()).toBe(count)
  })

  test('gives the first answer whatever has become of the operation', async () => {
    const first = expectOk(await create('canceled since'))
    expectOk(await world.bank.cancelOperation(String(member(first.json, 'operationId'))))
    expect(expectOk(await create('canceled since')).json).toEqual(first.json)
  })

  test('gives the first answer whatever has become of the template', async () => {
    const ofTemplate = { template: await world.template() }
    const first = expectOk(await create('template gone', ofTemplate))
    expectOk(await world.bank.call('DELETE', `/admin/templates/${ofTemplate.template}`))
    expect(expectOk(await create('template gone', ofTemplate)).json).toEqual(first.json)
    // Only the same request, and only in its time.
    const other = { ...ofTemplate, externalId: 'x' }
    expectError(await create('template gone', other), 400, 'ERROR_REQUEST')
    const end = sql`update idempotency_key set expires_at = ${new Date(0)} where idempotency_key = 'template gone'`
    await end.execute(world.db)
    const late = await create('template gone', ofTemplate)
    expectError(late, 400, 'ERROR_REQUEST')
    expect(violationsOf(late.json)).toEqual([expect.objectContaining({ fieldName: 'template' })])
  })

  test.each<[string, Record<string, unknown>]>([
    ['user', { userId: 'somebody else' }],
    ['parameter', { parameters: { ...PAYMENT, amount: '11' } }],
    ['further parameter', { parameters: { ...PAYMENT, x: '' } }],
    ['language', { language: 'cs' }],
    ['external id', { externalId: 'x' }],
  ])('with another %s is refused and creates nothing', async (name, change) => {
    const { userId: other } = await world.holder()
    const first = expectOk(await create(`other ${name}`))
    const count = await countOperations()
    const reply = await create(`other ${name}`, 'userId' in change ? { userId: other } : change)
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(violationsOf(reply.json)).toEqual([expect.objectContaining({ fieldName: 'Idempotency-Key' })])
    expect(await countOperations()).toBe(count)
    expect(expectOk(await create(`other ${name}`)).json).toEqual(first.json)
  })

  test('ten at once make one operation', async () => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => create('at once')))
    const ids = replies.map((reply) => member(expectOk(reply).json, 'operationId'))
    expect(new Set(ids).size).toBe(1)
  })

  test('of two different requests at once one is refused', async () => {
    for (let round = 0; round < 5; round++) {
      const replies = await Promise.all([create(`mixed ${round}`), create(`mixed ${round}`, { externalId: 'other' })])
      expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400])
    }
  })

  test('holds for a day, then the key is free', async () => {
    const first = expectOk(await create('a day'))
    await world.advance(24 * 60 * MINUTE - MINUTE)
    expect(expectOk(await create('a day')).json).toEqual(first.json)
    await world.advance(2 * MINUTE)
    const second = expectOk(await create('a day', { externalId: 'another' }))
    expect(member(second.json, 'operationId')).not.toBe(member(first.json, 'operationId'))
  })

  test('belongs to the credential', async () => {
    const first = expectOk(await create('of one caller'))
    const user = { username: 'second-caller', role: 'integration', application: world.applicationId }
    const password = member(expectOk(await world.bank.call('POST', '/admin/users', user)).json, 'password')
    const second = expectOk(await create('of one caller', {}, world.bank.as(`second-caller:${String(password)}`)))
    expect(member(second.json, 'operationId')).not.toBe(member(first.json, 'operationId'))
  })

  test('may have 255 characters; an empty or longer one is refused', async () => {
    expectOk(await create('k'.repeat(255)))
    const count = await countOperations()
    for (const key of ['', 'k'.repeat(256), 'a\tb']) expectError(await create(key), 400, 'ERROR_REQUEST')
    expect(await countOperations()).toBe(count)
  })

  test('different keys and no key make different operations', async () => {
    const replies = [await create('one'), await create('two'), await create('One')]
    replies.push(await world.bank.createOperation({ userId, template, parameters: PAYMENT }))
    expect(new Set(replies.map((reply) => member(expectOk(reply).json, 'operationId'))).size).toBe(4)
  })
})

describe('GET /operations', () => {
  test('gives what the creation gave', async () => {
    const template = await world.template()
    const created = expectOk(await world.bank.createOperation({ userId, template, parameters: PAYMENT }))
    const read = expectOk(await world.bank.readOperation(String(member(created.json, 'operationId'))))
    expect(read.text).toBe(created.text)
  })

  test('takes the id in capital letters', async () => {
    const { id } = await world.operation(userId)
    expect(member(expectOk(await world.bank.readOperation(id.toUpperCase())).json, 'operationId')).toBe(id)
  })

  test.each([
    '',
    '?operationId',
    '?operationId=',
    '?operationId=x',
    '?operationid=ID',
    '?operationId=ID&operationId=ID',
    '?operationId=ID%00',
    '?operationId=%20ID',
    '?operationId={ID}',
    '?operationId[]=ID',
    '?operationId=%ff',
  ])('refuses the query %j', async (query) => {
    const { id } = await world.operation(userId)
    for (const method of ['GET', 'DELETE']) {
      const reply = await world.bank.call(method, `/operations${query.replaceAll('ID', id)}`)
      expectError(reply, 400, 'ERROR_REQUEST')
    }
    expect((await world.stored(id)).status).toBe('PENDING')
  })

  test('does not know an operation that is unknown or of another application', async () => {
    const side = await world.openSide()
    const foreign = await world.holder('3.3', {}, side)
    const { id } = await world.operation(foreign.userId, {}, side.bank)
    expectOk(await side.bank.readOperation(id))
    const replies = [await world.bank.readOperation(id), await world.bank.readOperation(UNKNOWN_ID)]
    for (const reply of replies) expectError(reply, 400, 'ERROR_OPERATION_NOT_FOUND')
    expect(replies[0]?.text).toBe(replies[1]?.text)
  })

  test('needs no registration any more', async () => {
    const { userId: owner } = await world.holder()
    const { id } = await world.operation(owner)
    expectOk(await world.bank.remove(owner))
    expect(member(expectOk(await world.bank.readOperation(id)).json, 'status')).toBe('PENDING')
  })

  test('shows EXPIRED from the last moment on, and the background stores it', async () => {
    const { id, created, expires } = await world.operation(userId)
    await world.advance(expires - created - 5 * SECOND)
    expect(member((await world.bank.readOperation(id)).json, 'status')).toBe('PENDING')
    await world.advance(5 * SECOND)
    const reply = expectOk(await world.bank.readOperation(id))
    expect(reply.json).toMatchObject({ status: 'EXPIRED', failureCount: 0, timestampExpires: expires })
    await world.housekeeping()
    expect(await world.stored(id)).toMatchObject({ status: 'EXPIRED', finalizedAt: expect.any(Date) })
    expect((await world.bank.readOperation(id)).text).toBe(reply.text)
  })

  test('expires every operation that is due, however many', async () => {
    const template = await world.template({ expirationSeconds: 1 })
    const made = await Promise.all(Array.from({ length: 20 }, () => world.operation(userId, { template })))
    const kept = await world.operation(userId)
    await world.advance(SECOND)
    await world.housekeeping()
    for (const { id } of made) expect((await world.stored(id)).status).toBe('EXPIRED')
    expect((await world.stored(kept.id)).status).toBe('PENDING')
  })
})

describe('DELETE /operations', () => {
  test('cancels a pending operation once', async () => {
    const { id } = await world.operation(userId)
    expect(expectOk(await world.bank.cancelOperation(id.toUpperCase())).json).toEqual(OK)
    expect(await world.stored(id)).toMatchObject({ status: 'CANCELED', statusReason: null, finalizedAt: expect.any(Date) })
    const before = await world.stored(id)
    expectError(await world.bank.cancelOperation(id, 'AGAIN'), 400, 'ERROR_OPERATION_STATE_CHANGE')
    expect(await world.stored(id)).toEqual(before)
  })

  test('keeps a reason of up to 32 characters', async () => {
    const { id } = await world.operation(userId)
    expectOk(await world.bank.cancelOperation(id, 'x'.repeat(32)))
    expect(await world.stored(id)).toMatchObject({ status: 'CANCELED', statusReason: 'x'.repeat(32) })
    expect(Object.keys((await world.bank.readOperation(id)).json as object)).toEqual(MEMBERS)
  })

  test.each(['', 'x'.repeat(33), 'a\nb', 'a\u0000b'])('refuses the reason %j and cancels nothing', async (reason) => {
    const { id } = await world.operation(userId)
    expectError(await world.bank.cancelOperation(id, reason), 400, 'ERROR_REQUEST')
    expect((await world.stored(id)).status).toBe('PENDING')
  })

  test.each(['APPROVED', 'REJECTED', 'FAILED', 'EXPIRED', 'CANCELED'] as const)('refuses one that is %s', async (status) => {
    const { id } = await world.operation(userId)
    await world.db.updateTable('operation').set({ status }).where('operation_id', '=', id).execute()
    expect(member((await world.bank.readOperation(id)).json, 'status')).toBe(status)
    expectError(await world.bank.cancelOperation(id), 400, 'ERROR_OPERATION_STATE_CHANGE')
    expect((await world.stored(id)).status).toBe(status)
  })

  test('refuses one whose time is over though nobody has stored that', async () => {
    const template = await world.template({ expirationSeconds: 1 })
    const { id } = await world.operation(userId, { template })
    await world.advance(SECOND)
    expectError(await world.bank.cancelOperation(id), 400, 'ERROR_OPERATION_STATE_CHANGE')
    expect(member((await world.bank.readOperation(id)).json, 'status')).toBe('EXPIRED')
  })

  test('does not know an operation that is unknown or of another application', async () => {
    const side = await world.openSide()
    const { id } = await world.operation(userId)
    expectError(await side.bank.cancelOperation(id), 400, 'ERROR_OPERATION_NOT_FOUND')
    expectError(await world.bank.cancelOperation(UNKNOWN_ID), 400, 'ERROR_OPERATION_NOT_FOUND')
    expect((await world.stored(id)).status).toBe('PENDING')
  })

  test('of two at once one is refused', async () => {
    const { id } = await world.operation(userId)
    const replies = await Promise.all(Array.from({ length: 8 }, () => world.bank.cancelOperation(id)))
    const refused = replies.filter(({ status }) => status !== 200)
    expect(refused).toHaveLength(7)
    for (const reply of refused) expect(errorCode(reply)).toBe('ERROR_OPERATION_STATE_CHANGE')
  })
})

describe('the callers of operations', () => {
  const CALLS = [
    ['POST', '/operations'],
    ['GET', '/operations'],
    ['DELETE', '/operations'],
    ['GET', '/operations/offline/qr'],
    ['POST', '/operations/offline/otp'],
  ] as const

  test('without credentials learn nothing', async () => {
    for (const [method, path] of CALLS) expectError(await world.bank.as(undefined).call(method, path), 401, 'HTTP_401')
  })

  test('of the role internal are forbidden', async () => {
    const user = { username: 'operations-internal', role: 'internal' }
    const password = member(expectOk(await world.bank.call('POST', '/admin/users', user)).json, 'password')
    const bank = world.bank.as(`operations-internal:${String(password)}`)
    for (const [method, path] of CALLS)
      expectError(await bank.call(method, path, method === 'GET' ? undefined : {}), 403, 'HTTP_403')
  })

  test('of the role read-only read, without the password of a proximity check, and do nothing else', async () => {
    const user = { username: 'operations-reader', role: 'read-only', application: world.applicationId }
    const password = member(expectOk(await world.bank.call('POST', '/admin/users', user)).json, 'password')
    const bank = world.bank.as(`operations-reader:${String(password)}`)
    const { id } = await world.operation(userId, { template: await world.template({ isProximityCheckEnabled: true }) })
    expect(Object.keys(expectOk(await world.bank.readOperation(id)).json as object)).toEqual([...MEMBERS, 'proximityOtp'])
    expect(Object.keys(expectOk(await bank.readOperation(id)).json as object)).toEqual(MEMBERS)
    for (const [method, path] of CALLS) {
      if (method !== 'GET' || path !== '/operations')
        expectError(await bank.call(method, path, method === 'GET' ? undefined : {}), 403, 'HTTP_403')
    }
  })

  test('use the listed methods only', async () => {
    for (const [method, path] of [
      ['PUT', '/operations'],
      ['PATCH', '/operations'],
      ['POST', '/operations/offline/qr'],
      ['GET', '/operations/offline/otp'],
      ['GET', '/operations/offline'],
      ['GET', `/operations/${UNKNOWN_ID}`],
    ] as const) {
      expectError(await world.bank.call(method, path), 404, 'ERROR_NOT_FOUND')
    }
  })

  test('see what the data is made of in the list of the phone', async () => {
    const holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    const list = await holder.phone.exchange(await holder.phone.prepareTokenCall('list', holder.token))
    expect(member(list, 'responseObject')).toEqual([
      expect.objectContaining({ id, data: PAYMENT_DATA, name: 'authorize_payment' }),
    ])
  })
})

/** A user whose registration is in a state. */
async function userInState(state: string): Promise<string> {
  if (state === 'NONE') return world.newUser()
  if (state === 'CREATED') return (await world.register()).userId
  if (state === 'PENDING_COMMIT') return (await world.pendingPhone('3.3')).userId
  const { userId: owner } = await world.activePhone('3.3')
  expectOk(await (state === 'BLOCKED' ? world.bank.change(owner, 'BLOCK') : world.bank.remove(owner)))
  return owner
}
