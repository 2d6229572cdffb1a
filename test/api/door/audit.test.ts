// The audit row of a code that a bank had checked has the usual event, a digest in place of the body, and the caller (cloud §7, §12.5).
import { createHash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyAudit } from '../../../src/domain/audit/verification.ts'
import { exportAudit } from '../../../src/domain/audit/lines.ts'
import { eraseUser } from '../../../src/domain/user-data/user-data.ts'
import { member, toQuery } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { lookAndUndo, sealAll } from '../../helpers/audit.ts'
import type { Bank } from '../../helpers/bank.ts'
import { createCaller, RESOURCE, verdictOf } from '../../helpers/door.ts'
import { expectError } from '../../helpers/expectations.ts'
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
const digestOf = (text: string): string => `${text.length}\n${createHash('sha256').update(text).digest('hex')}`

/** The newest rows of a user, as administrators see them. */
async function eventsOf(userId: string, limit: number): Promise<readonly unknown[]> {
  const path = `/admin/applications/${v4.world.applicationId}/audit?${toQuery({ userId, limit })}`
  return member(expectOk(await v4.world.bank.call('GET', path)).json, 'items') as readonly unknown[]
}

test('a row has method, resource, length and digest, the text of the bank, and who asked', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const { activationId } = phone.state
  const body = '{"pin":"1234"}'
  await v4.world.advance(1)
  expectOk(await phone.send(phone.prepareValidation({ body: 'at pawl' })))
  await v4.world.advance(1)
  await verdictOf(bank, phone.prepareSigned({ ...at, method: 'PUT', body }), { method: 'put', auditText: 'Überweisung 4711' })
  await v4.world.advance(1)
  await verdictOf(bank, phone.prepareSigned({ ...at, method: 'GET', query: 'b=2&a=1' }))
  await v4.world.advance(1)
  await verdictOf(bank, phone.prepareSigned({ ...at, body, wrongKeys: { knowledge: random(16) } }), { auditText: 'again' })
  expect(await eventsOf(userId, 4)).toMatchObject([
    {
      activationId,
      eventType: 'signature_does_not_match',
      eventData: `POST\n${RESOURCE}\n${digestOf(body)}\nagain`,
      verifiedBy: 'web-tier',
    },
    { eventType: 'signature_ok', eventData: `GET\n${RESOURCE}\n${digestOf('a=1&b=2')}`, verifiedBy: 'web-tier' },
    { eventType: 'signature_ok', eventData: `PUT\n${RESOURCE}\n${digestOf(body)}\nÜberweisung 4711`, verifiedBy: 'web-tier' },
    { eventType: 'signature_ok', eventData: 'POST\n/pa/signature/validate\nat pawl' },
  ])
  const [, , , online] = await eventsOf(userId, 4)
  expect(online).not.toHaveProperty('verifiedBy')
})

test('administrators read what was verified of one activation, and the rest is left out', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const { activationId } = phone.state
  expectOk(await phone.send(phone.prepareValidation({ body: 'at pawl' })))
  for (const auditText of ['first', 'second', 'third']) {
    await v4.world.advance(1)
    await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }), { auditText })
  }
  // What a back end changes names it, too, and is nothing that was verified.
  expectOk(await v4.world.bank.call('PUT', `/v2/registrations/${activationId}/name`, { name: 'of the bank' }))
  const read = async (query: Record<string, string | number>) => {
    const path = `/admin/applications/${v4.world.applicationId}/audit?${toQuery({ userId, ...query })}`
    return expectOk(await v4.world.bank.call('GET', path)).json as { items: { eventData: string }[]; next?: number }
  }
  const textsOf = ({ items }: { items: { eventData: string }[] }) => items.map(({ eventData }) => eventData.split('\n').at(-1))
  const only = { activationId, onlyVerified: 'true' }
  expect(textsOf(await read(only))).toEqual(['third', 'second', 'first'])
  const page = await read({ ...only, limit: 2 })
  expect(textsOf(page)).toEqual(['third', 'second'])
  const rest = await read({ ...only, limit: 2, before: page.next ?? 0 })
  expect(textsOf(rest)).toEqual(['first'])
  expect(rest).not.toHaveProperty('next')
  // Sealed rows stand in another table.
  await sealAll(v4.server.context)
  expect(textsOf(await read(only))).toEqual(['third', 'second', 'first'])
  expect((await read({ activationId, onlyVerified: 'false' })).items.length).toBeGreaterThan(3)
  expect(await read({ ...only, activationId: 'of-nobody' })).toEqual({ items: [] })
  const wrong = `/admin/applications/${v4.world.applicationId}/audit?${toQuery({ userId, onlyVerified: 'maybe' })}`
  expectError(await v4.world.bank.call('GET', wrong), 400, 'ERROR_REQUEST')
  const reversed = `/admin/applications/${v4.world.applicationId}/audit?${toQuery({ userId, timestampFrom: 2, timestampTo: 1 })}`
  expectError(await v4.world.bank.call('GET', reversed), 400, 'ERROR_REQUEST')
})

