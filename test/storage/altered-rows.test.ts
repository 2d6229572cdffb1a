// Rows that somebody altered by hand are answered as docs/SECURITY-MODEL.md says, and so are those that are read together with them.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpReply, member } from '../../phone/http.ts'
import { getInit } from '../../phone/utility.ts'
import { countUnbound, hasBoundRecords } from '../../src/storage/secrets/record-binding.ts'
import { createTokenReads } from '../../src/storage/token/reads.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { sealAll } from '../helpers/audit.ts'
import { createBank } from '../helpers/bank.ts'
import { startSession } from '../helpers/console-session.ts'
import { expectError, HOUR, MINUTE } from '../helpers/expectations.ts'
import { type Holder, type OperationWorld, PAYMENT, startOperationWorld } from '../helpers/operation-world.ts'
import { askReference } from '../helpers/reference.ts'
import { expectOk, openWorldOn, registrationOf } from '../helpers/world.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'

let world: OperationWorld
let holder: Holder
beforeAll(async () => {
  world = await startOperationWorld({ worksInBackground: false })
  for (const kind of ['OPERATION', 'ACTIVATION']) {
    const webhook = {
      application: world.applicationId,
      kind,
      name: kind,
      url: 'https://bank.example/',
      attributes: kind === 'OPERATION' ? ['userId', 'message'] : ['userId'],
    }
    expectOk(await world.bank.call('POST', '/admin/webhooks', webhook))
  }
})
afterAll(() => world.close())

/** Expects the refusal of a request in which this member is wrong. */
function expectRefusal(reply: HttpReply, code: string, fieldName: string): void {
  expectError(reply, 400, code)
  expect(member(reply.json, 'responseObject', 'violations', '0', 'fieldName')).toBe(fieldName)
}

/** What the phone and the bank read of a user and an operation. */
async function readAll({ userId, phone, token }: Holder, operationId: string): Promise<void> {
  const { bank, applicationId } = world
  const { activationId } = phone.state
  expectOk(await phone.send(await phone.prepareTokenCall('list', token)))
  // One that is over is refused.
  expect([200, 400]).toContain((await phone.send(await phone.prepareTokenCall('detail', token, { id: operationId }))).status)
  await phone.readStatus()
  for (const path of [
    `/operations?operationId=${operationId}`,
    `/v2/operations/${operationId}`,
    `/registration?userId=${userId}`,
    `/v2/registrations/${activationId}`,
    `/v2/registrations/${activationId}/history`,
    `/v2/registrations/${activationId}/tokens`,
    `/v2/registrations?userId=${userId}`,
    `/admin/applications/${applicationId}/operations?limit=1`,
    `/admin/applications/${applicationId}/registrations?limit=1`,
    `/admin/applications/${applicationId}/registrations/${activationId}`,
  ])
    expectOk(await bank.call('GET', path))
}

