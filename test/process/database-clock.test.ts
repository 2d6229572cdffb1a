// A process whose clock is wrong, on a database whose clock is right: it is not ready, says so, and ends nothing before its time.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, sendJson } from '../../phone/http.ts'
import { createAuditSealer } from '../../src/domain/audit/seal.ts'
import { verifyAudit } from '../../src/domain/audit/verification.ts'
import { deleteOutdated, runHousekeeping } from '../../src/domain/housekeeping.ts'
import { runCertificateWatch } from '../../src/domain/pinning/watch.ts'
import { deliverDue } from '../helpers/deliver.ts'
import type { Db } from '../../src/storage/database/database.ts'
import { openTestDatabase, serverUrl, startTestServer, type TestServer } from '../helpers/app.ts'
import { createBank } from '../helpers/bank.ts'
import { HOUR, MINUTE, SECOND } from '../helpers/expectations.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, type PawlProcess, startPawl } from '../helpers/process.ts'
import { expectOk, openWorld, openWorldOn, registrationOf, type World } from '../helpers/world.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const DAY = 24 * HOUR
const WRONG: readonly (readonly [string, number])[] = [
  ['800 days ahead', 800 * DAY],
  ['61 s ahead', 61 * SECOND],
  ['61 s behind', -61 * SECOND],
  ['800 days behind', -800 * DAY],
]
const readiness = (url: string) => sendJson(url, 'GET', '/health/ready')
const countOf = (text: string, part: string): number => text.split(part).length - 1

describe('readiness', () => {
  test.each(WRONG)('is refused with a reason while the clock is %s', async (_, ahead) => {
    const server = await startTestServer({ aheadOfDatabase: ahead })
    try {
      const reply = await readiness(server.url)
      expect(reply.status).toBe(503)
      const seconds = Math.abs(ahead) / SECOND
      const where = ahead > 0 ? `${seconds} s ahead of` : `${seconds} s behind`
      expect(reply.json).toEqual({ status: 'UNAVAILABLE', reason: `the clock of this process is ${where} that of the database` })
      expectOk(await sendJson(server.url, 'GET', '/health/live'))
      expect(countOf(server.log(), 'the clock of this machine and that of the database differ')).toBe(1)
      const { text } = await server.context.metrics.render()
      expect(Number(/^pawl_clock_difference_seconds (\S+)$/m.exec(text)?.[1])).toBeCloseTo(ahead / SECOND, 0)
    } finally {
      await server.close()
    }
  })

  test.each([0, 59 * SECOND, -59 * SECOND])('is given with a clock that is %d ms off', async (ahead) => {
    const server = await startTestServer({ aheadOfDatabase: ahead })
    try {
      expect(expectOk(await readiness(server.url)).json).toEqual({ status: 'OK' })
      expect(server.log()).not.toContain('the clock of this machine')
    } finally {
      await server.close()
    }
  })

  test('goes and comes while the server runs, each told once', async () => {
    const server = await startTestServer({ aheadOfDatabase: 0 })
    const { clock, context } = server
    const hear = () => context.clock.hear(async () => clock.databaseNow())
    try {
      for (const step of [2 * DAY, -90 * SECOND]) {
        clock.step(step)
        for (let i = 0; i < 3; i += 1) await hear()
        expect((await readiness(server.url)).status).toBe(503)
        clock.step(-step)
        for (let i = 0; i < 3; i += 1) await hear()
        expectOk(await readiness(server.url))
      }
      expect(countOf(server.log(), 'differ: the process is not ready')).toBe(2)
      expect(countOf(server.log(), 'agree again')).toBe(2)
    } finally {
      await server.close()
    }
  })
})