test('the log of the bank itself is as it was', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))
  const [newest] = member(
    expectOk(await v4.world.bank.call('GET', `/audit/log?${toQuery({ userId })}`)).json,
    'items',
  ) as object[]
  expect(Object.keys(newest ?? {})).toEqual(['activationId', 'eventType', 'eventData', 'timestamp'])
  const other = `/admin/applications/nobody/audit?${toQuery({ userId })}`
  expectError(await v4.world.bank.call('GET', other), 400, 'ERROR_ADMIN')
  const stranger = `/admin/applications/${v4.world.applicationId}/audit?userId=stranger`
  expectError(await v4.world.bank.call('GET', stranger), 400, 'ERROR_AUDIT')
  expectError(await bank.call('GET', other), 403, 'HTTP_403')
})

test('who asked is under the seal: no name is changed, taken away or added unnoticed', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const { context } = v4.server
  await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }))
  expectOk(await phone.send(phone.prepareValidation({ body: 'at pawl' })))
  await sealAll(context)
  expect(await verifyAudit(context)).toMatchObject({ isIntact: true })
  const alter = (change: RawBuilder<unknown>, which: RawBuilder<unknown>) =>
    lookAndUndo(
      context.db,
      async (tx) => {
        const { numAffectedRows } =
          await sql`update audit_log set verified_by = ${change} where user_id = ${userId} and ${which}`.execute(tx)
        expect(numAffectedRows).toBe(1n)
      },
      async (tx) => (await verifyAudit({ ...context, db: tx })).isIntact,
    )
  const [asked, own] = [sql`verified_by = 'web-tier'`, sql`event_data like '%at pawl'`]
  expect(await alter(sql`verified_by`, asked)).toBe(true)
  expect(await alter(sql`'somebody'`, asked)).toBe(false)
  expect(await alter(sql`null`, asked)).toBe(false)
  expect(await alter(sql`'somebody'`, own)).toBe(false)
  expect(await alter(sql`''`, own)).toBe(false)
})

test('who asked stands in what is exported, and stays when the user is erased', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const { context } = v4.server
  await verdictOf(bank, phone.prepareSigned({ ...at, body: 'x' }), {}, Buffer.from(random(16)).toString('hex'))
  await sealAll(context)
  const lines: string[] = []
  await exportAudit(context, [], (line) => lines.push(line))
  const exported = lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line['userId'] === userId)
  expect(exported.at(-1)).toMatchObject({ eventType: 'signature_ok', verifiedBy: 'web-tier' })
  const ofPhone = exported.find(({ eventType }) => eventType === 'registration_keys_exchanged')
  expect(ofPhone).not.toHaveProperty('verifiedBy')
  const { pseudonym } = await eraseUser(context, userId)
  expect(await verifyAudit(context)).toMatchObject({ isIntact: true })
  const { rows } =
    await sql`select verified_by as by from audit_log where user_id = ${pseudonym} and event_type = 'signature_ok'`.execute(
      context.db,
    )
  expect(rows).toEqual([{ by: 'web-tier' }])
  expect(
    (await sql`select from door_verdict where activation_id = ${phone.state.activationId}`.execute(context.db)).rows,
  ).toEqual([])
  const isIntact = await lookAndUndo(
    context.db,
    async (tx) => {
      await sql`update audit_log set verified_by = null where user_id = ${pseudonym} and verified_by = 'web-tier'`.execute(tx)
    },
    async (tx) => (await verifyAudit({ ...context, db: tx })).isIntact,
  )
  expect(isIntact).toBe(false)
})
