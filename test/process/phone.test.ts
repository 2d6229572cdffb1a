// pawl phone against a server, within this process: the whole life of a phone in every version and algorithm, and of the first and the last in the
// other dialect, which changes the names of headers alone.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import { runCli } from '../helpers/cli.ts'
import { ALL_PHONE_VERSIONS } from '../helpers/phone-versions.ts'
import { drawPicture, ok, openPhoneDesk, PASSWORD, type PhoneDesk } from '../helpers/phone-desk.ts'
import { expectOk, type World } from '../helpers/world.ts'

let desk: PhoneDesk
let world: World
const phone: PhoneDesk['phone'] = (...given) => desk.phone(...given)
const ask: PhoneDesk['ask'] = (...given) => desk.ask(...given)
const statusOf: PhoneDesk['statusOf'] = (...given) => desk.statusOf(...given)
beforeAll(async () => {
  desk = await openPhoneDesk()
  world = desk.world
})
afterAll(() => desk.close())

const KINDS = [
  ...[...ALL_PHONE_VERSIONS, ...PHONE_ALGORITHMS].map((name) => [name, 'powerauth'] as const),
  ...(['3.0', 'EC_P384_ML_L5'] as const).map((name) => [name, 'svc'] as const),
].map(([name, dialect]) => {
  const kind = name.startsWith('EC_') ? '--algorithm' : '--protocol'
  return [name, dialect, [kind, name, '--dialect', dialect]] as const
})

