// pawl key rotate as operators run it, on PostgreSQL beside two servers under load: killed in the middle, run again, and no call fails.
// PAWL_TEST_ROTATION_ROWS=100000 for as many activations; without it fewer, because each run fills the database anew.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRecordKeys, type MasterKeys } from '../../src/domain/secrets/record-keys.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import { countByKey } from '../../src/storage/secrets/sealed-columns.ts'
import { random } from '../../phone/v3/crypto.ts'
import { createPostgresDatabase, type PostgresDatabase, serverUrl, startTestServer, type TestServer } from '../helpers/app.ts'
import { runAll } from '../helpers/hostile.ts'
import { insertActivations } from '../helpers/sealed-rows.ts'
import { openWorldOn, type World } from '../helpers/world.ts'

const ROWS = Number(process.env['PAWL_TEST_ROTATION_ROWS'] || 2_000)
const MINUTES = 15
const [older, newer] = [random(32), random(32)]
const PAWL = fileURLToPath(new URL('../../bin/pawl.mjs', import.meta.url))

describe.skipIf(serverUrl() === undefined)('a rotation beside servers', () => {
  let shared: PostgresDatabase
  const servers: TestServer[] = []
  const start = async (masterKeys: MasterKeys): Promise<World> => {
    const server = await startTestServer({ databaseUrl: shared.databaseUrl, masterKeys })
    servers.push(server)
    return openWorldOn(server)
  }
  beforeAll(async () => {
    shared = await createPostgresDatabase()
  })
  afterAll(async () => {
    for (const server of servers) await server.close()
    await shared.drop()
  })

  /** Kills it once `kill` resolves. */
  async function rotate(kill?: Promise<unknown>): Promise<{ code: number | null; stdout: string; seconds: number }> {
    const keys = [newer, older].map((key) => Buffer.from(key).toString('base64')).join(',')
    const env = { PATH: process.env['PATH'], DATABASE_URL: shared.databaseUrl, PAWL_MASTER_KEY: keys }
    const startedAt = performance.now()
    const child = spawn(process.execPath, [PAWL, 'key', 'rotate', '--json'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    let stdout = ''
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    void kill?.then(() => child.kill('SIGKILL'))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, stdout, seconds: (performance.now() - startedAt) / 1000 }
  }

  /** Whoever writes the row of an activation waits there until `release`. */
  async function stopAt(activationId: string) {
    await runAll(shared.adminUrl, [
      `create function stand_still() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$`,
      `create trigger stand_still before update on activation for each row when (old.activation_id = '${activationId}')
        execute function stand_still()`,
    ])
    const holder = new Client({ connectionString: shared.adminUrl })
    await holder.connect()
    await holder.query('select pg_advisory_lock(1)')
    const findWaiting = () => holder.query(`select from pg_locks where locktype = 'advisory' and objid = 1 and not granted`)
    return {
      isReached: () => expect.poll(async () => (await findWaiting()).rowCount).toBe(1),
      release: () => holder.end(),
    }
  }

  const countOld = async (): Promise<number> => {
    const counts = await countByKey(servers[0]?.context.db ?? fail())
    const oldId = createRecordKeys([older], platform).keyIds[0]
    return counts.filter(({ keyId }) => keyId === oldId).reduce((sum, { values }) => sum + values, 0)
  }

  test(`${ROWS} activations`, { timeout: MINUTES * 60_000 }, async () => {
    const before = await start([older, newer])
    const phones = await Promise.all(
      (['3.3', '3.2', '3.1', '3.3'] as const).map(async (version) => (await before.activePhone(version)).phone),
    )
    const ids = await insertActivations(servers[0]?.context.db ?? fail(), createRecordKeys([older], platform), ROWS)
    const urls = [before.url]
    const after = await start([newer, older])
    urls.push((await start([newer, older])).url)
    urls[0] = after.url
    await servers.shift()?.close()

    const calls = { sent: 0, failed: [] as string[] }
    const state = { isOver: false }
    const load = Promise.all(
      phones.map(async (phone, index) => {
        for (let turn = index; !state.isOver; turn += 1) {
          calls.sent += 1
          const reply = await phone.send(phone.prepareValidation({ body: `pay ${turn}` }), urls[turn % 2])
          if (reply.status !== 200) calls.failed.push(`${reply.status} ${reply.text}`)
          await sleep(PAUSE_MS)
        }
      }),
    )
    const total = await countOld()
    const middle = await stopAt(ids.toSorted()[Math.floor(ROWS / 2)] ?? fail())
    const killed = await rotate(middle.isReached())
    await middle.release()
    const left = await countOld()
    const ended = await rotate()
    state.isOver = true
    await load

    expect(killed).toMatchObject({ code: null, stdout: '' })
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(total)
    expect({ code: ended.code, ...(JSON.parse(ended.stdout) as object) }).toMatchObject({ code: 0, left: 0, unopened: [] })
    expect(await countOld()).toBe(0)
    expect(calls.failed).toEqual([])
    expect(servers.map((server) => server.log()).join('')).not.toMatch(/"level":(?:50|60)|"level":"(?:error|fatal)"/)
    console.info(
      `rotation: ${total} values, killed at ${left} left after ${killed.seconds.toFixed(1)} s, then ${ended.seconds.toFixed(1)} s; ${calls.sent} signed calls, 0 failed`,
    )
  })
})

const fail = (): never => {
  throw new Error('no server')
}

const PAUSE_MS = 20
