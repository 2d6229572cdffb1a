// pawl backup and pawl restore: the embedded database out of a server under load, or out of its directory, and into another one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import type { HttpRequest } from '../../phone/http.ts'
import { createBank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Installation,
  refusePawl,
  startNode,
  startPawl,
} from '../helpers/process.ts'
import { activatePhones, openApplication, replay, runLoad } from '../helpers/recorded-load.ts'
import { expectOk } from '../helpers/world.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

afterEach(endEverything)

const ADMIN = `admin:${ADMIN_PASSWORD}`
const ENV = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

interface Place {
  readonly env: Readonly<Record<string, string>>
  readonly file: string
  /** Where the backup goes, and the settings of a server there. */
  readonly dataDir: string
  readonly restored: Readonly<Record<string, string>>
  /** Puts the master key where a server looks for it. */
  readonly putKey: () => void
}

async function openPlace(): Promise<Place> {
  const installation: Installation = await createInstallation('embedded')
  const dataDir = join(installation.directory, 'restored')
  return {
    env: installation.env,
    file: join(installation.directory, 'pawl.backup'),
    dataDir,
    restored: { PAWL_DATA_DIR: dataDir },
    putKey: () => copyFileSync(join(installation.dataDir, 'master.key'), join(dataDir, 'master.key')),
  }
}

test('of a server under load: what it had answered is there, and none of its codes passes again', async () => {
  const { env, file, restored, putKey } = await openPlace()
  const server = await startPawl(env, ENV)
  const { bank } = await openApplication(server.url, ADMIN, 'load')
  const phones = await activatePhones(createBank(server.url, ADMIN), bank, 'load', 4)
  const answered: HttpRequest[] = []
  const state = { isOver: false }
  const load = runLoad(phones, { url: server.url, isOver: () => state.isOver, record: (request) => answered.push(request) })
  await vi.waitFor(() => expect(answered.length).toBeGreaterThan(40), { timeout: PATIENCE_MS })
  const before = answered.length
  const taken = await runCli(['backup', file, '--json'], env)
  const after = answered.length
  state.isOver = true
  expect((await load).refused).toEqual([])
  expect(JSON.parse(taken.stdout)).toEqual({ file, bytes: statSync(file).size })
  expect(after, 'answered while the backup was made').toBeGreaterThan(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await server.end('SIGTERM')

  expect(await runCli(['restore', file], restored)).toMatchObject({ code: 0, stdout: expect.stringContaining('master.key') })
  putKey()
  const again = await startPawl(restored, ENV)
  const requests = answered.slice(0, before)
  expect(await replay(again.url, requests)).toEqual({ replayed: before, refused: before, accepted: [], otherwise: [] })
  const there = bank.as(bank.credential, again.url)
  for (const { userId } of phones) expectOk(await there.view(userId))
  await again.end('SIGTERM')
  expect(await runCli(['audit', 'verify'], restored)).toMatchObject({ code: 0 })
})

test('of a stopped server: phones go on, with the master key and with no other', async () => {
  const { env, file, dataDir, restored, putKey } = await openPlace()
  const server = await startPawl(env, ENV)
  const { bank } = await openApplication(server.url, ADMIN, 'load')
  const [load] = await activatePhones(createBank(server.url, ADMIN), bank, 'load', 1)
  await server.end('SIGTERM')
  expect(await runCli(['backup', file], env)).toMatchObject({ code: 0 })
  expect(await runCli(['restore', file], restored)).toMatchObject({ code: 0 })
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)

  // Neither a start nor a command makes a key that would lie where the right one belongs.
  expect((await refusePawl(restored)).stderr).toContain('is missing; put')
  expect((await runCli(['key', 'check'], restored)).code).not.toBe(0)
  expect(readdirSync(dataDir)).toEqual(['database'])
  writeFileSync(join(dataDir, 'master.key'), Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 })
  expect((await refusePawl(restored)).stderr).toContain('master key')
  putKey()
  const again = await startPawl(restored, ENV)
  const phone = load?.phone.speaking({ url: again.url })
  if (phone === undefined) throw new Error('no phone')
  expectOk(await phone.send(phone.prepareValidation()))
})

