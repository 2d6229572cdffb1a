// A start on data that is there already: the master key, the administrator's password, a process that has it open, one that was killed.
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Bank } from '../helpers/bank.ts'
import { createBank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import { member } from '../../phone/http.ts'
import type { Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, refusePawl, startPawl } from '../helpers/process.ts'
import { expectOk } from '../helpers/world.ts'

// Several starts a test, and other test files run at the same time.

const ONE_LINE = /^pawl cannot start: [^\n]+\n$/
const REPLACED = 'admin password replaced by the configured one'
const ADMIN = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

describe.each([DATABASE_KIND])('on %s', (kind) => {
  let installation: Installation
  const start = (env = {}): Promise<PawlProcess> => startPawl(installation.env, env)

  beforeAll(async () => {
    installation = await createInstallation(kind)
    const server = await start(ADMIN)
    expectOk(await adminAt(server).createApplication('kept'))
    expectOk(await adminAt(server).register('kept-user'))
    await server.end('SIGTERM')
  })
  afterAll(endEverything)

  test('another master key is refused with one line, and the right one opens everything again', async () => {
    const refused = await withOtherKey(installation)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(ONE_LINE) as unknown })
    expect(refused.stderr).toContain('the master key is not the one this database was written with')
    const server = await start()
    await expectKept(server)
    await server.end('SIGTERM')
  })

  test('the same password of the administrator changes nothing, another replaces it', async () => {
    const same = await start(ADMIN)
    await expectKept(same)
    expect((await same.end('SIGTERM')).stdout).not.toContain(REPLACED)
    const other = await start({ PAWL_ADMIN_PASSWORD: 'another password' })
    expect((await adminAt(other).call('GET', '/admin/users')).status).toBe(401)
    expectOk(await adminAt(other, 'another password').call('GET', '/admin/users'))
    const { stdout } = await other.end('SIGTERM')
    expect(stdout.split('\n').filter((line) => line.includes(REPLACED))).toHaveLength(1)
    expect(stdout).not.toContain('another password')
    const back = await start(ADMIN)
    await expectKept(back)
    await back.end('SIGTERM')
  })

  test('what a killed process leaves opens again at once', async () => {
    const killed = await start()
    expectOk(await adminAt(killed).register('registered before the kill'))
    expect((await killed.end('SIGKILL')).signal).toBe('SIGKILL')
    const server = await start()
    await expectKept(server)
    const view = await adminAt(server).view('registered before the kill')
    expect(member(view.json, 'registration')).toBe('CREATED')
    await server.end('SIGTERM')
  })

  test.runIf(kind === 'embedded')('a second process is refused, the first goes on, and ends within 3 seconds', async () => {
    const startedAt = performance.now()
    const first = await start()
    const startMs = performance.now() - startedAt
    const refused = await refusePawl(installation.env)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(ONE_LINE) as unknown })
    expect(refused.stderr).toContain(`${installation.dataDir} is in use by another pawl process`)
    for (const [line, instead] of [
      ['audit verify', '--online asks a running server'],
      ['template list --local', 'without --local a running server does this'],
      ['webhook list --local', 'without --local a running server does this'],
      ['key check', 'choose another PAWL_DATA_DIR'],
    ] as const) {
      const { code, stderr } = await runCli(line.split(' '), installation.env)
      expect({ line, code, stderr }).toEqual({
        line,
        code: 3,
        stderr: expect.stringMatching(`is in use .*; .*${instead}\n$`) as unknown,
      })
    }
    await expectKept(first)
    expectOk(await adminAt(first).register('registered after the refusal'))
    const since = performance.now()
    expect(await first.end('SIGTERM')).toMatchObject({ code: 0, signal: null, stderr: '' })
    // A start has many times the work of an end: on a machine where it takes longer than that, this one waits for the processor.
    expect(performance.now() - since).toBeLessThan(Math.max(3_000, startMs))
    const next = await start()
    await next.end('SIGTERM')
  })

  test.runIf(kind === 'embedded')('directory and key file are for their owner alone', () => {
    expect(statSync(installation.dataDir).mode & 0o777).toBe(0o700)
    expect(statSync(join(installation.dataDir, 'master.key')).mode & 0o777).toBe(0o600)
  })
})

const adminAt = ({ url }: PawlProcess, password = ADMIN_PASSWORD): Bank => createBank(url, `admin:${password}`)

/** Secrets of the first run open: the application's, and the activation code. */
async function expectKept(server: PawlProcess): Promise<void> {
  expectOk(await adminAt(server).call('GET', '/admin/application?id=kept'))
  expect(expectOk(await adminAt(server).view('kept-user')).json).toMatchObject({ registration: 'CREATED' })
}

/** Starts with a key of the right form that is not the installation's; puts the right one back. */
async function withOtherKey({ kind, env, dataDir }: Installation): ReturnType<typeof refusePawl> {
  const other = randomBytes(32).toString('base64')
  if (kind === 'postgresql') return refusePawl(env, { PAWL_MASTER_KEY: other })
  const path = join(dataDir, 'master.key')
  const own = readFileSync(path)
  writeFileSync(path, `${other}\n`)
  try {
    return await refusePawl(env)
  } finally {
    writeFileSync(path, own)
  }
}