describe.each(WRONG)('beside a right server one whose clock is %s', (_, ahead) => {
  let drop: () => Promise<void>
  let right: TestServer
  let wrong: TestServer
  let world: World
  beforeAll(async () => {
    const opened = await openTestDatabase()
    const masterKeys = [Buffer.alloc(32, 7)] as const
    const options = { database: opened.database, masterKeys, worksInBackground: false }
    right = await startTestServer({ ...options, aheadOfDatabase: 0 })
    wrong = await startTestServer({ ...options, aheadOfDatabase: ahead })
    world = await openWorldOn(right)
    drop = async () => {
      await opened.database.close()
      await opened.drop()
    }
  })
  afterAll(async () => {
    await wrong.close()
    await right.close()
    await drop()
  })
  const advance = (ms: number): void => {
    for (const { clock } of [right, wrong]) clock.advance(ms)
  }

  test('ends and deletes nothing before its time, and seals with the time of the database', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const waiting = await world.register()
    const pending = await world.pendingPhone('3.2')
    const created = expectOk(await world.bank.createOperation({ userId, template: 'login' })).json
    await createAuditSealer(right.context)()
    const before = await readAll(right.context.db)
    await keepHouse(wrong)
    expect(await readAll(right.context.db)).toEqual(before)
    const operationId = String(member(created, 'operationId'))
    expect(member(expectOk(await world.bank.readOperation(operationId)).json, 'status')).toBe('PENDING')
    expect(await registrationOf(world, waiting.userId)).toBe('CREATED')
    expect(await registrationOf(world, pending.userId)).toBe('PENDING_COMMIT')
    // What it seals, others can go on from.
    expectOk(await phone.send(phone.prepareValidation(), wrong.url))
    await createAuditSealer(wrong.context)()
    await createAuditSealer(right.context)()
    const { rows } = await sql<{ at: Date }>`select max(sealed_at) as at from audit_log`.execute(right.context.db)
    expect(Math.abs((rows[0]?.at.getTime() ?? 0) - right.clock.databaseNow())).toBeLessThan(MINUTE)
    expect((await verifyAudit(right.context)).isIntact).toBe(true)
  })

  test('serves what reaches it by the time of the database', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const bank = createBank(wrong.url, world.bank.credential)
    const created = expectOk(await world.bank.createOperation({ userId, template: 'login' })).json
    const id = String(member(created, 'operationId'))
    expect(member(expectOk(await bank.readOperation(id)).json, 'status')).toBe('PENDING')
    const made = expectOk(await bank.createOperation({ userId, template: 'login' })).json
    for (const name of ['timestampCreated', 'timestampExpires'] as const)
      expect(Math.abs(Number(member(made, name)) - Number(member(created, name)))).toBeLessThan(10 * SECOND)
    const waiting = await world.register()
    expect(await registrationOf({ bank }, waiting.userId)).toBe('CREATED')
    // Codes, envelopes and tokens with the right time are taken, and what is over stays over.
    expectOk(await phone.send(phone.prepareValidation(), wrong.url))
    expectOk(await phone.send(phone.prepareAuthorize({ id, data: 'A2' }), wrong.url))
    const token = await phone.createToken('possession')
    const old = await phone.prepareTokenCall('list', token)
    expectOk(await phone.send(await phone.prepareTokenCall('list', token), wrong.url))
    advance(10 * MINUTE)
    expect((await phone.send(old, wrong.url)).status).toBe(401)
    expect(member(expectOk(await bank.readOperation(String(member(made, 'operationId')))).json, 'status')).toBe('EXPIRED')
    expect(await registrationOf({ bank }, waiting.userId)).toBe('NONE')
  })
})

test('nothing is done in the background while the clocks differ, and all of it afterwards', async () => {
  const server = await startTestServer({ aheadOfDatabase: DAY })
  const { clock, context } = server
  const left = async (): Promise<unknown> => {
    const { rows } = await sql`
      select exists (select from audit_pending) as rows, exists (select from admin_event where position is null) as events,
        exists (select from activation where state = 'CREATED') as codes`.execute(context.db)
    return rows[0]
  }
  try {
    const world = await openWorldOn(server)
    await world.activePhone('3.3')
    await world.register()
    clock.advance(10 * MINUTE)
    const waiting = { rows: true, events: true, codes: true }
    expect(await left()).toEqual(waiting)
    // Longer than there is between two rounds.
    await sleep(7 * SECOND)
    expect(await left()).toEqual(waiting)
    clock.step(-DAY)
    await expect.poll(left, { timeout: PATIENCE_MS, interval: 500 }).toEqual({ rows: false, events: false, codes: false })
    expectOk(await readiness(server.url))
  } finally {
    await server.close()
  }
})

/** All that a process does in the background, as if its clock did not matter. */
async function keepHouse({ context }: TestServer): Promise<void> {
  await runHousekeeping(context)
  await deleteOutdated(context, new AbortController().signal)
  await createAuditSealer(context)()
  await deliverDue(context)
  await runCertificateWatch(context)
}

