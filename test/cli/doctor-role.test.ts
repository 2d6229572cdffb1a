// pawl doctor on PostgreSQL: what the role that serves may not read and write.
import { expect, test } from 'vitest'
import { examine } from '../../cli/doctor/doctor.ts'
import type { Instruments } from '../../cli/doctor/finding.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { createPostgresDatabase, serverUrl } from '../helpers/app.ts'
import { runAll, urlOf } from '../helpers/hostile.ts'

const ENV = { PAWL_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), PAWL_PORT: '1' }
/** Stands for what is not the database. */
const NETWORK: Omit<Instruments, 'env' | 'open'> = {
  now: Date.now,
  findPooler: async () => ({ pooler: 'none', hasTimeLimit: true }),
  writableBytes: async () => 2 ** 40,
  connect: async () => undefined,
  readCertificate: async () => ({ expiresAt: new Date('2099-01-01'), chainProblem: undefined }),
}

test.skipIf(serverUrl() === undefined)('every check of a PostgreSQL that is not opened is said to be skipped', async () => {
  const place = await createPostgresDatabase()
  const { databaseUrl } = place
  const find = (open: Instruments['open']) => examine({ ...NETWORK, env: { ...ENV, DATABASE_URL: databaseUrl }, open })
  const opened = await find(() => openDatabase({ databaseUrl, dataDir: '', poolSize: 2 }))
  const skipped = (await find(() => Promise.reject(new Error('away')))).filter(({ state }) => state === 'skipped')
  const names = skipped.map(({ check }) => check)
  // Not of the database. Findings of the check of the server have names of their own.
  const others = ['settings', 'pooler', 'database', 'public URL', 'commits']
  expect(new Set(names)).toEqual(
    new Set([...opened.map(({ check }) => check), 'server'].filter((name) => !others.includes(name))),
  )
  await place.drop()
})

test.skipIf(serverUrl() === undefined)(
  'tables that the role may not write are named, with the statement that mends it',
  async () => {
    const place = await createPostgresDatabase()
    const role = `pawl_test_clerk_${process.pid}`
    const databaseUrl = urlOf(place.adminUrl, { role, password: 'p' })
    const open = () => openDatabase({ databaseUrl, dataDir: '', poolSize: 2 })
    const find = async () =>
      (await examine({ ...NETWORK, env: { ...ENV, DATABASE_URL: databaseUrl }, open })).filter(({ check }) => check === 'role')
    const good = [{ check: 'role', state: 'ok', says: `the role ${role} may read and write every table` }]
    try {
      await runAll(place.adminUrl, [
        `create role ${role} login password 'p'`,
        `do $$ begin execute format('grant usage on schema %I to ${role}', current_schema()); end $$`,
        `do $$ begin execute format('grant all on all tables in schema %I to ${role}', current_schema()); end $$`,
      ])
      expect(await find()).toEqual(good)
      await runAll(place.adminUrl, [`revoke update on activation from ${role}`, `revoke insert on audit_pending from ${role}`])
      const [found] = await find()
      expect(found).toMatchObject({ state: 'fault', says: `the role ${role} may not read and write activation, audit_pending` })
      await runAll(place.adminUrl, [found?.todo ?? ''])
      expect(await find()).toEqual(good)
      await runAll(place.adminUrl, [`revoke all on registration, audit_trail, token from ${role}`])
      const [unread] = await find()
      const says = `the role ${role} may not read and write token, nor read audit_trail, registration`
      const todo = `grant select, insert, update, delete on token to ${role}; grant select on audit_trail, registration to ${role}`
      expect(unread).toMatchObject({ state: 'fault', says, todo })
      await runAll(place.adminUrl, [todo])
      expect(await find()).toEqual(good)
    } finally {
      await place.drop()
      await runAll(serverUrl() ?? '', [`drop role if exists ${role}`])
    }
  },
)