describe.each(['infinity', '-infinity'])('a time that was set to %s', (time) => {
  test.each([
    ['operation', 'created_at'],
    ['operation', 'expires_at'],
    ['activation', 'created_at'],
    ['activation', 'expires_at'],
    ['activation', 'last_used_at'],
    ['activation_history', 'occurred_at'],
    ['token', 'created_at'],
  ])('is no error for who reads: %s.%s', async (table, column) => {
    holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    const isOperation = table === 'operation'
    const key = isOperation ? 'operation_id' : 'activation_id'
    await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${time}
      where ${sql.ref(key)} = ${isOperation ? id : holder.phone.state.activationId}`.execute(world.db)
    await readAll(holder, id)
    await sql`delete from operation where user_id = ${holder.userId}`.execute(world.db)
    await sql`update activation set created_at = now() where user_id = ${holder.userId}`.execute(world.db)
  })
})

test('an operation whose end was set to infinity waits, and is approved', async () => {
  const { userId, phone } = await world.holder()
  const operation = await world.operation(userId)
  await sql`update operation set expires_at = 'infinity' where operation_id = ${operation.id}`.execute(world.db)
  await world.housekeeping()
  expectOk(await phone.send(phone.prepareAuthorize(operation)))
  expect((await world.stored(operation.id)).status).toBe('APPROVED')
})

test('an operation whose creation was set to infinity keeps no other from its end', async () => {
  const { userId } = await world.holder()
  const [altered, other] = [await world.operation(userId), await world.operation(userId)]
  await sql`update operation set created_at = 'infinity' where operation_id = ${altered.id}`.execute(world.db)
  await world.advance(HOUR)
  await world.housekeeping()
  for (const { id } of [altered, other]) expect((await world.stored(id)).status).toBe('EXPIRED')
})

test('the end of a pin that was set to infinity is a figure as the others are', async () => {
  await sql`insert into pinned_domain (application_id, domain, created_at, next_check_at, live_expires_at)
    values (${world.applicationId}, 'bank.example', now(), now(), '-infinity')`.execute(world.db)
  await sql`insert into pinned_certificate (application_id, domain, fingerprint, expires_at, source, created_at)
    values (${world.applicationId}, 'bank.example', '\\x00', 'infinity', 'fingerprint', now())`.execute(world.db)
  const ends = expectOk(await world.bank.call('GET', '/metrics')).text.match(/(?<=^pawl_certificate_expiry.*\} )\S+$/gm)
  expect(ends).toEqual(['+Inf', '-Inf'])
})

test('rows are sealed where the last sealing was set to infinity', async () => {
  await sql`update audit_sealer set sealed_at = 'infinity'`.execute(world.db)
  const { phone } = await world.holder()
  expectOk(await phone.send(phone.prepareValidation()))
  for (const context of world.contexts) await sealAll(context)
  const { rows } = await sql<{ waiting: number; last: Date }>`
    select (select count(*)::int from audit_pending) as waiting, max(sealed_at) as last from audit_sealer`.execute(world.db)
  expect(rows[0]?.waiting).toBe(0)
  expect(Math.abs(Number(rows[0]?.last) - Number(world.contexts[0]?.platform.now()))).toBeLessThan(HOUR)
})

test('a code whose end was set to infinity binds a phone', async () => {
  const { userId, code } = await world.register()
  await sql`update activation set expires_at = 'infinity' where user_id = ${userId}`.execute(world.db)
  await world.housekeeping()
  await world.newPhone('3.3').activate(code)
  expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  expectOk(await world.bank.commit(userId))
})

test.each(['created_at', 'last_seen_at', 'expires_at'])(
  'a session of the console whose %s was set to infinity is refused',
  async (column) => {
    const server: TestServer = await startTestServer({ worksInBackground: false })
    const { user, password } = server.admin
    const session = await startSession(server.url, user, password)
    const other = await startSession(server.url, user, password)
    await sql`update console_session set ${sql.ref(column)} = 'infinity'
    where session_id = (select session_id from console_session order by created_at limit 1)`.execute(server.context.db)
    expect((await session.get('/credentials')).status).toBe(303)
    expectOk(await other.get('/credentials'))
    await server.close()
  },
)

describe('parameters of an operation that are no texts by name', () => {
  const WRONG = ['no JSON', 'null', '[]', '{"amount":1}']

  test.each(WRONG)('are none: %s', async (parameters) => {
    const owner = await world.holder()
    const { id } = await world.operation(owner.userId)
    await sql`update operation set parameters = ${parameters} where operation_id = ${id}`.execute(world.db)
    await readAll(owner, id)
    expect(expectOk(await world.bank.readOperation(id)).json).toMatchObject({ parameters: {} })
  })

  test.each(WRONG)('are none in the texts of a webhook: %s', async (parameters) => {
    const owner = await world.holder()
    const texts = { en: { title: 'Payment', message: 'Pay ${amount}', attributes: [] } }
    const { id } = await world.operation(owner.userId, { template: await world.template({ texts }) })
    await sql`update operation set parameters = ${parameters} where operation_id = ${id}`.execute(world.db)
    expectOk(await world.bank.cancelOperation(id))
    const { rows } = await sql<{ path: string }>`select webhook_id || '/deliveries/' || delivery_id as path from webhook_delivery
      where object_id = ${id} order by sequence desc limit 1`.execute(world.db)
    const shown = expectOk(await world.bank.call('GET', `/admin/webhooks/${rows[0]?.path}`)).json
    expect(JSON.parse(String(member(shown, 'body')))).toMatchObject({ event: 'cancelled', message: 'Pay ' })
  })

  test('fail none of the phones that read at the same time', async () => {
    const [owner, other] = [await world.holder(), await world.holder()]
    const altered = await world.operation(owner.userId)
    const whole = await world.operation(other.userId)
    await sql`update operation set parameters = 'no JSON' where operation_id = ${altered.id}`.execute(world.db)
    const reads = createTokenReads(world.db)
    const at = new Date(whole.created)
    const found = await Promise.all([owner, other].map(({ token }) => reads.pendingOperations({ tokenId: token.id, at })))
    expect(found.map((read) => read.found.map(({ operationId, parameters }) => [operationId, parameters]))).toEqual([
      [[altered.id, {}]],
      [[whole.id, PAYMENT]],
    ])
  })
})

/** Texts in English with other members than they may have. */
const inEnglish = (more: object): string => JSON.stringify({ en: { title: 'T', message: 'M', attributes: [], ...more } })

test.each([
  ['no JSON', 'no JSON'],
  ['null', 'null'],
  ['no language', '{}'],
  ['a number', '{"en":1}'],
  ['a language in capital letters', inEnglish({}).replace('en', 'EN')],
  ['a row that is none', inEnglish({ attributes: [null] })],
  ['a row without params', inEnglish({ attributes: [{ id: 'a', type: 'NOTE', text: 'Note' }] })],
  ['a summary that is no text', inEnglish({ summary: {} })],
  ['results that are no texts', inEnglish({ resultTexts: { success: 1 } })],
  ['screens that are a list', inEnglish({ ui: [] })],
  ['screens that nobody can walk', inEnglish({ ui: '' }).replace('""', `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`)],
])('an operation whose template has no texts is shown to no phone: %s', async (_, texts) => {
  const { bank, db } = world
  const [owner, template, unused] = [await world.holder(), await world.template(), await world.template()]
  const altered = await world.operation(owner.userId, { template })
  const whole = await world.operation(owner.userId)
  await sql`update template_revision set texts = ${texts} where template_name in (${template}, ${unused})`.execute(db)
  await readAll(owner, altered.id)
  const list = expectOk(await owner.phone.send(await owner.phone.prepareTokenCall('list', owner.token)))
  expect(member(list.json, 'responseObject')).toMatchObject([{ id: whole.id }])
  expectError(await bank.offlineQr(altered.id), 400, 'ERROR_OPERATION_NOT_FOUND')

  const create = () => bank.createOperation({ userId: owner.userId, template: unused, parameters: PAYMENT })
  expectRefusal(await create(), 'ERROR_REQUEST', 'template')
  expectOk(await bank.call('GET', '/admin/templates'))
  const shown = expectOk(await bank.call('GET', `/admin/templates/${unused}`)).json as Record<string, unknown>
  expect(shown['texts']).toEqual({})
  const sound = { ...shown, texts: { en: { title: 'Payment', message: 'Please confirm' } } }
  expectOk(await bank.call('PUT', `/admin/templates/${unused}`, sound))
  expectOk(await create())
})

test.each([
  ['template_name', 'another'],
  ['operation_type', ''],
  ['data_template', ''],
  ['data_template', 'A1*${'],
  ['data_template', 'no data\n*\\'],
  ['signature_types', ''],
  ['signature_types', 'possession,nothing'],
  ['max_failure_count', '2147483647'],
  ['expiration_seconds', '2147483647'],
  ['risk_flags', 'no flags, and long: '.repeat(100)],
  ['activation_flag', ' ,'],
  ['created_at', 'infinity'],
])('a template whose %s is %j is no error for who reads, creates or replaces', async (column, value) => {
  const { bank, db } = world
  const [owner, template] = [await world.holder(), await world.template()]
  const content = expectOk(await bank.call('GET', `/admin/templates/${template}`)).json
  await sql`update template_revision set ${sql.ref(column)} = ${value} where template_name = ${template}`.execute(db)
  expectOk(await bank.call('GET', '/admin/templates'))
  expectOk(await bank.call('GET', `/admin/templates/${template}`))
  const reply = await bank.createOperation({ userId: owner.userId, template, parameters: PAYMENT })
  if (reply.status === 200) {
    const id = String(member(reply.json, 'operationId'))
    await readAll(owner, id)
    expect([200, 400]).toContain((await bank.offlineQr(id)).status)
  } else expectError(reply, 400, 'ERROR_REQUEST')
  expectOk(await bank.call('PUT', `/admin/templates/${template}`, content))
  expect(expectOk(await bank.call('GET', `/admin/templates/${template}`)).json).toEqual(content)
})

test('an application whose keys were altered is shown without its secret, and signs nothing', async () => {
  const server: TestServer = await startTestServer({ worksInBackground: false })
  const bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  const { db } = server.context
  expectOk(await bank.createApplication('one'))
  const detail = async () => member(expectOk(await bank.call('GET', '/admin/applications/one')).json, 'responseObject')
  const before = await detail()
  await sql`update application_version set application_secret = substr(application_secret, 1, 40) || '\\x00'::bytea`.execute(db)
  await sql`update master_key_pair set private_key = substr(private_key, 1, 40) || '\\x00'::bytea`.execute(db)
  const { appSecret, mobileSdkConfig, ...others } = before as Record<string, unknown>
  expect(String(appSecret).length * String(mobileSdkConfig).length).toBeGreaterThan(100)
  expect(await detail()).toEqual(others)
  expectRefusal(await bank.call('GET', '/admin/application?id=one'), 'ERROR_ADMIN', 'version')
  for (const path of ['/registration', '/admin/applications/one/registrations']) {
    expectRefusal(await bank.call('POST', path, { userId: 'ann' }), 'ERROR_REQUEST', 'application')
  }
  const session = await startSession(server.url, server.admin.user, server.admin.password)
  expectOk(await session.get('/applications/one'))
  await server.close()
})

test('sealed records are counted where somebody made one empty', async () => {
  const owner = await world.holder()
  const before = await countUnbound(world.db)
  await sql`update activation set master_secret = '\\x' where user_id = ${owner.userId}`.execute(world.db)
  expect(await countUnbound(world.db)).toBe(before + 1)
  expect(await hasBoundRecords(world.db)).toBe(true)
})

test('lists show the other rows where a record names a master key that is not given, and the log names the key', async () => {
  const own = await startOperationWorld({ env: { PAWL_REFERENCE_API: 'true' }, worksInBackground: false })
  const { bank, db, applicationId } = own
  const at = (path: string) => `/admin/applications/${applicationId}/${path}`
  const target = {
    application: applicationId,
    kind: 'OPERATION',
    url: 'https://bank.example/',
    basic: { username: 'pawl', password: 'x' },
  }
  const client = { issuer: 'https://login.bank.example', clientId: 'app', clientSecret: 'secret', redirectUri: 'app:/' }
  for (const name of ['a', 'b']) {
    expectOk(await bank.call('POST', '/admin/webhooks', { ...target, name }))
    expectOk(await bank.call('PUT', at(`oidc-providers/${name}`), client))
  }
  const { userId } = await own.holder()
  const template = await own.template({ isProximityCheckEnabled: true })
  const [altered, whole] = [await own.operation(userId, { template }), await own.operation(userId, { template })]
  const pins = expectOk(await bank.call('GET', `/admin/apps/${applicationId}`)).json

  const alter = (table: string, column: string, key: string, row: string, byte = 1) =>
    sql`update ${sql.table(table)} set ${sql.ref(column)} = set_byte(${sql.ref(column)}, ${byte}, 255 - get_byte(${sql.ref(column)}, ${byte}))
      where ${sql.ref(key)} = ${row}`.execute(db)
  await alter('webhook', 'basic_credentials', 'name', 'a')
  await alter('oidc_provider', 'credentials', 'provider_id', 'a')
  await alter('operation', 'proximity_seed', 'operation_id', altered.id)
  await alter('pinning_key_pair', 'private_key', 'application_id', applicationId)

  const { webhooks } = expectOk(await bank.call('GET', '/admin/webhooks')).json as { webhooks: Record<string, unknown>[] }
  expect(webhooks.map(({ name, basicUsername }) => [name, basicUsername])).toEqual([
    ['a', undefined],
    ['b', 'pawl'],
  ])
  expect(member(expectOk(await bank.call('GET', at('oidc-providers'))).json, 'providers')).toMatchObject([{ providerId: 'b' }])
  const listed = await askReference(bank, 'v3', 'operation/list', { userId, applications: [applicationId] })
  const shown = listed as unknown as { id: string; proximityOtp?: string }[]
  expect(shown.filter(({ proximityOtp }) => proximityOtp !== undefined).map(({ id }) => id)).toEqual([whole.id])
  expect(shown).toHaveLength(2)
  expect(expectOk(await bank.call('GET', `/admin/apps/${applicationId}`)).json).toEqual(pins)
  expect(own.log().match(/names a master key that is not given/g)).toHaveLength(1)

  // What needs the record fails as long as the key may only be missing. It is refused where the record was altered for certain.
  const init = () => getInit(own.url, applicationId)
  expect((await init()).status).toBe(500)
  await alter('pinning_key_pair', 'private_key', 'application_id', applicationId)
  await own.advance(MINUTE)
  expect((await init()).status).toBe(200)
  await alter('pinning_key_pair', 'private_key', 'application_id', applicationId, 20)
  await own.advance(MINUTE)
  expect((await init()).status).toBe(404)
  await own.close()
})

test.each(['3.3', '4.0'] as const)('a custom object that is none is left out of the status of a phone of %s', async (version) => {
  const server = await startTestServer({ worksInBackground: false })
  const own = await openWorldOn(server)
  const v4 = await openPhonesV4(own)
  expectOk(await own.bank.call('PATCH', `/admin/applications/${own.applicationId}`, { customObject: { colour: 'red' } }))
  const { phone } = version === '4.0' ? await v4.activePhone('EC_P384') : await own.activePhone(version)
  await phone.readStatus()
  await sql`update application set custom_object = '{'`.execute(server.context.db)
  await phone.readStatus()
  await server.close()
})

test('what administrators set, and what they did, is read where one of the rows is no JSON', async () => {
  const server: TestServer = await startTestServer({ worksInBackground: false })
  const { db } = server.context
  const bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  for (const id of ['one', 'two']) expectOk(await bank.createApplication(id))
  const custom = { customObject: { colour: 'red' }, transfers: [{ targets: ['two'], type: 'MOVE' }] }
  for (const id of ['one', 'two']) expectOk(await bank.call('PATCH', `/admin/applications/${id}`, id === 'one' ? custom : {}))
  for (const key of ['first', 'second']) expectOk(await bank.call('PUT', `/admin/applications/one/config/${key}`, { value: key }))
  await sql`update application set custom_object = '{', transfers = '{' where application_id = 'one'`.execute(db)
  await sql`update config_item set value = '{' where key = 'first'`.execute(db)
  await sql`update admin_event set after = '{' where sequence = (select max(sequence) from admin_event)`.execute(db)
  const application = member(expectOk(await bank.call('GET', '/admin/applications/one')).json, 'responseObject')
  expect(application).not.toHaveProperty('customObject')
  expect(member(application, 'transfers')).toEqual([])
  expectOk(await bank.call('GET', '/admin/applications'))
  expect(member(expectOk(await bank.call('GET', '/admin/applications/one/config')).json, 'config')).toMatchObject([
    { key: 'second', value: 'second' },
  ])
  const items = member(expectOk(await bank.call('GET', '/admin/audit')).json, 'items') as unknown[]
  expect(items[0]).toMatchObject({ after: '{' })
  expect(items.length).toBeGreaterThan(4)
  await server.close()
})