/** How much there is of everything that ends some day. */
async function readAll(db: Db): Promise<unknown> {
  const { rows } = await sql`
    select (select count(*) from audit_trail) as audit, (select count(*) from admin_event) as administration,
      (select json_object_agg(state, n) from (select state, count(*) as n from activation group by 1) a) as activations,
      (select json_object_agg(status, n) from (select status, count(*) as n from operation group by 1) o) as operations,
      (select count(*) from temporary_key) as keys, (select count(*) from unique_value) as used,
      (select count(*) from webhook_delivery) as deliveries,
      (select count(*) from pg_inherits where inhparent = 'audit_log'::regclass) as partitions`.execute(db)
  return rows
}

const title =
  serverUrl() === undefined
    ? 'skipped: PAWL_TEST_DATABASE_URL is not set, and the embedded database has no clock of its own'
    : 'processes on one PostgreSQL'

describe.skipIf(serverUrl() === undefined)(title, () => {
  afterAll(endEverything)

  test('with a wrong clock leave all as it is, and follow the clock that is set right', async () => {
    const installation = await createInstallation('postgresql')
    const admin = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
    const shifts: ((ms: number) => void)[] = []
    const startShifted = (ms: number): Promise<PawlProcess> => {
      const file = join(installation.directory, `shift-${shifts.length}`)
      const shift = (to: number): void => writeFileSync(file, String(to))
      shifts.push(shift)
      shift(ms)
      const preload = fileURLToPath(new URL('../helpers/shifted-clock.mjs', import.meta.url))
      return startPawl(installation.env, admin, { NODE_OPTIONS: `--import=${preload}`, SHIFTED_CLOCK_FILE: file })
    }
    const right = await startPawl(installation.env, admin)
    const close = async (): Promise<void> => void (await right.end('SIGTERM'))
    const place = { urls: [right.url], admin: `admin:${ADMIN_PASSWORD}`, advance: () => undefined, close }
    const world = await openWorld(place)
    for (let i = 0; i < 5; i += 1) {
      const { userId } = await world.activePhone('3.3')
      expectOk(await world.bank.createOperation({ userId, template: 'login' }))
      await world.register()
    }
    const client = new Client({ connectionString: installation.env['DATABASE_URL'] ?? '' })
    await client.connect()
    try {
      const read = async (): Promise<unknown> =>
        (
          await client.query(`
            select (select count(*) from audit_trail) as audit, (select count(*) from admin_event) as administration,
              (select count(*) from activation where state = 'REMOVED') as removed,
              (select count(*) from operation where status <> 'PENDING') as ended,
              (select count(*) from pg_inherits where inhparent = 'audit_log'::regclass) as partitions`)
        ).rows
      await expect.poll(async () => (await client.query('select from audit_pending')).rowCount, { timeout: PATIENCE_MS }).toBe(0)
      const before = await read()
      const wrong = await Promise.all([startShifted(800 * DAY), startShifted(-DAY), startShifted(61 * SECOND), startShifted(0)])
      const statuses = () => Promise.all(wrong.map(async ({ url }) => (await readiness(url)).status))
      expect(await statuses()).toEqual([503, 503, 503, 200])
      // Longer than any of them waits between two rounds.
      await sleep(12 * SECOND)
      expect(await read()).toEqual(before)
      // All that was wrong is set right, and what was right is set on.
      shifts.forEach((shift, i) => shift(i === 3 ? 800 * DAY : 0))
      await expect.poll(statuses, { timeout: PATIENCE_MS, interval: 500 }).toEqual([200, 200, 200, 503])
      await sleep(12 * SECOND)
      expect(await read()).toEqual(before)
      for (const { output } of wrong) expect(countOf(output(), 'differ: the process is not ready')).toBe(1)
      const last = await client.query<{ ahead: number }>(
        'select extract(epoch from max(sealed_at) - now())::float8 as ahead from audit_log',
      )
      expect(last.rows[0]?.ahead).toBeLessThan(1)
      expect(expectOk(await world.bank.call('GET', '/admin/audit/verification')).json).toMatchObject({ isIntact: true })
    } finally {
      await client.end()
    }
  }, 180_000)
})
