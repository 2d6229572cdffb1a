// A database is put back from a backup that is older than codes which were accepted. Fenced, it accepts none of them, and phones come back
// as docs/OPERATIONS.md tells it.
import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { newestBin } from '../../bench/http/postgres.ts'
import { ctrDataHash } from '../../phone/v3/crypto.ts'
import { type HttpRequest, member, send } from '../../phone/http.ts'
import { keysOf } from '../../phone/v3/state.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { fenceActivations } from '../../src/domain/activation/fence.ts'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import { v3 } from '../../src/protocol/v3/index.ts'
import { v4 } from '../../src/protocol/v4/index.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { type CliEnd, runCli } from '../helpers/cli.ts'
import { HOUR, MINUTE } from '../helpers/expectations.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Environment,
  type Installation,
  type PawlProcess,
  runNode,
  startPawl,
} from '../helpers/process.ts'
import { activatePhones, openApplication, replay } from '../helpers/recorded-load.ts'
import { activatePhonesV4 } from '../helpers/recorded-load-v4.ts'
import { expectOk } from '../helpers/world.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 240_000 })

afterEach(endEverything)

const ADMIN = `admin:${ADMIN_PASSWORD}`
/** Codes that each phone makes after the backup: none, fewer than the look-ahead, as many, and more. */
const FORGOTTEN = [0, 3, 19, 30]
const FEW = [0, 3, 19, 19]

interface Restored {
  readonly installation: Installation
  readonly server: PawlProcess
  readonly bank: Bank
  readonly users: readonly string[]
  readonly phones: readonly VirtualPhone[]
  /** Accepted before the restore and forgotten by it, oldest first. */
  readonly forgotten: readonly HttpRequest[]
  readonly ended: readonly CliEnd[]
}

/** Phones of 3.x and one of 4.0, a backup, `codes` codes of each phone, the backup put back, and what `fence` does then. */
async function restore(
  codes: readonly number[],
  fence: (env: Environment, since: number) => Promise<readonly CliEnd[]>,
): Promise<Restored> {
  const installation = await createInstallation(DATABASE_KIND)
  // Otherwise a phone has used up the wrong codes of its minute when all is sent again.
  const start = () => startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_CODE_FAILURES_PER_MINUTE: '1000' })
  let server = await start()
  const { bank } = await openApplication(server.url, ADMIN, 'load')
  const phones = await activatePhones(createBank(server.url, ADMIN), bank, 'load', codes.length)
  const [recent] = await activatePhonesV4(createBank(server.url, ADMIN), bank, 'load', 1)
  if (recent === undefined) throw new Error('no phone of 4.0')
  for (const { phone } of phones) expectOk(await phone.send(phone.prepareValidation()))
  await server.end('SIGTERM')
  const putBack = backUp(installation)
  const since = Date.now()
  server = await start()
  const forgotten: HttpRequest[] = []
  const sendOne = async (request: HttpRequest, url: string): Promise<void> => {
    expectOk(await send(url, request))
    forgotten.push(request)
  }
  for (const [index, { phone }] of phones.entries()) {
    for (let i = 0; i < (codes[index] ?? 0); i += 1) {
      await sendOne(
        phone.prepareValidation({ body: `pay ${i}`, factors: i % 2 === 0 ? 'possession' : 'possession_knowledge' }),
        server.url,
      )
    }
  }
  for (let i = 0; i < 5; i += 1) await sendOne(recent.phone.prepareValidation({ body: `pay ${i}` }), server.url)
  await server.end('SIGTERM')
  putBack()
  const ended = await fence(installation.env, since)
  server = await start()
  return {
    installation,
    server,
    bank: bank.as(bank.credential, server.url),
    users: [...phones, recent].map(({ userId }) => userId),
    phones: phones.map(({ phone }) => phone.speaking({ url: server.url })),
    forgotten,
    ended,
  }
}

