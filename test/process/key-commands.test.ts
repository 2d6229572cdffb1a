// pawl key list and rotate on an embedded database whose server is stopped.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadInstallationKeys } from '../../src/domain/installation-keys.ts'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { random } from '../../phone/v3/crypto.ts'
import { runCli } from '../helpers/cli.ts'
import { createInstallation, endEverything } from '../helpers/process.ts'

const { dataDir, env } = await createInstallation('embedded')
const [older, newer] = [random(32), random(32)]
const idOf = (key: Uint8Array): string => createRecordKeys([key], platform).keyIds[0]
const give = (...keys: readonly Uint8Array[]): void =>
  writeFileSync(join(dataDir, 'master.key'), keys.map((key) => `${Buffer.from(key).toString('base64')}\n`).join(''), {
    mode: 0o600,
  })

beforeAll(async () => {
  give(older)
  const database = await openDatabase({ dataDir, poolSize: 1 })
  await loadInstallationKeys(database.db, createRecordKeys([older], platform), platform)
  await database.close()
})
afterAll(endEverything)

test('the keys of the installation go from one master key to the next', async () => {
  give(newer, older)
  const before = await runCli(['key', 'list', '--json'], env)
  expect(JSON.parse(before.stdout)).toEqual({
    keys: [
      { keyId: idOf(newer), use: 'seals', values: 0, places: {} },
      { keyId: idOf(older), use: 'opens', values: 6, places: { 'wrapped_key.wrapped_key': 6 } },
    ],
  })
  expect(await runCli(['key', 'rotate'], env)).toEqual({
    code: 0,
    stdout: `6 rows sealed anew under ${idOf(newer)}\n`,
    stderr: '',
  })
  expect((await runCli(['key', 'list'], env)).stdout).toContain(`nothing is under ${idOf(older)}: it may leave the settings\n`)
  give(newer)
  expect((await runCli(['key', 'check'], env)).code).toBe(0)
  expect(await runCli(['key', 'rotate'], env)).toMatchObject({ code: 0, stdout: `0 rows sealed anew under ${idOf(newer)}\n` })
})

test('keys that do not open the database rotate nothing, and are told from those that it needs', async () => {
  give(older)
  expect(await runCli(['key', 'rotate'], env)).toMatchObject({
    stdout: '',
    stderr: expect.stringContaining('none of the master keys'),
  })
  expect((await runCli(['key', 'list'], env)).stdout).toMatch(new RegExp(`${idOf(newer)} +not given +6\n`))
  give(newer)
})

test('records are bound to their users when an operator says so; a rotation waits for it', async () => {
  const BOUND = 'all sealed records are bound to their users\n'
  expect(await runCli(['key', 'bind'], env)).toEqual({ code: 0, stdout: BOUND, stderr: '' })
  const change = async (statement: string): Promise<void> => {
    const database = await openDatabase({ dataDir, poolSize: 1 })
    await sql.raw(statement).execute(database.db)
    await database.close()
  }
  await change(`insert into record_binding (stage) values ('OPEN')`)
  expect(await runCli(['key', 'rotate'], env)).toMatchObject({
    stdout: '',
    stderr: expect.stringContaining('run pawl key bind first'),
  })
  const begun = /^new records are bound to their users; 0 rows are left, which servers seal anew/
  for (let i = 0; i < 2; i += 1) expect((await runCli(['key', 'bind'], env)).stdout).toMatch(begun)
  expect(JSON.parse((await runCli(['key', 'bind', '--json'], env)).stdout)).toEqual({ stage: 'BEGUN', left: 0 })
  expect((await runCli(['key', 'rotate'], env)).code).toBe(0)
  await change(`update record_binding set stage = 'OPEN'`)
  const altered = await runCli(['key', 'bind'], env)
  expect(altered).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^the row of record_binding was altered in the database/),
  })
  await change('delete from record_binding')
  expect((await runCli(['key', 'bind'], env)).stdout).toBe(BOUND)
})