describe.each(KINDS)('a phone of %s, %s', (name, dialect, given) => {
  const store = `${name}-${dialect}.json`
  let userId = ''
  beforeAll(async () => {
    userId = await desk.bindPhone(store, given)
  })

  test('is bound by the code alone, and by a picture of the QR code', async () => {
    await desk.bindPhone(`typed-${store}`, given, (text) => text.split('#').slice(0, 1))
    const picture = join(desk.directory, `${store}.png`)
    await desk.bindPhone(`scanned-${store}`, given, (text) => {
      writeFileSync(picture, drawPicture(text))
      return ['--picture', picture]
    })
    for (const other of [`typed-${store}`, `scanned-${store}`])
      expect(await ok(phone(other, ['sign', '--send']))).toMatch(/^HTTP 200 /)
  })

  test('lists, shows, approves and rejects', async () => {
    expect(await ok(phone(store, ['list']))).toBe('Nothing waits.\n')
    const first = await ask(userId)
    const shown = await ok(phone(store, ['list']))
    expect(shown).toContain(first)
    expect(shown.replaceAll(/ +/g, ' ')).toContain('| Amount €10.00 |')
    const approved = await ok(phone(store, ['approve']))
    expect(approved).toContain(`mine approved ${first}.`)
    expect(await statusOf(first)).toBe('APPROVED')
    const [second, third] = [await ask(userId), await ask(userId, '11.00')]
    expect(await phone(store, ['approve'])).toMatchObject({ code: 2 })
    await ok(phone(store, ['reject', second, '--reason', 'UNEXPECTED_OPERATION']))
    expect(await statusOf(second)).toBe('REJECTED')
    await ok(phone(store, ['approve', '--all']))
    expect(await statusOf(third)).toBe('APPROVED')
    expect(await phone(store, ['approve', third])).toMatchObject({ code: 4 })
  })

  test('approves without a connection', async () => {
    const id = await ask(userId)
    const qr = String(member(expectOk(await world.bank.offlineQr(id)).json, 'operationQrCodeData'))
    const answer = JSON.parse(await ok(phone(store, ['offline', qr, '--json']))) as Record<string, string>
    expectOk(await world.bank.offlineOtp(id, answer['otp'], answer['nonce']))
    expect(await statusOf(id)).toBe('APPROVED')
    expect(await phone(store, ['offline', qr.replace('10.00', '99.00')])).toMatchObject({ code: 1, stdout: '' })
  })

  test('answers a text of the bank, for this phone and for any, and no other text', async () => {
    const free = ['--resource-id', '/cash', '--body', 'x&ř']
    for (const [more, options, named] of [
      [{ userId }, [], {}],
      [{ userId, hasProximityCheck: true }, ['--proximity'], {}],
      [{}, [], { userId }],
    ] as const) {
      const asked = { data: 'Pay\nten?', resourceId: '/cash', body: Buffer.from('x&ř').toString('base64'), ...more }
      const { json } = expectOk(await world.bank.call('POST', '/offline/challenges', asked))
      const qr = String(member(json, 'qrCodeData'))
      const answer = JSON.parse(await ok(phone(store, ['offline', qr, ...free, ...options, '--json']))) as Record<string, string>
      expect(answer).toMatchObject({ data: 'Pay\nten?', nonce: member(json, 'nonce') })
      const sent = { challengeId: member(json, 'challengeId'), otp: answer['otp'], ...named }
      expect(expectOk(await world.bank.call('POST', '/offline/verification', sent)).json).toMatchObject({ isValid: true, userId })
      expect(await phone(store, ['offline', qr.replace('ten', 'six'), ...free, ...options])).toMatchObject({
        code: 1,
        stdout: '',
      })
    }
    expect(await phone(store, ['offline', 'x', '--resource-id', '/cash'])).toMatchObject({ code: 2 })
  })

  test('shows what is approved before it asks for the password', async () => {
    const id = await ask(userId, '12.00')
    const env = { PAWL_PHONES: join(desk.directory, store) }
    const qr = String(member(expectOk(await world.bank.offlineQr(id)).json, 'operationQrCodeData'))
    for (const line of [
      ['offline', qr],
      ['approve', id],
    ]) {
      const { code, stderr } = await runCli(['phone', ...line], env, { secrets: [PASSWORD, PASSWORD] })
      expect([line[0], code]).toEqual([line[0], 0])
      expect(stderr).toMatch(/Amount +(?:€12\.00|12\.00 EUR) [^]*Password of the phone: \n$/)
    }
  })

  test("a wrong password is the server's to refuse, and counts", async () => {
    const id = await ask(userId)
    const wrong = await phone(store, ['approve', id], { PAWL_PHONE_PASSWORD: 'a wrong one' })
    expect(wrong).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^http:\/\/\S+ refuses: HTTP 401 .*\n$/) as unknown,
    })
    const status = JSON.parse(await ok(phone(store, ['status', '--json']))) as Record<string, unknown>
    // Of 4.0 in the dialect Svc the status is a word.
    const isWord = dialect === 'svc' && name.startsWith('EC_')
    expect(status).toMatchObject({ state: 'ACTIVE', ...(!isWord && { failedAttempts: 1, maxFailedAttempts: 5 }) })
    await ok(phone(store, ['approve', id]))
    if (!isWord) expect(JSON.parse(await ok(phone(store, ['status', '--json'])))).toMatchObject({ failedAttempts: 0 })
  })

  test('signs, once, and has a token', async () => {
    expect(await ok(phone(store, ['sign', '--send']))).toMatch(/^HTTP 200 /)
    const request = JSON.parse(await ok(phone(store, ['sign', '--body', '{"a":1}', '--json']))) as {
      url: string
      headers: Record<string, string>
      body: string
    }
    const send = async () => (await fetch(request.url, { method: 'POST', headers: request.headers, body: request.body })).status
    expect([await send(), await send()]).toEqual([200, 401])
    expect(await ok(phone(store, ['token']))).toMatch(dialect === 'svc' ? /^X-Svc-Token: / : /^X-PowerAuth-Token: /)
    expect(await ok(phone(store, ['token', '--remove']))).toBe('1 removed\n')
    expect(await ok(phone(store, ['list']))).toBe('Nothing waits.\n')
  })

  // A phone of 3.0 cannot read where the server is, and neither can one of 4.0 in the dialect Svc.
  test.skipIf(name === '3.0' || (dialect === 'svc' && name.startsWith('EC_')))(
    'follows a server that is ahead, as one is after a fence, once it has read the status',
    async () => {
      const path = join(desk.directory, store)
      const before = readFileSync(path)
      for (let i = 0; i < 19; i++) await ok(phone(store, ['sign', '--possession', '--send']))
      writeFileSync(path, before)
      await ok(phone(store, ['status']))
      expect(await ok(phone(store, ['sign', '--send']))).toMatch(/^HTTP 200 /)
    },
  )

  test.each([
    [['--method', 'GET', '--query', 'a=1%'], 'the query has a % that nobody can decode: a % itself is written %25'],
    [['--method', 'G T', '--send'], 'the request cannot be sent: Method must be a valid HTTP token ["G T"]'],
    [['--path', 'login', '--resource-id', '/login', '--send'], '--path begins with a slash, and login does not'],
  ])('says which part of a request cannot be: sign %j', async (words, said) => {
    const { code, stderr } = await phone(store, ['sign', ...words])
    expect([code, stderr]).toEqual([2, `${said}; --help says how to call it\n`])
  })

  test('takes another name, another password, and biometry', async () => {
    await ok(phone(store, ['rename', 'Phone of tests']))
    expect(member((await world.bank.view(userId)).json, 'name')).toBe('Phone of tests')
    const next = 'another good one'
    const wrong = await phone(store, ['password'], { PAWL_PHONE_PASSWORD: 'a wrong one', PAWL_PHONE_NEW_PASSWORD: next })
    expect(wrong.code).toBe(1)
    await ok(phone(store, ['password'], { PAWL_PHONE_NEW_PASSWORD: next }))
    expect(await ok(phone(store, ['sign', '--send'], { PAWL_PHONE_PASSWORD: next }))).toMatch(/^HTTP 200 /)
    await ok(phone(store, ['password'], { PAWL_PHONE_PASSWORD: next, PAWL_PHONE_NEW_PASSWORD: PASSWORD }))
    expect(await phone(store, ['sign', '--biometry', '--send'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('off') as unknown,
    })
    await ok(phone(store, ['biometry', 'on']))
    expect(await ok(phone(store, ['sign', '--biometry', '--send']))).toMatch(/^HTTP 200 /)
    await ok(phone(store, ['biometry', 'off']))
    expect((await phone(store, ['sign', '--biometry', '--send'])).code).toBe(1)
  })

  test('is removed', async () => {
    await ok(phone(store, ['remove']))
    expect(member((await world.bank.view(userId)).json, 'registration')).toBe('NONE')
    expect(await phone(store, ['list'])).toMatchObject({ code: 4 })
  })
})

