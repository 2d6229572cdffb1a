// The file that `pawl phone` keeps phones in, and the codes that it takes.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newHandset } from '../../phone/handset-open.ts'
import { b64 } from '../../phone/v3/crypto.ts'
import type { PhoneState } from '../../phone/v3/state.ts'
import type { V4PhoneState } from '../../phone/v4/state.ts'
import { drawPicture, ok, openPhoneDesk, type PhoneDesk } from '../helpers/phone-desk.ts'
import { killScripts, startScript } from '../helpers/script-process.ts'
import type { World } from '../helpers/world.ts'

let desk: PhoneDesk
let world: World
let sdkConfig = ''
let directory = ''
const phone: PhoneDesk['phone'] = (...given) => desk.phone(...given)
const register: PhoneDesk['register'] = (...given) => desk.register(...given)
const bindPhone: PhoneDesk['bindPhone'] = (...given) => desk.bindPhone(...given)
beforeAll(async () => {
  desk = await openPhoneDesk()
  ;({ world, sdkConfig, directory } = desk)
})
afterAll(async () => {
  await killScripts()
  await desk.close()
})

test('an upgrade whose last answer was lost is found out by the next attempt', async () => {
  const store = 'upgrade-lost.json'
  await bindPhone(store)
  const file = join(directory, store)
  const before = JSON.parse(readFileSync(file, 'utf8')) as { version: number; phones: { mine: Record<string, unknown> } }
  await ok(phone(store, ['upgrade', '--algorithm', 'EC_P384']))
  const after = JSON.parse(readFileSync(file, 'utf8')) as typeof before
  // What the file held when the answer did not come.
  writeFileSync(file, JSON.stringify({ version: 1, phones: { mine: { ...before.phones.mine, pending: after.phones.mine } } }))
  await ok(phone(store, ['upgrade', '--algorithm', 'EC_P384']))
  expect(await ok(phone(store, ['sign', '--send']))).toMatch(/^HTTP 200 /)
})

test('a confirmation whose answer was lost is found out by the next attempt', async () => {
  const store = 'confirm-lost.json'
  await bindPhone(store, ['--algorithm', 'EC_P384'])
  await ok(phone(store, ['list']))
  const file = join(directory, store)
  const { version, phones } = JSON.parse(readFileSync(file, 'utf8')) as { version: number; phones: { mine: object } }
  // What the file held when the answer did not come.
  writeFileSync(file, JSON.stringify({ version, phones: { mine: { ...phones.mine, isConfirmed: false } } }))
  expect(await ok(phone(store, ['list']))).toBe('Nothing waits.\n')
})

test.each(['3.3', '4.0'] as const)(
  'a phone of %s writes none of its keys down before the password hides them',
  async (version) => {
    const app = { ...world.app, masterPublicKey: b64(world.app.masterPublicKey), mobileSdkConfig: sdkConfig }
    const written: unknown[] = []
    const fresh = newHandset(
      { url: world.url, dialect: 'PowerAuth', version, ...(version === '4.0' && { algorithm: 'EC_P384' }), app },
      ({ state, knowledge }) => {
        const { keys } = state as PhoneState | V4PhoneState
        written.push(keys && { clear: keys.knowledge.length + keys.biometry.length, isHidden: knowledge !== undefined })
      },
    )
    await fresh.bind((await world.register()).code, 'mine', 'a good one')
    expect(written).toEqual([undefined, { clear: 0, isHidden: true }])
  },
)

