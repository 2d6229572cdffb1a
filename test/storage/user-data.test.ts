// The stored data of a user: an export has all of it; after an erasure no table has any of it, and the audit log still verifies.
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AlteredLogError, eraseUser, exportUser } from '../../src/domain/user-data/user-data.ts'
import { authenticateChain, CHAIN_BEGINNING, sealRow } from '../../src/domain/audit/mac.ts'
import { verifyAudit } from '../../src/domain/audit/verification.ts'
import type { Context } from '../../src/context.ts'
import { insertAuditEvent } from '../../src/storage/audit/audit.ts'
import { insertChain } from '../../src/storage/audit/chain.ts'
import { findUnsealed, placeRows } from '../../src/storage/audit/rows.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { member } from '../../phone/http.ts'
import { sealAll } from '../helpers/audit.ts'
import { expectRefused } from '../helpers/expectations.ts'
import { type Holder, type OperationWorld, PAYMENT, startOperationWorld } from '../helpers/operation-world.ts'
import { findStoredText } from '../helpers/stored-text.ts'
import { expectOk, registrationOf } from '../helpers/world.ts'

let world: OperationWorld
let context: Context
beforeAll(async () => {
  world = await startOperationWorld({ worksInBackground: false })
  const [first] = world.contexts
  if (first === undefined) throw new TypeError('a world without a server')
  context = first
  for (const kind of ['OPERATION', 'ACTIVATION']) {
    const webhook = { application: world.applicationId, kind, name: kind, url: 'https://bank.example/', attributes: ['userId'] }
    expectOk(await world.bank.call('POST', '/admin/webhooks', webhook))
  }
})
afterAll(() => world.close())

const MARK = 'marked-text'

/** A user with a row in every table that can have one; each text that people write holds the mark. */
async function live(): Promise<Holder> {
  const holder = await world.holder()
  const { userId, phone, token } = holder
  const { bank, applicationId } = world
  const { activationId } = phone.state
  const call = async (...given: Parameters<typeof bank.call>) => expectOk(await bank.call(...given))
  expectOk(await phone.send(await phone.prepareTokenCall('push', token, { platform: 'apns', token: `push ${MARK} ${userId}` })))
  await call('POST', '/inbox/messages', { userId, type: 'text', subject: MARK, summary: MARK, body: MARK })
  await call('PUT', `/admin/applications/${applicationId}/claims/${userId}`, { given_name: MARK })
  await call('PUT', `/admin/activations/${activationId}/config/limit`, { value: `${MARK} of ${userId}` })
  await world.operation(userId, { externalId: `${MARK} ${userId}` })
  const { id } = await world.operation(userId)
  const payment = { userId, template: await world.template(), parameters: PAYMENT }
  expectOk(await bank.createOperation(payment, { 'idempotency-key': `${MARK} ${userId}` }))
  expectOk(await bank.cancelOperation(id, MARK))
  expectOk(await bank.change(userId, 'BLOCK', { externalUserId: userId }))
  expectOk(await bank.change(userId, 'UNBLOCK', { externalUserId: 'clerk' }))
  return holder
}

const findText = (text: string): Promise<string[]> => findStoredText(world.db, text)
const verify = () => verifyAudit(context)

test('a user is given everything but secrets, and nothing of another', async () => {
  const { userId, phone } = await live()
  const other = await world.holder()
  await world.operation(other.userId)
  await sealAll(context)
  const all = await exportUser(context, userId)
  const json = JSON.stringify(all)
  for (const [name, rows] of Object.entries(all)) {
    // The phone is upgraded at once, or not at all.
    if (Array.isArray(rows) && name !== 'upgrades') expect([name, rows.length > 0]).toEqual([name, true])
  }
  expect(all.claims).toMatchObject([{ claims: { given_name: MARK } }])
  expect(all.registrations).toMatchObject([{ activation_id: phone.state.activationId, state: 'ACTIVE' }])
  expect(json).not.toContain(other.userId)
  expect(json).not.toContain(other.phone.state.activationId)
  expect(json).not.toMatch(/secret|private|ctr_data|_hash|push_token|proximity_seed|qr_code/)
  expect(json).not.toContain(`push ${MARK}`)
})

test('what administrators did to a user whose id goes on with the words of the log is no record of the other', async () => {
  const { bank, applicationId } = world
  const [userId, other] = [world.newUser(), world.newUser()]
  const longer = `${userId} in ${other}`
  for (const id of [userId, longer])
    expectOk(
      await bank.call('PUT', `/admin/applications/${applicationId}/claims/${encodeURIComponent(id)}`, { given_name: MARK }),
    )
  expectOk(await bank.call('POST', `/admin/applications/${applicationId}/registrations`, { userId: longer }))
  await sealAll(context)
  const target = `claims about ${userId} in ${applicationId}`
  expect((await exportUser(context, userId)).administration).toMatchObject([{ target }])
  await eraseUser(context, userId)
  const targets = (await exportUser(context, longer)).administration.map((row) => row['target'])
  expect(targets).toEqual([`claims about ${longer} in ${applicationId}`, `registration of ${longer} in ${applicationId}`])
})

