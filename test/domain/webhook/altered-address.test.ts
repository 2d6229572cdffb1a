// A writer of the database who gives a webhook another address is not sent the name and the password of the bank's receiver: they are for the
// server that an administrator gave them for (docs/SECURITY-MODEL.md).
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { loadInstallationKeys } from '../../../src/domain/installation-keys.ts'
import { tryWebhook } from '../../../src/domain/webhook/attempt.ts'
import { deliverDue } from '../../helpers/deliver.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError } from '../../helpers/expectations.ts'
import { insertOperation } from '../../helpers/operations.ts'
import { type Receiver, signaturesOf, startReceiver } from '../../helpers/receiver.ts'
import { expectOk } from '../../helpers/world.ts'

const BASIC = { username: 'pawl', password: 'password of the receiver' }

let server: TestServer
let bank: Bank
let receiver: Receiver
let thief: Receiver
beforeAll(async () => {
  const env = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
  server = await startTestServer({ env, worksInBackground: false })
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('one'))
  receiver = await startReceiver()
  thief = await startReceiver()
})
afterAll(async () => {
  await receiver.goDown()
  await thief.goDown()
  await server.close()
})
beforeEach(() => {
  receiver.take()
  thief.take()
})

const createHook = async (more: Readonly<Record<string, unknown>> = {}): Promise<string> => {
  const body = { application: 'one', name: 'hook', kind: 'OPERATION', url: receiver.url, basic: BASIC, ...more }
  return (expectOk(await bank.call('POST', '/admin/webhooks', body)).json as { id: string }).id
}
const change = (id: string, more: Readonly<Record<string, unknown>>) =>
  bank.call('PUT', `/admin/webhooks/${id}`, { name: 'hook', url: receiver.url, ...more })
const tryHook = async (id: string): Promise<unknown> => expectOk(await bank.call('POST', `/admin/webhooks/${id}/test`, {})).json
const redirect = (id: string, url: string) =>
  sql`update webhook set url = ${url} where webhook_id = ${id}`.execute(server.context.db)
const REFUSED = { isDelivered: false, error: 'the message could not be made, see the log' }
const sentTo = (one: Receiver) => one.take().map(({ headers }) => headers['authorization'])
const SENT = `Basic ${Buffer.from(`${BASIC.username}:${BASIC.password}`).toString('base64')}`

test('whose address was altered: nobody is sent anything until the credentials are given again', async () => {
  const id = await createHook()
  expect(await tryHook(id)).toMatchObject({ isDelivered: true })
  expect(sentTo(receiver)).toEqual([SENT])
  await redirect(id, thief.url)
  expect(await tryHook(id)).toMatchObject(REFUSED)
  expect(sentTo(thief)).toEqual([])
  expect(server.log()).toContain('a sealed record was altered in the database')
  // An administrator who takes the altered address for right does not make it right, and one who mends it is asked.
  expectOk(await change(id, { url: thief.url }))
  expect(await tryHook(id)).toMatchObject(REFUSED)
  expectError(await change(id, {}), 400, 'ERROR_REQUEST')
  expectOk(await change(id, { basic: BASIC }))
  expect(await tryHook(id)).toMatchObject({ isDelivered: true })
  expect([sentTo(receiver), sentTo(thief)]).toEqual([[SENT], []])
})

test('with the MAC of another row, or of another address of the same row', async () => {
  const own = await createHook({ url: thief.url, basic: { ...BASIC, password: 'chosen by the thief' } })
  const id = await createHook()
  await sql`update webhook set url = o.url, basic_mac = o.basic_mac from webhook o
    where webhook.webhook_id = ${id} and o.webhook_id = ${own}`.execute(server.context.db)
  expect(await tryHook(id)).toMatchObject(REFUSED)
  const moved = await createHook({ url: thief.url })
  const before = await sql<{ mac: Buffer }>`select basic_mac as mac from webhook where webhook_id = ${moved}`.execute(
    server.context.db,
  )
  expectOk(await change(moved, { basic: { ...BASIC, password: 'for the receiver alone' } }))
  await sql`update webhook set url = ${thief.url}, basic_mac = ${before.rows[0]?.mac} where webhook_id = ${moved}`.execute(
    server.context.db,
  )
  expect(await tryHook(moved)).toMatchObject(REFUSED)
  expect(sentTo(thief)).toEqual([])
})

test('the credentials stay for another path of the same server, and a webhook without them goes where it is sent', async () => {
  const id = await createHook()
  expectOk(await change(id, { url: `${receiver.url}/other` }))
  expect(await tryHook(id)).toMatchObject({ isDelivered: true })
  expect(sentTo(receiver)).toEqual([SENT])
  expectOk(await change(id, { basic: null, url: thief.url }))
  expect(await tryHook(id)).toMatchObject({ isDelivered: true })
  expect(sentTo(thief)).toEqual([undefined])
})