test('nothing is written over, and what is no backup leaves nothing behind', async () => {
  const { env, file, dataDir, restored } = await openPlace()
  expect(await runCli(['backup', file], env)).toMatchObject({ code: 0 })
  // Told before the copy is made: a database that no process has opened stays as it is.
  mkdirSync(join(dataDir, 'database'), { recursive: true, mode: 0o700 })
  expect(await runCli(['backup', file], restored)).toEqual({
    code: 2,
    stdout: '',
    stderr: `there is ${file} already, and nothing is written over: give another name\n`,
  })
  expect(await runCli(['backup', join(dataDir, 'none', 'file')], restored)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^\S+file cannot be written \(ENOENT: [^\n]+\): give another name\n$/) as unknown,
  })
  expect(readdirSync(dataDir, { recursive: true })).toEqual(['database'])
  rmSync(dataDir, { recursive: true })
  expect(await runCli(['restore', file], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^there is a database in [^\n]+ already; choose another PAWL_DATA_DIR\n$/) as unknown,
  })
  const half = `${file}.half`
  copyFileSync(file, half)
  truncateSync(half, Math.floor(statSync(file).size / 2))
  expect(await runCli(['restore', half], restored)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /no database can be made of the backup \(Z_BUF_ERROR\); look at .*: unexpected end of file\n$/,
    ) as unknown,
  })
  expect(await runCli(['restore', file], restored)).toMatchObject({ code: 0 })
  expect(await runCli(['restore', join(dataDir, 'none')], restored)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^the backup: \S+none does not exist\n$/) as unknown,
  })
})

test('a disk that has no room for all of it is told, and no half backup stays', async () => {
  const { env, file } = await openPlace()
  await startPawl(env, ENV)
  // The kernel takes the first 500 kB, as a disk does that gets full meanwhile. What is larger than that is the backup alone.
  const limited = spawn('sh', ['-c', `ulimit -f 1000; exec '${process.execPath}' bin/pawl.mjs backup '${file}'`], {
    env: { PATH: process.env['PATH'], NODE_DISABLE_COMPILE_CACHE: '1', ...env },
    stdio: 'ignore',
  })
  expect(await once(limited, 'exit')).toEqual([6, null])
  expect(existsSync(file)).toBe(false)
})

test('a restore that is killed leaves no database, and is begun anew', async () => {
  const { env, file, dataDir, restored, putKey } = await openPlace()
  await (await startPawl(env, ENV)).end('SIGTERM')
  expect(await runCli(['backup', file], env)).toMatchObject({ code: 0 })
  const killed = startNode(['bin/pawl.mjs', 'restore', file], restored)
  const files = () => (existsSync(dataDir) ? readdirSync(dataDir, { recursive: true }).length : 0)
  await vi.waitFor(() => expect(files()).toBeGreaterThan(100), { timeout: PATIENCE_MS, interval: 5 })
  expect(await killed.end('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })
  expect(await runCli(['restore', file], restored)).toMatchObject({ code: 0 })
  putKey()
  await (await startPawl(restored, ENV)).end('SIGTERM')
})

test('where there is no embedded database, it says so', async () => {
  const { file, dataDir } = await openPlace()
  mkdirSync(dataDir, { mode: 0o700 })
  expect((await runCli(['backup', file], { PAWL_DATA_DIR: dataDir })).stderr).toContain('there is no database')
  const env = { DATABASE_URL: 'postgres://pawl@db/pawl', PAWL_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
  for (const word of ['backup', 'restore']) expect((await runCli([word, file], env)).stderr).toContain('pg_basebackup')
})