test('after an erasure nothing leads to the user, others are as they were, and the log verifies', async () => {
  const { userId, phone } = await live()
  const other = await world.holder()
  await world.operation(other.userId)
  // The user did something for the other one, too.
  expectOk(await world.bank.change(other.userId, 'BLOCK', { externalUserId: userId, blockReason: 'LOST' }))
  expectOk(await world.bank.change(other.userId, 'UNBLOCK'))
  await sealAll(context)
  const { chains: before } = await verify()
  // These wait for their seal.
  expectOk(await phone.send(phone.prepareValidation({ body: 'waits' })))
  expectOk(await world.bank.call('PUT', `/admin/applications/${world.applicationId}/claims/${userId}`, { family_name: MARK }))
  const tables = (await findText(userId)).map((place) => place.split('.')[0])
  for (const table of ['activation', 'audit_log', 'audit_pending', 'admin_event', 'operation', 'webhook_delivery', 'user_claims'])
    expect(tables).toContain(table)
  const othersData = (await exportUser(context, other.userId)).operations

  const erased = await eraseUser(context, userId)
  expect(erased).toMatchObject({ registrations: 1, operations: 3, messages: 1, claims: 1 })
  expect(await findText(userId)).toEqual([])
  // What is random and not the user's name.
  for (const place of await findText(phone.state.activationId)) expect(place).toMatch(/^audit_.*\.activation_id$/)
  expectRefused(await phone.send(phone.prepareValidation({ body: 'again' })), 'signature')
  expect(await registrationOf(world, userId)).toBe('NONE')

  const heads = before.map(({ chain, headPosition: position, headSeal: seal }) => ({ chain, position, seal }))
  await sealAll(context)
  const after = await verifyAudit(context, heads)
  expect(after).toMatchObject({ isIntact: true })
  expect(await findText(erased.pseudonym)).toEqual(
    expect.arrayContaining(['admin_event.target', 'activation_history.external_user_id', 'audit_log.user_id'].toSorted()),
  )
  // A row of the other user keeps what does not name the erased one.
  const { rows } = await sql<{ data: string }>`
    select event_data as data from audit_log where user_id = ${other.userId} and strpos(event_data, ${erased.pseudonym}) > 0`.execute(
    world.db,
  )
  expect(rows.map(({ data }) => JSON.parse(data))).toMatchObject([{ reason: 'LOST', externalUserId: erased.pseudonym }])
  expectOk(await other.phone.send(other.phone.prepareValidation({ body: 'pay' })))
  expect((await exportUser(context, other.userId)).operations).toEqual(othersData)

  // The name is free, for whoever has it now.
  expectOk(await world.bank.register(userId))
  await sealAll(context)
  expect(await verify()).toMatchObject({ isIntact: true })
  await eraseUser(context, userId)
  expect(await findText(userId)).toEqual([])
})

test('an erased row that is changed afterwards is noticed, and so is a row that only looks erased', async () => {
  const { userId } = await world.holder()
  const other = await world.holder()
  await sealAll(context)
  const { pseudonym } = await eraseUser(context, userId)
  await sealAll(context)
  const spoil = async (change: ReturnType<typeof sql>, back: ReturnType<typeof sql>) => {
    await change.execute(world.db)
    const { isIntact } = await verify()
    await back.execute(world.db)
    return isIntact
  }
  const first = sql`(select min(position) from audit_log where user_id = ${pseudonym})`
  const { rows } = await sql<{ position: string; data: string; type: string; seal: Buffer }>`
    select position, event_data as data, event_type as type, seal from audit_log where position = ${first} and user_id = ${pseudonym}`.execute(
    world.db,
  )
  const [row] = rows
  if (row === undefined) throw new Error('no row was erased')
  const at = sql`where user_id like ${`${pseudonym}%`} and position = ${row.position}`
  const restore = sql`update audit_log set user_id = ${pseudonym}, event_type = ${row.type}, event_data = ${row.data} ${at}`
  for (const change of [
    sql`event_type = 'other'`,
    sql`user_id = ${`${pseudonym}x`}`,
    sql`event_data = '{}'`,
    sql`event_data = '{"a":"b",' || substr(event_data, 2)`,
  ])
    expect(await spoil(sql`update audit_log set ${change} ${at}`, restore)).toBe(false)
  // Somebody copies what an erasure leaves to a row that was never erased.
  const kept = sql`where user_id = ${other.userId} and event_type = 'registration_created'`
  const { rows: data } = await sql<{ data: string }>`select event_data as data from audit_log ${kept}`.execute(world.db)
  const original = sql`update audit_log set event_data = ${data[0]?.data} ${kept}`
  expect(await spoil(sql`update audit_log set event_data = ${row.data} ${kept}`, original)).toBe(false)
  expect(await verify()).toMatchObject({ isIntact: true })
  // Nor does an erasure make an alteration authentic.
  await sql`update audit_log set event_data = '{"x":"y"}' ${kept}`.execute(world.db)
  await expect(eraseUser(context, other.userId)).rejects.toThrow(AlteredLogError)
  expect(await registrationOf(world, other.userId)).toBe('ACTIVE')
  await original.execute(world.db)
})