test('whose credentials were altered: it is listed with all others, and mended by giving them again', async () => {
  const id = await createHook()
  await sql`update webhook set basic_credentials = ${Buffer.alloc(60)} where webhook_id = ${id}`.execute(server.context.db)
  expect(await tryHook(id)).toMatchObject(REFUSED)
  expect(expectOk(await bank.call('GET', `/admin/webhooks/${id}`)).json).not.toHaveProperty('basicUsername')
  expectOk(await bank.call('GET', '/admin/webhooks'))
  expectOk(await change(id, { basic: BASIC }))
  expect(await tryHook(id)).toMatchObject({ isDelivered: true })
  expect(sentTo(receiver)).toEqual([SENT])
  await sql`update webhook set basic_credentials = ${Buffer.alloc(60)} where webhook_id = ${id}`.execute(server.context.db)
  expectOk(await bank.call('DELETE', `/admin/webhooks/${id}`))
})

test('whose secret was altered: nothing is sent until there is a new one, beside which it is not kept', async () => {
  const id = await createHook()
  await sql`update webhook set secret = ${Buffer.alloc(60)} where webhook_id = ${id}`.execute(server.context.db)
  expect(await tryHook(id)).toMatchObject(REFUSED)
  const rotated = await bank.call('POST', `/admin/webhooks/${id}/secret`, { keepPreviousSeconds: 60 })
  const { secret } = expectOk(rotated).json as { secret: string }
  expect(await tryHook(id)).toMatchObject({ isDelivered: true })
  const [received] = receiver.take()
  if (received === undefined) throw new Error('nothing was received')
  expect(received.headers['webhook-signature']).toBe(signaturesOf(received, secret))
})

test('a message that was altered fails alone: that of another object is sent, and it waits for its next attempt', async () => {
  const { db } = server.context
  await sql`delete from webhook`.execute(db)
  await createHook()
  await insertOperation(db, { applicationId: 'one' })
  await sql`update webhook_delivery set payload = 'altered'`.execute(db)
  await insertOperation(db, { applicationId: 'one' })
  await deliverDue(server.context)
  expect(receiver.take()).toHaveLength(1)
  const waiting = db.selectFrom('webhook_delivery').select(['attempts', 'last_error']).where('status', '=', 'WAITING')
  expect(await waiting.execute()).toEqual([{ attempts: 1, last_error: REFUSED.error }])
})

test.each(['', 'nowhere', 'https://'])(
  'whose address was altered to %j: a change asks for the credentials, and mends it',
  async (url) => {
    const id = await createHook()
    await redirect(id, url)
    expect(await tryHook(id)).toMatchObject({ isDelivered: false })
    expectError(await change(id, {}), 400, 'ERROR_REQUEST')
    expectOk(await change(id, { basic: BASIC }))
    expect(await tryHook(id)).toMatchObject({ isDelivered: true })
    expect(sentTo(receiver)).toEqual([SENT])
  },
)

test('rows that are older than the MACs get theirs together with the key, and never again', async () => {
  const { db, recordKeys, platform } = server.context
  const load = async () => {
    const sealed: string[] = []
    const { webhookMac } = await loadInstallationKeys(db, recordKeys, platform, {
      credentialsSealed: () => undefined,
      webhooksSealed: ({ webhooks }) => sealed.push(...webhooks),
    })
    return { sealed, webhookMac }
  }
  await sql`delete from webhook`.execute(db)
  const id = await createHook()
  const broken = await createHook()
  const nowhere = await createHook()
  await redirect(nowhere, 'nowhere')
  await createHook({ basic: undefined })
  await sql`update webhook set basic_credentials = ${Buffer.alloc(60)} where webhook_id = ${broken}`.execute(db)
  await sql`update webhook set basic_mac = null`.execute(db)
  expect((await load()).sealed).toEqual([])
  expect(await tryHook(id)).toMatchObject(REFUSED)
  await sql`delete from wrapped_key where purpose = 'webhook-mac'`.execute(db)
  const { sealed, webhookMac } = await load()
  expect(sealed.toSorted()).toEqual([`${id} (${new URL(receiver.url).origin})`, `${nowhere} (nowhere)`].toSorted())
  const { installationKeys, ...context } = server.context
  expect(await tryWebhook({ ...context, installationKeys: { ...installationKeys, webhookMac } }, id)).toMatchObject({
    isDelivered: true,
  })
  expect(sentTo(receiver)).toEqual([SENT])
  expect((await load()).sealed).toEqual([])
})