test('several phones in one sealed file; nothing of it is in the clear, and only its passphrase opens it', async () => {
  const env = { PAWL_PHONE_PASSPHRASE: 'correct horse' }
  const app = ['--phones-url', world.url, '--sdk-config', sdkConfig]
  await ok(phone('sealed.json', ['bind', await register('sealed one'), '--name', 'one', ...app], env))
  const file = join(directory, 'sealed.json')
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain('activationId')
  expect(text).not.toContain(sdkConfig)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await ok(phone('sealed.json', ['bind', await register('sealed two'), '--name', 'two', '--algorithm', 'EC_P384', ...app], env))
  expect(await ok(phone('sealed.json', ['phones'], env))).toMatch(/^PHONE .*\none +.* 3\.3 .*\ntwo +.* 4\.0 +EC_P384 /)
  expect(await phone('sealed.json', ['status'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('one, two') as unknown,
  })
  expect(await ok(phone('sealed.json', ['status', '--phone', 'two'], env))).toContain('PENDING_COMMIT')
  const wrong = await phone('sealed.json', ['phones'], { PAWL_PHONE_PASSPHRASE: 'wrong horse' })
  expect(wrong).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('passphrase') as unknown })
  expect(await phone('sealed.json', ['phones'])).toMatchObject({ code: 2 })
  const changed = JSON.parse(text) as { sealed: string }
  writeFileSync(file, JSON.stringify({ ...changed, sealed: `A${changed.sealed.slice(1)}` }))
  expect((await phone('sealed.json', ['phones'], env)).code).toBe(changed.sealed.startsWith('A') ? 0 : 5)
})

test('a file without passphrase, or one that another process has, is refused', async () => {
  const app = ['--phones-url', world.url, '--sdk-config', sdkConfig]
  await bindPhone('open.json')
  expect(await phone('open.json', ['bind', 'AAAAA-AAAAA-AAAAA-AAAAA', ...app])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--insecure-store') as unknown,
  })
  const lock = join(directory, 'open.json.lock')
  writeFileSync(lock, '1')
  expect(await phone('open.json', ['phones'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('in use by process 1') as unknown,
  })
  // So it is by a process that has made the lock, and not yet written its id: two would have the same counter.
  writeFileSync(lock, '')
  expect(await phone('open.json', ['phones'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is in use; if no pawl phone runs, remove \S+open\.json\.lock\n$/) as unknown,
  })
  // A process that has ended holds nobody up.
  writeFileSync(lock, '4194999')
  await ok(phone('open.json', ['phones']))
  expect(statSync(lock, { throwIfNoEntry: false })).toBeUndefined()
})

test.each([
  '',
  'a secret',
  '[]',
  'null',
  '{"version":1,"sealed":"AA=="}',
  '{"version":1,"phones":null}',
  '{"version":2,"phones":{}}',
])('a file that holds %j is no file of phones, and none of it is repeated', async (text) => {
  const file = join(directory, 'foreign.json')
  writeFileSync(file, text)
  const end = await phone('foreign.json', ['phones'], { PAWL_PHONE_PASSPHRASE: 'correct horse' })
  expect(end).toEqual({ code: 1, stdout: '', stderr: `${file} holds no phones\n` })
})

test('a process that finds the lock of an ended one does not take it from one that took it meanwhile', async () => {
  const file = join(directory, 'raced.json')
  writeFileSync(`${file}.lock`, `${spawnSync('true').pid}`)
  const slow = startOpening(file, true)
  expect(await slow.read()).toBe('asked')
  const quick = startOpening(file)
  expect(await quick.read()).toBe('took')
  let said: string | undefined = 'asked'
  while (said === 'asked') {
    slow.goOn()
    said = await slow.read()
  }
  expect(said).toMatch(/raced\.json is in use by process \d+$/)
  quick.goOn()
  expect(await quick.read()).toBe('closed')
  expect(readdirSync(directory).filter((name) => name.startsWith('raced'))).toEqual([])
})

test('a process that was killed while it removed a lock holds nobody up', async () => {
  await bindPhone('removed.json')
  const lock = join(directory, 'removed.json.lock')
  const [ended, killed] = [spawnSync('true').pid, spawnSync('true').pid]
  writeFileSync(lock, `${ended}`)
  writeFileSync(`${lock}.${ended}`, `${killed}`)
  await ok(phone('removed.json', ['phones']))
  expect(readdirSync(directory).filter((name) => name.startsWith('removed'))).toEqual(['removed.json'])
})

/**
 * Starts a process that opens the file, prints `took` or the reason why not, and closes it at the next line. A slow one prints `asked` when it has
 * read whose a lock is, and goes on at the next line.
 */