test('rows that were sealed before users had keys verify, and are erased like others', async () => {
  const { auditSeal } = context.installationKeys
  const userId = world.newUser()
  const event = { applicationId: 'old', userId, activationId: 'a-1', eventType: 'test_row', occurredAt: new Date(0) }
  await sealAll(context)
  for (const eventData of ['{"a":"1"}', 'no JSON', '{"a":"3"}']) await insertAuditEvent(world.db, { ...event, eventData })
  await inTransaction(context.db, async (tx) => {
    const name = 'application:old'
    let head = CHAIN_BEGINNING
    const rows = await findUnsealed(tx, 'devices', 3, [])
    const places = rows.map((row) => {
      head = sealRow(auditSeal, name, head, row)
      return { ...head, row }
    })
    const chainId = await insertChain(tx, authenticateChain(auditSeal, { name, start: CHAIN_BEGINNING, head }))
    const placed = places.map((place) => ({ ...place, chainId }))
    await placeRows(tx, 'devices', placed, new Date(context.platform.now()))
  })
  // The user has a key since.
  await insertAuditEvent(world.db, { ...event, eventData: '{"a":"4"}' })
  await sealAll(context)
  expect(await verify()).toMatchObject({ isIntact: true })
  expect(await eraseUser(context, userId)).toMatchObject({ auditRows: 4, registrations: 0 })
  expect(await findText(userId)).toEqual([])
  const { isIntact, chains } = await verify()
  expect(isIntact).toBe(true)
  expect(chains.find(({ chain }) => chain === 'application:old')).toMatchObject({ sealed: 4 })
})

test('what keeps others from writing about an erased user is gone an hour later', async () => {
  const { userId } = await world.holder()
  await eraseUser(context, userId)
  const count = async () => (await sql`select from user_erasure`.execute(world.db)).rows.length
  expect(await count()).toBeGreaterThan(0)
  await world.housekeeping()
  expect(await count()).toBeGreaterThan(0)
  await sql`update user_erasure set closed_until = closed_until - interval '1 hour'`.execute(world.db)
  await world.housekeeping()
  expect(await count()).toBe(0)
})

test.each(["o'brien", 'Žofie "Ž" \\ %', '名前', 'x'.repeat(255)])('the name %s is closed as it is written', async (name) => {
  const userId = name.slice(0, 250) + world.newUser().slice(-4)
  expectOk(await world.bank.register(userId))
  await eraseUser(context, userId, 60_000)
  expect(await findText(userId)).toEqual([])
  expect(await world.bank.register(userId)).toMatchObject({ status: 503 })
  expectOk(await world.bank.register(`${userId}2`.slice(-200)))
})

test('an operation for one phone that nobody has claimed is of the user of that phone', async () => {
  const { userId, phone } = await world.holder()
  const { activationId } = phone.state
  const body = { template: await world.template(), parameters: PAYMENT, registrationId: activationId }
  const created = expectOk(await world.bank.createDeviceOperation(body, { 'idempotency-key': `for ${activationId}` }))
  const open = expectOk(await world.bank.createDeviceOperation({ ...body, registrationId: null }))
  const id = String(member(created.json, 'operationId'))
  const data = await exportUser(context, userId)
  expect(data).toMatchObject({ operations: [{ operation_id: id, activation_id: activationId }] })
  expect(JSON.stringify(data.webhookDeliveries)).toContain(id)
  expect(await eraseUser(context, userId)).toMatchObject({ operations: 1 })
  expect(await findText(id)).toEqual([])
  for (const place of await findText(activationId)) expect(place).toMatch(/^audit_.*\.activation_id$/)
  // What is for whoever claims it stays.
  expect(await findText(String(member(open.json, 'operationId')))).not.toEqual([])
})

test('what webhooks were told of an operation for one phone goes, also when the operation is gone', async () => {
  const { userId, phone } = await world.holder()
  const { activationId } = phone.state
  const body = { template: await world.template(), parameters: PAYMENT, registrationId: activationId }
  const id = String(member(expectOk(await world.bank.createDeviceOperation(body)).json, 'operationId'))
  await world.db.deleteFrom('operation').where('operation_id', '=', id).execute()
  expect(JSON.stringify((await exportUser(context, userId)).webhookDeliveries)).toContain(id)
  await eraseUser(context, userId)
  expect(await findText(id)).toEqual([])
})

test('a message for a webhook that somebody altered keeps no user from being given out or erased', async () => {
  const { userId } = await live()
  const other = await world.holder()
  await sql`update webhook_delivery set payload = '{' where object_id = ${other.phone.state.activationId}`.execute(world.db)
  expect((await exportUser(context, userId)).webhookDeliveries.length).toBeGreaterThan(2)
  await eraseUser(context, userId)
  expect(await findText(userId)).toEqual([])
})
