// pawl import powerauth where two lay claim to one name: two applications of the reference, or the bank, which makes the same in pawl meanwhile.
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { random } from '../../phone/v3/crypto.ts'
import { lockImport } from '../../src/storage/activation/import.ts'
import { inTransaction, type Pool } from '../../src/storage/database/database.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { plainTemplate } from '../helpers/operations.ts'
import { importInto, openOrigin, type Origin } from '../helpers/powerauth-import.ts'
import { createReferenceDatabase, type ReferenceDatabase } from '../helpers/powerauth-server.ts'
import { expectOk } from '../helpers/world.ts'

const MASTER_DB_KEY = random(16)

let origin: Origin
let reference: ReferenceDatabase
let server: TestServer
let bank: Bank

beforeEach(async () => {
  origin = await openOrigin()
  reference = await createReferenceDatabase(origin.database.db, MASTER_DB_KEY)
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
})
afterEach(async () => {
  await server.close()
  await origin.database.close()
  await origin.drop()
})

const runImport = (given: { isDryRun?: boolean; into?: Pick<TestServer, 'context'> } = {}) =>
  importInto({ from: origin.database, into: server, masterDbKey: MASTER_DB_KEY, ...given })

/** The server, where `work` is done just before the first transaction of an import. */
function beforeFirstTransaction(work: () => Promise<unknown>): Pick<TestServer, 'context'> {
  let isDone = false
  const db = new Proxy(server.context.db, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'transaction') return typeof value === 'function' ? (value.bind(target) as unknown) : value
      return () => ({
        execute: async (run: Parameters<ReturnType<Pool['transaction']>['execute']>[0]) => {
          if (!isDone) await work()
          isDone = true
          return target.transaction().execute(run)
        },
      })
    },
  })
  return { context: { ...server.context, db } }
}

test('of two applications of one name the first that can be taken is, and phones and callbacks of the other are left out with it', async () => {
  const { db } = origin.database
  await sql`drop index pa_application_name`.execute(db)
  const { rows } = await sql<Readonly<Record<string, unknown>>>`select * from pa_master_keypair where id = 2`.execute(db)
  for (const [id, name] of [
    [8, 'bank-app'],
    [9, 'other-app'],
    [10, 'other-app'],
  ] as const) {
    await reference.insert('pa_application', { id, name, roles: null })
    // The first other-app has no keys.
    if (id !== 9) await reference.insert('pa_master_keypair', { ...rows[0], id: 100 + id, application_id: id })
  }
  const add = async (application: number, status = 3): Promise<string> => {
    const given = { userId: 'user', row: { application_id: application, activation_status: status } }
    return (await reference.addPhone('3.3', given)).activationId
  }
  const phones = { 7: await add(7, 4), 8: await add(8), 9: await add(9), 10: await add(10, 4) }
  for (const application of Object.keys(phones))
    await reference.insert('pa_application_callback', {
      id: `hook of ${application}`,
      application_id: application,
      callback_url: 'https://bank.example/hook',
      attributes: '[]',
    })
  for (const isDryRun of [true, false, false]) {
    const { tallies, reasonOf } = await runImport({ isDryRun })
    for (const [application, isTaken] of Object.entries({ 7: true, 8: false, 9: false, 10: true })) {
      const expected = isTaken ? undefined : 'its application is left out'
      expect([application, reasonOf(phones[Number(application) as keyof typeof phones])]).toEqual([application, expected])
      expect([application, reasonOf(`hook of ${application}`)]).toEqual([application, expected])
    }
    expect([tallies.activation.leftOut, tallies.webhook.leftOut]).toEqual([2, 2])
  }
})

test('an application that the bank makes meanwhile stays as it is, and nothing of the reference comes into it', async () => {
  await reference.addPhone('3.3')
  const into = beforeFirstTransaction(async () => expectOk(await bank.createApplication('bank-app')))
  const { tallies, reasonOf } = await runImport({ into })
  expect(reasonOf('bank-app')).toMatch('another master key pair')
  for (const kind of ['application', 'version', 'activation'] as const)
    expect([kind, tallies[kind]]).toEqual([kind, { found: 1, imported: 0, alreadyThere: 0, leftOut: 1 }])
  expect(expectOk(await bank.call('GET', '/admin/applications/bank-app')).json).toMatchObject({ responseObject: { roles: [] } })
})

test('a template that the bank writes meanwhile stays as it is', async () => {
  await runImport()
  await reference.insert('pa_operation_template', {
    id: 1,
    template_name: 'mine',
    operation_type: 'theirs',
    data_template: 'A2',
    signature_type: 'possession',
    max_failure_count: 5,
    expiration: 300,
  })
  const into = beforeFirstTransaction(async () => expectOk(await bank.call('POST', '/admin/templates', plainTemplate('mine'))))
  const { tallies } = await runImport({ into })
  expect(tallies.template).toEqual({ found: 1, imported: 0, alreadyThere: 1, leftOut: 0 })
  expect(expectOk(await bank.call('GET', '/admin/templates/mine')).json).toMatchObject({ operationType: 'test' })
})

test('an application whose versions were switched off, here and there, gets no other by a further run', async () => {
  await sql`update pa_application_version set name = '1.0'`.execute(origin.database.db)
  await runImport()
  const { db } = server.context
  const versions = () => db.selectFrom('application_version').select(['name', 'is_supported']).execute()
  expect(await versions()).toEqual([{ name: '1.0', is_supported: true }])
  expectOk(await bank.call('PATCH', '/admin/applications/bank-app/versions/1.0', { isSupported: false }))
  await sql`update pa_application_version set supported = false`.execute(origin.database.db)
  await runImport()
  expect(await versions()).toEqual([{ name: '1.0', is_supported: false }])
})

test('a target that ends transactions waits for an import', async () => {
  await inTransaction(server.context.db, async (tx) => {
    const { rows } = await sql<{ isKnown: boolean }>`
      select set_config(name, '60000', true) is not null as "isKnown" from pg_settings where name = 'transaction_timeout'`.execute(
      tx,
    )
    expect(await lockImport(tx)).toBe(true)
    const { rows: after } = await sql<{
      limit: string | null
    }>`select current_setting('transaction_timeout', true) as limit`.execute(tx)
    // PostgreSQL has it from 17 on.
    expect(after[0]?.limit).toBe(rows[0]?.isKnown === true ? '0' : null)
  })
})