test.each([
  ['3.3', ['--protocol', '3.3']],
  ['4.0', ['--algorithm', 'EC_P384']],
])('a phone of %s moves to another app, which checks the signature of the code', async (name, given) => {
  const application = `next-${name}`
  expectOk(await world.bank.createApplication(application))
  const transfers = [{ targets: [application], type: 'MOVE' }]
  expectOk(await world.bank.call('PATCH', `/admin/applications/${world.applicationId}`, { transfers }))
  const store = `move-${name}.json`
  const userId = await desk.bindPhone(store, given)
  const { code, otp } = JSON.parse(await ok(phone(store, ['hand-over', application, '--json']))) as Record<string, string>
  const bind = (text = '') =>
    phone(store, ['bind', text, '--otp', otp ?? '', '--name', 'next', '--app', application, ...given, '--insecure-store'], {
      PAWL_URL: world.url,
      PAWL_ADMIN: world.bank.credential ?? '',
    })
  const other = `${(code ?? '').split('#')[0]}#${(await desk.register(`somebody of ${name}`)).split('#')[1]}`
  expect(await bind(other)).toMatchObject({ code: 1, stderr: expect.stringContaining('not signed') as unknown })
  // The right one-time password has made it active: nothing says that the bank will commit.
  expect(await ok(bind(code))).toMatch(/Its fingerprint is \d+: the bank compares it before a commit\.$/m)
  expect(await ok(phone(store, ['sign', '--send', '--phone', 'next']))).toMatch(/^HTTP 200 /)
  expect((await phone(store, ['sign', '--send', '--phone', 'mine'])).code).toBe(1)
  expect(member((await world.bank.view(userId)).json, 'registration')).toBe('NONE')
})

test.each([...PHONE_ALGORITHMS.map((algorithm) => [algorithm, 'powerauth'] as const), ['EC_P384', 'svc'] as const])(
  'a phone of 3.3 moves to %s and goes on, %s',
  async (algorithm, dialect) => {
    const store = `upgrade-${algorithm}-${dialect}.json`
    const userId = await desk.bindPhone(store, ['--dialect', dialect])
    await ok(phone(store, ['list']))
    expect(await ok(phone(store, ['upgrade', '--algorithm', algorithm]))).toContain(`mine is a phone of 4.0 (${algorithm})`)
    expect(JSON.parse(await ok(phone(store, ['status', '--json'])))).toMatchObject({
      protocol: '4.0',
      ...(dialect !== 'svc' && { currentVersion: 4 }),
    })
    const id = await ask(userId)
    await ok(phone(store, ['approve', id]))
    expect(await statusOf(id)).toBe('APPROVED')
    expect(await phone(store, ['upgrade'])).toMatchObject({ code: 1 })
  },
)

test('a bank that does not answer is named, and not pawl', async () => {
  await desk.bindPhone('caller.json', ['--protocol', '3.3'])
  const called = await phone('caller.json', ['call', 'http://127.0.0.1:1/login', '--resource-id', '/login'])
  expect(called).toMatchObject({ code: 3, stdout: '' })
  expect(called.stderr).toMatch(/^http:\/\/127\.0\.0\.1:1 does not answer the phone: .*ECONNREFUSED.*\n$/)
})