/** A backup of a stopped installation; what it returns puts it back. */
function backUp({ kind, adminUrl = '', dataDir, directory }: Installation): () => void {
  const copy = join(directory, 'backup')
  if (kind === 'embedded') {
    cpSync(dataDir, copy, { recursive: true })
    return () => {
      rmSync(dataDir, { recursive: true })
      cpSync(copy, dataDir, { recursive: true })
    }
  }
  const run = (program: string, ...args: string[]) => execFileSync(join(newestBin(), program), args, { stdio: 'pipe' })
  run('pg_dump', '--format=custom', `--file=${copy}`, adminUrl)
  return () => run('pg_restore', '--clean', '--if-exists', '--single-transaction', `--dbname=${adminUrl}`, copy)
}

const fenceBy =
  (...options: string[]) =>
  async (env: Environment, since: number) => [
    await runCli(['registration', 'fence', '--since', String(since), '--json', ...options], env),
  ]

/** Fences two registrations, as a command that was ended meanwhile. */
async function fenceTwo(env: Environment, since: number): Promise<void> {
  const database = await openDatabase({ databaseUrl: env['DATABASE_URL'], dataDir: env['PAWL_DATA_DIR'] ?? '', poolSize: 2 })
  const masterKey = env['PAWL_MASTER_KEY'] ?? readFileSync(join(env['PAWL_DATA_DIR'] ?? '', 'master.key'), 'utf8')
  const parts = {
    db: database.db,
    recordKeys: createRecordKeys([Buffer.from(masterKey, 'base64')], platform),
    platform,
    advanceCounter: (version: number, ctrData: Uint8Array) => (version === 3 ? v3 : v4).advanceCounter(ctrData),
  }
  const end = (): never => {
    throw new Error('ended')
  }
  await expect(fenceActivations(parts, { since: new Date(since), steps: 19, blocks: true }, end, 2)).rejects.toThrow('ended')
  await database.close()
}

/** Alters the counter data of one registration in the database, so that it opens under no key; gives its id. */
async function spoilOne(env: Environment): Promise<string> {
  const { db, close } = await openDatabase({
    databaseUrl: env['DATABASE_URL'],
    dataDir: env['PAWL_DATA_DIR'] ?? '',
    poolSize: 2,
  })
  const { rows } = await sql<{ activationId: string }>`
    update activation set ctr_data = set_byte(ctr_data, 20, get_byte(ctr_data, 20) # 1)
    where activation_id = (select min(activation_id) from activation) returning activation_id as "activationId"`.execute(db)
  await close()
  return rows[0]?.activationId ?? ''
}

/** As a published SDK does: finds the server within the look-ahead that the status tells, and goes on from there. */
async function synchronize(phone: VirtualPhone): Promise<void> {
  const { lookAhead, ctrDataHash: hash } = await phone.readStatus({ withChallenge: true })
  const probe = phone.speaking({})
  const before = phone.state.ctrData
  for (let steps = 0; steps < lookAhead; steps += 1) {
    if (Buffer.compare(ctrDataHash(keysOf(phone.state), phone.state.ctrData), hash) === 0) return
    probe.skip(1)
  }
  phone.state.ctrData = before
}

