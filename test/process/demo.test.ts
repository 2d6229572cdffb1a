// scripts/demo.ts as a newcomer runs it: what it prints can be pasted, the payments are approved, and the phone goes on approving.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { member } from '../../phone/http.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4-crypto.ts'
import { createBank } from '../helpers/bank.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, runNode, startPawl } from '../helpers/process.ts'
import { expectOk, startWorld, type World } from '../helpers/world.ts'

// Other test files run at the same time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const runFile = promisify(execFile)

let world: World
const directory = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
const file = join(directory, 'phones', 'phone.json')
beforeAll(async () => {
  world = await startWorld()
})
afterAll(async () => {
  await world.close()
  await endEverything()
  rmSync(directory, { recursive: true, force: true })
})

const admin = (): string => world.bank.credential ?? ''
const demo = (...args: readonly string[]) =>
  runNode(['scripts/demo.ts', '--url', world.url, '--admin', admin(), '--phone', file, ...args])
const paste = async (command: string): Promise<string> =>
  (await runFile('bash', ['-c', `${command} --silent`], { env: { ...process.env, ADMIN: admin() } })).stdout

// One user for all: each demo removes the phone of the one before.
describe.each(['3.3', ...PHONE_ALGORITHMS])('a phone of %s', (name) => {
  const isOf3 = name === '3.3'
  let lines: readonly string[] = []
  beforeAll(async () => {
    const { code, stdout, stderr } = await demo(...(isOf3 ? [] : ['--algorithm', name]))
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    lines = stdout.split('\n')
  })

  test('signs a request that is good once', async () => {
    expect(lines).toContain('The phone signs a request and sends it: HTTP 200 {"status":"OK"}')
    const command = lines.find((line) => line.startsWith('curl ')) ?? ''
    expect(command).toContain(isOf3 ? '/pa/v3/signature/validate' : '/pa/v4/auth/validate')
    expect(await paste(command)).toBe('{"status":"OK"}\n')
    expect(await paste(command)).toContain('ERR_AUTHENTICATION')
  })

  test('approves a payment that it shows, and another without a connection', async () => {
    const shown = lines.slice(lines.indexOf('The phone lists it, and shows its user:') + 2)
    expect(shown.slice(0, 4).map((line) => line.replace(/ +/g, ' ').trim())).toEqual([
      '| Payment |',
      '| Please confirm the payment |',
      '| Amount €10.00 |',
      '| To account DE89370400440532013000 |',
    ])
    expect(lines.filter((line) => line.includes('"status":"PENDING"'))).toHaveLength(2)
    expect(lines.filter((line) => line.includes('"status":"APPROVED"'))).toHaveLength(2)
  })

  test("the bank's steps are commands that work", async () => {
    const commands = lines.map((line) => line.trim()).filter((line) => line.startsWith('curl ') && line.includes('"$ADMIN"'))
    const paths = commands.map((command) => new URL(/http:[^']+/.exec(command)?.[0] ?? '').pathname)
    for (const path of [
      '/registration',
      '/registration/commit',
      '/operations',
      '/operations/offline/qr',
      '/operations/offline/otp',
    ])
      expect(paths).toContain(path)
    const reads = commands.filter((command) => command.includes('/operations?') || command.includes('/registration?'))
    for (const command of reads.filter((one) => !one.includes('-X DELETE')))
      expect(await paste(command)).toMatch(/^\{"operationId".*"APPROVED".*\}\n$|^\{"registration":"ACTIVE".*\}\n$/)
    const asked = commands.find((command) => command.includes('"template":"payment"')) ?? ''
    expect(await paste(asked)).toMatch(/^\{"operationId".*"PENDING".*\}\n$/)
  })

  test('the phone goes on approving what waits', async () => {
    expect(statSync(file).mode & 0o077).toBe(0)
    const ask = async (): Promise<string> =>
      String(member(expectOk(await world.bank.createOperation({ userId: 'alice', template: 'login' })).json, 'operationId'))
    const [first, second] = [await ask(), await ask()]
    const approve = (...args: string[]) => runNode(['scripts/demo.ts', 'approve', '--phone', file, ...args])
    expect(await approve(first)).toMatchObject({ code: 0, stdout: expect.stringContaining(`approved ${first}.\n`) as unknown })
    expect(member((await world.bank.readOperation(second)).json, 'status')).toBe('PENDING')
    expect(await approve(first)).toMatchObject({ code: 1, stdout: `${first} does not wait.\n` })
    expect(await approve()).toMatchObject({ code: 0, stdout: expect.stringContaining(`approved ${second}.\n`) as unknown })
    for (const id of [first, second]) expect(member((await world.bank.readOperation(id)).json, 'status')).toBe('APPROVED')
    expect(await approve()).toMatchObject({ code: 0, stdout: 'Nothing waits for alice.\n' })
  })
})

test('a user whose phone is another one is left alone', async () => {
  const { userId } = await world.activePhone('3.3')
  const { code, stderr } = await demo('--user', userId)
  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`^${userId} has a registration .*--user.*\\n$`))
  expect(member((await world.bank.view(userId)).json, 'registration')).toBe('ACTIVE')
})

test('an unknown algorithm is refused', async () => {
  const { code, stderr } = await demo('--algorithm', 'EC_P256')
  expect(code).toBe(1)
  expect(stderr).toContain('--algorithm must be one of EC_P384, EC_P384_ML_L3, EC_P384_ML_L5')
})

test('a wrong password is one line', async () => {
  const { code, stderr } = await demo('--admin', 'admin:wrong')
  expect(code).toBe(1)
  expect(stderr).toMatch(/^GET \/admin\/applications: HTTP 401 .*\n$/)
})

test('with two listeners it finds both by the environment, and makes the application that others then use', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  const ports = { PAWL_PORT: String(await findQuietPort()), PAWL_INTERNAL_PORT: String(await findQuietPort()) }
  await startPawl(env, ports, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const { code, stdout, stderr } = await runNode(['scripts/demo.ts', '--admin', `admin:${ADMIN_PASSWORD}`], { ...env, ...ports })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.match(/"status":"APPROVED"/g)).toHaveLength(2)
  const bank = createBank(`http://127.0.0.1:${ports.PAWL_INTERNAL_PORT}`, `admin:${ADMIN_PASSWORD}`)
  expect((await bank.call('GET', '/admin/applications')).text).toContain('"id":"my-app","isDefault":true')
  const wrong = await runNode(['scripts/demo.ts', '--admin', `admin:${ADMIN_PASSWORD}`], { ...env, PAWL_PORT: ports.PAWL_PORT })
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/^.*HTTP 404.*PAWL_INTERNAL_PORT\n$/) as unknown })
})
