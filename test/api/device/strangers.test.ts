// The writes that strangers can cause: codes for activations that do not exist, and bodies of refused codes (cloud §7).
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { random } from '../../../phone/v3/crypto.ts'
import type { HttpRequest } from '../../../phone/http.ts'
import { createAuditSealer } from '../../../src/domain/audit/seal.ts'
import { runHousekeeping } from '../../../src/domain/housekeeping.ts'
import type { TestServer } from '../../helpers/app.ts'
import { sealAll } from '../../helpers/audit.ts'
import { expectRefused } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  const env = { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_ADMIN_AUDIT_RETENTION_DAYS: '100' }
  ;({ server, world } = await startServerWithWorld({ env, worksInBackground: false }))
  server.clock.stop()
})
afterAll(() => world.close())

const DAY = 86_400_000
const BODY = JSON.stringify({ text: 'x'.repeat(4_000) })

const from = <R extends HttpRequest>(ip: string, request: R): R => ({
  ...request,
  headers: { ...request.headers, 'X-Forwarded-For': ip },
})

/** Rows and bytes of a table, without indexes and heads of rows' pages. */
const sizeOf = async (table: string): Promise<{ rows: number; bytes: number }> => {
  const { rows } = await sql<{ rows: number; bytes: number }>`
    select count(*)::int as rows, coalesce(sum(pg_column_size(t.*)), 0)::int as bytes from ${sql.table(table)} t`.execute(
    server.context.db,
  )
  return rows[0] ?? { rows: 0, bytes: 0 }
}

test('codes for activations that do not exist take one row a minute and network, whatever their number and size', async () => {
  const { phone } = await world.activePhone('3.3')
  const before = await sizeOf('audit_trail')
  const { activationId } = phone.state
  for (let i = 0; i < 30; i += 1) {
    const request = phone.prepareValidation({ body: BODY })
    const header = Object.entries(request.headers).map(([name, value]) => [name, value.replace(activationId, randomUUID())])
    const stranger = { ...request, headers: Object.fromEntries(header) as Record<string, string> }
    expectRefused(await phone.send(from(i % 2 === 0 ? `192.0.2.${i}` : `2001:db8:1:2::${i}`, stranger)), 'signature')
  }
  expect(await sizeOf('audit_trail')).toEqual(before)
  const { rows } = await sql`select network, codes::int from stranger_count order by network`.execute(server.context.db)
  expect(rows).toEqual([
    { network: '192.0.2.0/24', codes: 15 },
    { network: '2001:db8:1:2::/64', codes: 15 },
  ])
  expect((await sizeOf('stranger_count')).bytes / 30).toBeLessThan(10)
  server.clock.advance(60_000)
  await sql`delete from stranger_count`.execute(server.context.db)
})

test('the body of a refused code is not stored, that of an accepted one is', async () => {
  const { phone } = await world.activePhone('3.3')
  const before = await sizeOf('audit_trail')
  expectRefused(await phone.send(phone.prepareValidation({ body: BODY, wrongKeys: { knowledge: random(16) } })), 'signature')
  const after = await sizeOf('audit_trail')
  expect(after.rows - before.rows).toBe(1)
  expect(after.bytes - before.bytes).toBeLessThan(300)
  const { rows } = await sql<{ data: string }>`
    select event_data as data from audit_trail where event_type = 'signature_does_not_match'`.execute(server.context.db)
  expect(rows).toEqual([{ data: `POST\n/pa/signature/validate\n[${BODY.length} bytes]` }])
  expectOk(await phone.send(phone.prepareValidation({ body: BODY })))
  const accepted = await sql<{ data: string }>`
    select event_data as data from audit_trail where event_type = 'signature_ok' and activation_id = ${phone.state.activationId}`.execute(
    server.context.db,
  )
  expect(accepted.rows).toEqual([{ data: `POST\n/pa/signature/validate\n${BODY}` }])
})

test('each kind of record is kept for its own time', async () => {
  const { context, clock } = server
  const { phone } = await world.activePhone('3.3')
  const request = phone.prepareValidation()
  const header = Object.entries(request.headers).map(([name, value]) => [
    name,
    value.replace(phone.state.activationId, randomUUID()),
  ])
  await phone.send({ ...request, headers: Object.fromEntries(header) as Record<string, string> })
  const count = async () => [
    (await sizeOf('stranger_count')).rows > 0,
    (await sizeOf('admin_event')).rows > 0,
    (await sizeOf('audit_trail')).rows > 0,
  ]
  const keep = async (days: number) => {
    clock.advance(days * DAY)
    await sealAll(context)
    await createAuditSealer(context)()
    await runHousekeeping(context)
    return count()
  }
  await sealAll(context)
  expect(await count()).toEqual([true, true, true])
  expect(await keep(29)).toEqual([true, true, true])
  expect(await keep(2)).toEqual([false, true, true])
  expect(await keep(68)).toEqual([false, true, true])
  expect(await keep(2)).toEqual([false, false, true])
  expect(await keep(263)).toEqual([false, false, true])
  // With the partition that they stand in.
  expect(await keep(2 * server.context.settings.auditPartitionDays)).toEqual([false, false, false])
})