describe(`on ${DATABASE_KIND}`, () => {
  test('without a fence, a restored database accepts what it has forgotten', async () => {
    const { server, forgotten } = await restore([1], async () => [])
    expect((await replay(server.url, forgotten.slice(0, 1))).accepted).toHaveLength(1)
  })

  test('a fence accepts nothing, blocks until the bank unblocks, and goes on where it was ended', async () => {
    const { installation, server, bank, users, phones, forgotten, ended } = await restore(FORGOTTEN, async (env, since) => {
      await fenceTwo(env, since)
      return [...(await fenceBy()(env, since)), ...(await fenceBy()(env, since))]
    })
    const fenced = { fenced: users.length - 2, blocked: users.length - 2, removed: 0, steps: 19, unopened: [] }
    expect(ended.map(({ stdout }) => JSON.parse(stdout) as unknown)).toEqual([fenced, { ...fenced, fenced: 0, blocked: 0 }])
    expect(forgotten.length).toBeGreaterThan(50)
    // It sends the newest of what it is given first: once so, and once the oldest first.
    for (const requests of [forgotten.toReversed(), forgotten]) {
      expect(await replay(server.url, requests)).toMatchObject({ accepted: [], refused: forgotten.length, otherwise: [] })
    }
    for (const userId of users) {
      const { items } = expectOk(await bank.call('GET', `/audit/log?userId=${userId}`)).json as {
        items: { eventType: string; eventData: string }[]
      }
      const rows = items.filter(({ eventType }) => eventType === 'registration_fenced')
      expect(rows.map(({ eventData }) => eventData)).toEqual(['{"steps":19,"blocks":true}'])
      expect(member(expectOk(await bank.view(userId)).json, 'registration')).toBe('BLOCKED')
      expectOk(await bank.change(userId, 'UNBLOCK'))
    }
    // 3.0 has no counter in its status, so the first phone is bound anew; all others go on, wherever they were.
    for (const phone of phones.slice(1)) {
      await synchronize(phone)
      expectOk(await phone.send(phone.prepareValidation()))
    }
    await server.end('SIGTERM')
    expect(await runCli(['audit', 'verify'], installation.env)).toMatchObject({ code: 0 })
  })

  test('a fence that keeps registrations active accepts nothing where few codes were forgotten, and phones go on by themselves', async () => {
    const { server, phones, forgotten, ended, users } = await restore(FEW, fenceBy('--keep-active'))
    expect(ended.map(({ stdout }) => JSON.parse(stdout) as unknown)).toEqual([
      { fenced: users.length, blocked: 0, removed: 0, steps: 19, unopened: [] },
    ])
    for (const phone of phones.slice(1)) {
      await synchronize(phone)
      expectOk(await phone.send(phone.prepareValidation()))
    }
    expect(await replay(server.url, forgotten.toReversed())).toMatchObject({ accepted: [], refused: forgotten.length })
  })

  test('a registration whose counter does not open is named each time, the others are fenced, and the exit code is 1', async () => {
    const spoiled: string[] = []
    const { ended, users } = await restore([0, 0], async (env, since) => {
      spoiled.push(await spoilOne(env))
      return [...(await fenceBy()(env, since)), await runCli(['registration', 'fence', '--since', String(since)], env)]
    })
    const [first, again] = ended
    expect([first?.code, JSON.parse(first?.stdout ?? '')]).toEqual([
      1,
      { fenced: users.length - 1, blocked: users.length - 1, removed: 0, steps: 19, unopened: spoiled },
    ])
    expect(again).toEqual({
      code: 1,
      stdout:
        '0 registrations moved on by 19 codes, 0 of them blocked\n0 registrations removed that waited for a phone\n' +
        `registration ${spoiled[0]} is not fenced: its counter opens under none of the keys\n`,
      stderr: '',
    })
  })
})

test.each([
  [['registration', 'fence'], '--since is needed'],
  [['registration', 'fence', '--since', '1796990400'], '--since is 1970-01-21T19:09:50.400Z: give milliseconds'],
])('%j is refused', async (words, message) => {
  const { code, stderr } = await runCli(words, {})
  expect(code).not.toBe(0)
  expect(stderr).toContain(message)
})

test('the future begins where the clock of the database is, whatever that of the machine says', async () => {
  const { env, directory } = await createInstallation(DATABASE_KIND)
  const file = join(directory, 'shift')
  const preload = fileURLToPath(new URL('../helpers/shifted-clock.mjs', import.meta.url))
  const fence = async (ms: number, since: number): Promise<string> => {
    writeFileSync(file, String(ms))
    const clock = { NODE_OPTIONS: `--import=${preload}`, SHIFTED_CLOCK_FILE: file }
    const words = ['bin/pawl.mjs', 'registration', 'fence', '--since', String(since)]
    const { code, stdout, stderr } = await runNode(words, { ...env, ...clock })
    return `${code} ${stdout}${stderr}`
  }
  const day = 24 * HOUR
  expect(await fence(0, Date.now() + HOUR)).toMatch(/^2 --since is in the future/)
  if (DATABASE_KIND === 'embedded') return
  expect(await fence(day, Date.now() + HOUR)).toMatch(
    /^2 the clock of this machine is 86400 s ahead .+\n--since is in the future/,
  )
  expect(await fence(-day, Date.now() - MINUTE)).toMatch(/^0 0 registrations moved on/)
})