function startOpening(file: string, isSlow = false) {
  const script = `
    const { default: fs } = await import('node:fs')
    const { syncBuiltinESMExports } = await import('node:module')
    const wait = () => fs.readSync(0, Buffer.alloc(1))
    const { readFileSync } = fs
    const readSlowly = (path, ...how) => {
      const text = readFileSync(path, ...how)
      if (String(path).includes('.lock')) {
        fs.writeSync(1, 'asked\\n')
        wait()
      }
      return text
    }
    if (process.env.IS_SLOW) fs.readFileSync = readSlowly
    syncBuiltinESMExports()
    const { openStore } = await import(process.env.STORE)
    const options = { path: process.env.FILE, passphrase: async () => '', isInsecure: true, mustExist: false }
    const store = await openStore(options).catch((error) => void fs.writeSync(1, error.message + '\\n'))
    if (store) fs.writeSync(1, 'took\\n')
    wait()
    store?.close()
    fs.writeSync(1, 'closed\\n')`
  return startScript(script, { FILE: file, STORE: pathToFileURL('cli/phone/store.ts').href, ...(isSlow && { IS_SLOW: 'true' }) })
}

describe('a code', () => {
  const app = () => ['--phones-url', world.url, '--sdk-config', sdkConfig, '--insecure-store']

  test('is read from a picture', async () => {
    const file = join(directory, 'qr.png')
    writeFileSync(file, drawPicture(await register('picture')))
    await ok(phone('picture.json', ['bind', '--picture', file, ...app()]))
    writeFileSync(file, drawPicture(undefined))
    expect(await phone('picture.json', ['bind', '--picture', file, ...app()])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('shows no QR code') as unknown,
    })
    writeFileSync(file, 'no picture')
    expect((await phone('picture.json', ['bind', '--picture', file, ...app()])).stderr).toContain('is no PNG picture')
  })

  test('that the server of the application has not signed is refused, and leaves no phone', async () => {
    const [code = '', signature = ''] = (await register('unsigned')).split('#')
    const other = `${code.startsWith('A') ? 'B' : 'A'}${code.slice(1)}#${signature}`
    expect(await phone('unsigned.json', ['bind', other, ...app()])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not signed') as unknown,
    })
    expect(await phone('unsigned.json', ['bind', 'AAAAA-AAAAA-AAAAA-AAAAA', ...app()])).toMatchObject({ code: 1 })
    expect((await phone('unsigned.json', ['phones'])).stdout).not.toContain('activation')
  })

  test('comes with what is compiled into the app, from the command line or from the server', async () => {
    const code = await register('values')
    expect(await phone('values.json', ['bind', code, '--phones-url', world.url, '--insecure-store'])).toMatchObject({ code: 2 })
    const values = ['--app-key', world.app.applicationKey, '--app-secret', world.app.applicationSecret]
    const masterKey = Buffer.from(world.app.masterPublicKey).toString('base64')
    const given = [...values, '--master-key', masterKey, '--protocol', '3.1']
    await ok(phone('values.json', ['bind', code, '--phones-url', world.url, '--insecure-store', ...given]))
    const admin = ['--app', 'test-app', '--url', world.url, '--admin', world.bank.credential ?? '']
    const of4 = ['--algorithm', 'EC_P384', '--phones-url', world.url, '--insecure-store']
    await ok(phone('values.json', ['bind', await register('values of 4'), ...of4, ...admin]))
  })
})

test('a server that does not answer is one line', async () => {
  await bindPhone('silent.json')
  const file = join(directory, 'silent.json')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(world.url, 'http://127.0.0.1:9'))
  expect(await phone('silent.json', ['list'])).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/^http:\/\/127\.0\.0\.1:9 does not answer the phone: .*\n$/) as unknown,
  })
})

test('a file that cannot be written is one line, which blames no server, and no request leaves', async () => {
  await bindPhone('full.json')
  // In place of the new file, which would take the place of the old one, there is a directory.
  mkdirSync(join(directory, `full.json.${process.pid}.new`))
  const fault = {
    code: 6,
    stdout: '',
    stderr: expect.stringMatching(/^\S+full\.json cannot be written: .*\n$/) as unknown,
  }
  expect(await phone('full.json', ['list'])).toMatchObject(fault)
  expect(await phone('full.json', ['call', 'http://127.0.0.1:9/login', '--resource-id', '/login'])).toMatchObject(fault)
})
