// pawl audit verify as an operator runs it: what it prints, how it ends, and the heads that are kept elsewhere (cloud §7).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Db, openDatabase } from '../../src/storage/database/database.ts'
import { createBank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, runNode, startPawl } from '../helpers/process.ts'
import type { Installation } from '../helpers/process.ts'
import { expectOk } from '../helpers/world.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

// Several starts a test, and other test files run at the same time.

describe.each([DATABASE_KIND])('on %s', (kind) => {
  let installation: Installation
  const verify = (...args: string[]) => runCli(['audit', 'verify', ...args], installation.env)
  const change = async (work: (db: Db) => Promise<unknown>): Promise<void> => {
    const { db, close } = await openDatabase({
      databaseUrl: installation.env['DATABASE_URL'],
      dataDir: installation.dataDir,
      poolSize: 1,
    })
    try {
      await work(db)
    } finally {
      await close()
    }
  }

  beforeAll(async () => {
    installation = await createInstallation(kind)
    const server = await startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
    const bank = createBank(server.url, `admin:${ADMIN_PASSWORD}`)
    expectOk(await bank.createApplication('my-app'))
    expectOk(await bank.register('alice'))
    const verification = async (): Promise<string> => expectOk(await bank.call('GET', '/admin/audit/verification')).text
    const isSealed = /application:my-app","isIntact":true,"sealed":1,"unsealed":0/
    await vi.waitFor(async () => expect(await verification()).toMatch(isSealed), { timeout: PATIENCE_MS, interval: 100 })
    await server.end('SIGTERM')
  })
  afterAll(endEverything)

  test('an intact log ends with 0 and prints heads that can be given back', async () => {
    const first = await verify()
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(await runNode(['bin/pawl.mjs', 'audit', 'verify'], installation.env)).toMatchObject(first)
    expect(first.stdout).toContain('application:my-app: 1 sealed, 0 not yet\n')
    expect(first.stdout).toMatch(/the audit log is intact\n$/)
    const heads = [...first.stdout.matchAll(/^ {2}head (\S+)$/gm)].map(([, head = '']) => head)
    expect(heads).toHaveLength(2)
    expect(await verify(...heads.flatMap((head) => ['--expect-head', head]))).toMatchObject({ code: 0, stdout: first.stdout })
    const longer = await verify('--expect-head', `application:my-app=9:${'0'.repeat(64)}`)
    expect(longer.code).toBe(1)
    expect(longer.stdout).toContain('BROKEN: the chain ends before the noted head (position 9)')
  })

  test('an altered log ends with 1 and names the row', async () => {
    await change((db) => sql`update audit_log set user_id = 'bob'`.execute(db))
    const altered = await verify()
    expect(altered.code).toBe(1)
    expect(altered.stdout).toContain('BROKEN: the row was changed or moved (position 1, sequence 1)')
    await change((db) => sql`update audit_log set user_id = 'alice'`.execute(db))
    expect((await verify()).code).toBe(0)
  })

  test.each(['my-app', 'my-app=1', 'my-app=x:00', `my-app=1:${'g'.repeat(64)}`])('%j is no head', async (head) => {
    expect(await verify('--expect-head', head)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(head) as unknown,
    })
  })

  test('a user is given out and erased, and the log verifies with the heads of before', async () => {
    const run = (...args: string[]) => runCli(['user', ...args], installation.env)
    const [, head = ''] = /^ {2}head (application:\S+)$/m.exec((await verify()).stdout) ?? []
    const given = await run('export', 'alice')
    expect(given).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(given.stdout)).toMatchObject({ userId: 'alice', registrations: [{ state: 'CREATED' }], audit: [{}] })
    expect(await run('erase', 'alice')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('--yes') as unknown,
    })
    const erased = await run('erase', 'alice', '--yes', '--json')
    expect(JSON.parse(erased.stdout)).toMatchObject({ registrations: 1, auditRows: 1 })
    expect(JSON.parse((await run('export', 'alice')).stdout)).toMatchObject({ registrations: [], audit: [], administration: [] })
    expect(await verify('--expect-head', head)).toMatchObject({ code: 0, stderr: '' })
  })
})

test('no database, or a wrong key, is said in one line', async () => {
  const installation = await createInstallation('embedded', { isEmpty: true })
  const ended = await runCli(['audit', 'verify'], installation.env)
  expect(ended).toMatchObject({ code: 3, stdout: '', stderr: `there is no database in ${installation.dataDir}\n` })
})
