// pawl import powerauth: phones that a PowerAuth server has bound go on with pawl, without a new binding.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRecordOpener, openKeyPair } from '../../cli/import/records.ts'
import { readSource } from '../../cli/import/source.ts'
import { b64, hasNonce, newKeyPair, random, unb64 } from '../../phone/v3/crypto.ts'
import { ALL_PHONE_VERSIONS } from '../helpers/phone-versions.ts'
import { member } from '../../phone/http.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { type Database, openDatabase } from '../../src/storage/database/database.ts'
import { createPostgresDatabase, serverUrl, startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank, readQrCode } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import { expectRefused, STATE } from '../helpers/expectations.ts'
import { importInto, type ImportRun, openOrigin as openEmpty } from '../helpers/powerauth-import.ts'
import {
  createReferenceDatabase,
  LOCAL_TIME,
  type PhoneGiven,
  type ReferenceDatabase,
  type ReferencePhone,
} from '../helpers/powerauth-server.ts'
import { expectOk } from '../helpers/world.ts'

const MASTER_DB_KEY = random(16)

let origin: Database
let reference: ReferenceDatabase
let server: TestServer
let bank: Bank
const drops: (() => Promise<void>)[] = []
const openOrigin = async () => {
  const opened = await openEmpty()
  drops.push(opened.drop)
  return opened
}

/** Imports into the running server's database, as the command does. */
const runImport = (options: Partial<ImportRun> = {}) =>
  importInto({ from: origin, into: server, masterDbKey: MASTER_DB_KEY, ...options })

const phones = new Map<string, ReferencePhone>()
const phone = (name: string) => {
  const found = phones.get(name)
  if (found === undefined) throw new Error(`no phone ${name}`)
  return { ...found, phone: found.at(server.url) }
}

beforeAll(async () => {
  origin = (await openOrigin()).database
  reference = await createReferenceDatabase(origin.db, MASTER_DB_KEY)
  const add = async (name: string, version: (typeof ALL_PHONE_VERSIONS)[number], given?: PhoneGiven) =>
    phones.set(name, await reference.addPhone(version, given))
  for (const version of ALL_PHONE_VERSIONS) await add(version, version)
  await add('plain', '3.3', { isPlain: true })
  await add('high', '3.3', { serverKey: keyWhere((first) => first > 127) })
  await add('short', '3.3', { serverKey: keyWhere((first) => first === 0) })
  await add('blocked', '3.3', { row: { activation_status: 4, blocked_reason: 'MAX_FAILED_ATTEMPTS', failed_attempts: 4 } })
  await add('removed', '3.3', { row: { activation_status: 5 } })
  const later = '2099-01-01 00:00:00'
  await add('pending', '3.3', { row: { activation_status: 2, timestamp_activation_expire: later } })
  await add('pending with an OTP', '3.3', {
    row: { activation_status: 2, timestamp_activation_expire: later, activation_otp: '$argon2i$v=19$...' },
  })
  await add('pending too long', '3.3', { row: { activation_status: 2 } })
  await add('created', '3.3', { row: { activation_status: 1, ctr_data: null, device_public_key_base64: null, version: null } })
  await add('fido', '3.3', { row: { protocol: 'fido2' } })
  await add('version 2', '3.3', { row: { version: 2 } })
  await add('spoiled', '3.3', { row: { server_private_key_base64: reference.encrypt(random(32), ['somebody', 'else']) } })
  await add('swapped', '3.3', { row: { server_public_key_base64: b64(newKeyPair().uncompressed) } })
  await add('bad device key', '3.3', { row: { device_public_key_base64: b64(random(65)) } })
  await add('old of two', '3.3', { userId: 'two', row: { timestamp_last_used: '2025-01-01 00:00:00' } })
  await add('new of two', '3.3', { userId: 'two' })
  for (const name of ['3.3', 'removed'] as const) {
    const { activationId } = phones.get(name) ?? { activationId: '' }
    await reference.insert('pa_token', {
      token_id: TOKENS[name],
      token_secret: b64(TOKEN_SECRET),
      activation_id: activationId,
      signature_type: 'possession_knowledge',
      timestamp_created: LOCAL_TIME,
    })
  }
  const { activationId } = phones.get('3.3') ?? { activationId: '' }
  for (const [id, status] of [1, 2, 3].entries())
    await reference.insert('pa_activation_history', {
      id,
      activation_id: activationId,
      activation_status: status,
      event_reason: status === 3 ? 'BANK' : null,
      timestamp_created: LOCAL_TIME,
    })
  await addCallbacks()
  await addTemplates()
  await reference.insert('pa_operation', {
    id: randomUUID(),
    operation_type: 'login',
    data: 'A2',
    status: 0,
    signature_type: 'possession',
    max_failure_count: 5,
    timestamp_created: LOCAL_TIME,
    timestamp_expires: LOCAL_TIME,
  })
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
})
afterAll(async () => {
  await server.close()
  await origin.close()
  for (const drop of drops) await drop()
})

const TOKEN_SECRET = random(16)
const TOKENS = { '3.3': randomUUID(), removed: randomUUID() } as const

/** A pair whose private key begins with such a byte: Java writes it in 33 bytes, or in 31. */
function keyWhere(isWanted: (first: number) => boolean): ReturnType<typeof newKeyPair> {
  for (;;) {
    const pair = newKeyPair()
    if (isWanted(pair.privateKey[0] ?? 0)) return pair
  }
}

async function addCallbacks(): Promise<void> {
  const callback = { application_id: 7, name: 'changes', callback_url: 'https://bank.example/hook', attributes: '["userId"]' }
  const basic = JSON.stringify({ httpBasic: { enabled: true, username: 'pa', password: 'secret of a callback' } })
  await reference.insert('pa_application_callback', {
    ...callback,
    id: 'callback-basic',
    authentication: reference.encrypt(Buffer.from(basic), ['bank-app']),
    encryption_mode: 'AES_HMAC',
  })
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-plain', type: 'OPERATION_STATUS_CHANGE' })
  await reference.insert('pa_application_callback', {
    ...callback,
    id: 'callback-oauth',
    authentication: '{"oAuth2":{"enabled":true}}',
  })
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-http', callback_url: 'http://bank.example' })
}

async function addTemplates(): Promise<void> {
  const template = { data_template: 'A2', max_failure_count: 5, expiration: 300 }
  const types = 'possession_knowledge,possession_biometry,possession_knowledge_biometry'
  await reference.insert('pa_operation_template', {
    ...template,
    id: 1,
    template_name: 'login',
    operation_type: 'sign-in',
    signature_type: types,
  })
  await reference.insert('pa_operation_template', {
    ...template,
    id: 2,
    template_name: 'bare',
    operation_type: 'bare',
    signature_type: types,
  })
  await reference.insert('pa_operation_template', {
    ...template,
    id: 3,
    template_name: 'old',
    operation_type: 'old',
    signature_type: types,
    data_template: 'free text',
  })
  await reference.insert('es_operation_template', {
    id: 1,
    placeholder: 'sign-in',
    language: 'cs',
    title: 'Přihlášení',
    message: 'Přihlásit?',
    attributes: '[{"id":"operation.note","type":"NOTE","text":"Pozn.","params":{"note":"note"}}]',
  })
}

const countRows = async ({ context: { db } }: TestServer) => {
  const tables = ['application', 'application_version', 'activation', 'token', 'webhook', 'activation_history']
  const counts: number[] = []
  for (const table of tables) counts.push((await sql`select from ${sql.table(table)}`.execute(db)).rows.length)
  return counts
}

describe('before anything is imported', () => {
  test('a wrong master DB encryption key imports nothing', async () => {
    for (const masterDbKey of [random(16), random(16), random(16)])
      await expect(runImport({ masterDbKey })).rejects.toThrow(/opens none of \d+ encrypted records: nothing was imported/)
    expect((await countRows(server)).every((count) => count === 0)).toBe(true)
  })

  test('a dry run tells what would be, and writes nothing', async () => {
    const { tallies } = await runImport({ isDryRun: true })
    expect(tallies).toEqual(EXPECTED())
    expect((await countRows(server)).every((count) => count === 0)).toBe(true)
  })

  test('another database, and a time zone that nobody knows, are refused', async () => {
    const other = await openOrigin()
    const wrong = runImport({ from: other.database })
    await expect(wrong).rejects.toThrow(/not the database of a PowerAuth server 1\.9: it has no pa_application\.roles/)
    await other.database.close()
    await expect(runImport({ timeZone: 'Europe/Nowhere' })).rejects.toThrow('--time-zone Europe/Nowhere')
  })
})

const EXPECTED = () => {
  const found = phones.size
  const out = [
    'pending with an OTP',
    'pending too long',
    'created',
    'fido',
    'version 2',
    'spoiled',
    'swapped',
    'bad device key',
    'old of two',
  ].length
  return {
    application: { found: 1, imported: 1, alreadyThere: 0, leftOut: 0 },
    version: { found: 1, imported: 1, alreadyThere: 0, leftOut: 0 },
    template: { found: 3, imported: 2, alreadyThere: 0, leftOut: 1 },
    activation: { found, imported: found - out, alreadyThere: 0, leftOut: out },
    token: { found: 2, imported: 1, alreadyThere: 0, leftOut: 1 },
    webhook: { found: 4, imported: 2, alreadyThere: 0, leftOut: 2 },
  }
}

describe('after the import', () => {
  let imported: Awaited<ReturnType<typeof runImport>>
  beforeAll(async () => {
    imported = await runImport({ timeZone: 'Europe/Prague' })
  })

  test('everything is counted, and what was left out has its reason', () => {
    expect(imported.tallies).toEqual(EXPECTED())
    expect(imported.notTaken).toEqual({ pendingOperations: 1, recoveryCodes: 0 })
    const reasonOf = (name: string) => imported.reasonOf(phone(name).activationId)
    expect(reasonOf('created')).toMatch('no phone has used its code')
    expect(reasonOf('fido')).toBe('its protocol is fido2')
    expect(reasonOf('version 2')).toBe('it is of protocol 2')
    expect(reasonOf('pending with an OTP')).toMatch('OTP')
    expect(reasonOf('pending too long')).toMatch('too long')
    expect(reasonOf('spoiled')).toMatch('cannot be opened')
    expect(reasonOf('swapped')).toMatch('not the private half')
    expect(reasonOf('bad device key')).toMatch('not a point')
    expect(reasonOf('old of two')).toBe(
      `the user has another live phone in this application: ${phone('new of two').activationId}`,
    )
    expect(imported.reasonOf(TOKENS.removed)).toBe('its activation is removed')
    expect(imported.reasonOf('callback-oauth')).toMatch('OAuth 2')
    expect(imported.reasonOf('callback-http')).toMatch('its url must be an https URL')
    expect(imported.reasonOf('old')).toMatch('dataTemplate')
  })

  test.each(ALL_PHONE_VERSIONS)('a phone of %s reads its status, signs, opens envelopes and gets a token', async (version) => {
    const { phone: bound } = phone(version)
    // Version 3.0 is told random bytes in place of the counter.
    const counter = hasNonce(version) ? { ctrByte: 7 } : {}
    expect(await bound.readStatus()).toMatchObject({ state: STATE.ACTIVE, ...counter, failedAttempts: 1, maxFailedAttempts: 4 })
    expectRefused(await bound.send(bound.prepareValidation({ wrongKeys: { knowledge: random(16) } })), 'signature')
    expect((await bound.readStatus()).failedAttempts).toBe(2)
    const used = bound.prepareValidation()
    expectOk(await bound.send(used))
    expectRefused(await bound.send(used), 'signature')
    expectOk(await bound.send(bound.prepareValidation({ factors: 'possession_biometry' })))
    await bound.exchange(await bound.prepareUserInfo())
    expect(await bound.exchange(await bound.prepareVaultUnlock())).toEqual(bound.state.keys?.vault)
    const token = await bound.createToken()
    expect(await bound.exchange(await bound.prepareDetail(token))).toMatchObject({
      responseObject: { activationName: `phone of ${phone(version).userId}` },
    })
  })

  test.each(['plain', 'high', 'short', 'new of two'])('so does one whose key is %s', async (name) => {
    const { phone: bound } = phone(name)
    expectOk(await bound.send(bound.prepareValidation()))
    expect((await bound.readStatus()).failedAttempts).toBe(0)
  })

  test('a token of the reference goes on', async () => {
    const { phone: bound } = phone('3.3')
    const token = { id: TOKENS['3.3'], secret: TOKEN_SECRET, factors: 'possession_knowledge' as const }
    await bound.exchange(await bound.prepareDetail(token))
    expectRefused(await bound.send(await bound.prepareDetail({ ...token, id: TOKENS.removed })), 'signature')
  })

  test('a blocked phone is blocked, and goes on when the bank unblocks it; a removed one knows that it is', async () => {
    const { phone: blocked, userId } = phone('blocked')
    expect((await blocked.readStatus()).state).toBe(STATE.BLOCKED)
    expectRefused(await blocked.send(blocked.prepareValidation()), 'signature')
    expectOk(await bank.change(userId, 'UNBLOCK'))
    expectOk(await blocked.send(blocked.prepareValidation()))
    expect((await phone('removed').phone.readStatus()).state).toBe(STATE.REMOVED)
  })

  test('a phone that waited for its commit is committed by the bank', async () => {
    const { phone: pending, userId } = phone('pending')
    expect((await pending.readStatus()).state).toBe(STATE.PENDING_COMMIT)
    expectOk(await bank.commit(userId))
    expectOk(await pending.send(pending.prepareValidation()))
  })

  test('the app that is installed binds new phones with the keys that were compiled into it', async () => {
    const { code } = readQrCode(await bank.register('new-user'))
    const fresh = createPhone({ url: server.url, app: reference.app, version: '3.3' })
    await fresh.activate(code)
    expectOk(await bank.commit('new-user'))
    expectOk(await fresh.send(fresh.prepareValidation()))
  })

  test('columns, times, history and audit log say where a phone comes from', async () => {
    const { db } = server.context
    const { activationId, userId } = phone('plain')
    const row = await db.selectFrom('activation').selectAll().where('activation_id', '=', activationId).executeTakeFirstOrThrow()
    expect(row).toMatchObject({
      application_id: 'bank-app',
      name: expect.stringMatching('phone of') as unknown,
      platform: 'ios',
      device_info: 'iPhone18,1',
      flags: 'VIP,TEST',
      external_id: 'device-9',
      max_failed_attempts: 4,
      created_at: new Date('2026-01-02T02:04:05.678Z'),
    })
    const history = await db
      .selectFrom('activation_history')
      .select(['from_state', 'to_state', 'reason'])
      .where('activation_id', '=', phone('3.3').activationId)
      .orderBy('activation_history_id')
      .execute()
    expect(history.map(({ from_state, to_state, reason }) => [from_state, to_state, reason])).toEqual([
      [null, 'CREATED', null],
      ['CREATED', 'PENDING_COMMIT', null],
      ['PENDING_COMMIT', 'ACTIVE', 'BANK'],
      ['ACTIVE', 'ACTIVE', 'IMPORTED'],
    ])
    const { items } = expectOk(await bank.call('GET', `/audit/log?userId=${userId}`)).json as { items: object[] }
    expect(items).toContainEqual(expect.objectContaining({ activationId, eventType: 'registration_imported' }))
    const application = await db.selectFrom('application').select(['application_id', 'roles', 'is_default']).execute()
    expect(application).toEqual([{ application_id: 'bank-app', roles: 'ROLE_ONE,ROLE_TWO', is_default: true }])
  })

  test('callbacks are webhooks that are switched off, and were told nothing', async () => {
    const { db, recordKeys } = server.context
    const rows = await db.selectFrom('webhook').selectAll().orderBy('webhook_id').execute()
    expect(rows.map(({ webhook_id, kind, is_enabled, attributes }) => [webhook_id, kind, is_enabled, attributes])).toEqual([
      ['callback-basic', 'ACTIVATION', false, 'userId'],
      ['callback-plain', 'OPERATION', false, 'userId'],
    ])
    const place = { table: 'webhook', column: 'basic_credentials', row: 'callback-basic' }
    const basic = recordKeys.open(place, rows[0]?.basic_credentials ?? new Uint8Array(0))
    expect(Buffer.from(basic).toString()).toBe('pa:secret of a callback')
    expect(await db.selectFrom('webhook_delivery').select('delivery_id').execute()).toEqual([])
  })

  test('templates bring the texts of the enrollment server', async () => {
    const { templates } = expectOk(await bank.call('GET', '/admin/templates')).json as { templates: { templateName: string }[] }
    const find = (name: string) => templates.find(({ templateName }) => templateName === name)
    expect(find('login')).toMatchObject({
      operationType: 'sign-in',
      signatureType: ['possession_knowledge', 'possession_biometry'],
      source: 'administration',
      texts: { cs: { title: 'Přihlášení', attributes: [{ id: 'operation.note' }] } },
    })
    expect(find('bare')).toMatchObject({ texts: { en: { title: 'bare', message: 'bare' } } })
  })

  test('a second run changes nothing: no counter goes back, no token that was removed comes again', async () => {
    const { phone: bound, activationId } = phone('3.3')
    await sql`delete from token where token_id = ${TOKENS['3.3']}`.execute(server.context.db)
    const read = () => server.context.db.selectFrom('activation').selectAll().orderBy('activation_id').execute()
    const before = await read()
    const { tallies } = await runImport()
    expect(await read()).toEqual(before)
    expect(before.find((row) => row.activation_id === activationId)?.counter).toBeGreaterThan(7)
    expect(tallies.activation).toEqual({ ...EXPECTED().activation, imported: 0, alreadyThere: EXPECTED().activation.imported })
    expect(tallies.token.imported).toBe(0)
    expect(tallies.application.alreadyThere + tallies.version.alreadyThere + tallies.webhook.alreadyThere).toBe(4)
    expectOk(await bound.send(bound.prepareValidation()))
  })

  test('a phone that comes later is taken by the next run, but not when its user has one here already', async () => {
    const late = await reference.addPhone('3.3')
    const second = await reference.addPhone('3.3', { userId: 'new-user' })
    const { tallies, reasonOf } = await runImport({ isLiveOnly: true })
    expect(tallies.activation.imported).toBe(1)
    expect(reasonOf(second.activationId)).toMatch('the user has a live registration in pawl')
    const bound = late.at(server.url)
    expectOk(await bound.send(bound.prepareValidation()))
  })

  test('an application that pawl made itself under the same id is left alone, with all that belongs to it', async () => {
    const other = await startTestServer()
    const own = createBank(other.url, `${other.admin.user}:${other.admin.password}`)
    expectOk(await own.createApplication('bank-app'))
    const { tallies, reasonOf } = await runImport({ into: other })
    expect(reasonOf('bank-app')).toMatch('another master key pair')
    expect(tallies.activation).toMatchObject({ imported: 0, leftOut: tallies.activation.found })
    expect(tallies.version).toMatchObject({ imported: 0, leftOut: 1 })
    expect(member(expectOk(await own.view('client-1')).json, 'registration')).toBe('NONE')
    await other.close()
  })
})

describe('records of the reference', () => {
  test('are opened as its own tests do', () => {
    // Known answer: ServerPrivateKeyConverterTest of wultra/powerauth-server.
    const record = unb64('dzAdH8ZcOwbOsbBKIy86WpT6nFHTnKQQ/ifbk+z99LrToahYrDOyqVGMdw7eiELf+qrS8rjZFoz9oBcqGM35hQ==')
    const ids = ['test', '015286e0-e1c5-4ee1-8d1b-c6947cab0a56']
    const open = createRecordOpener(unb64('MTIzNDU2Nzg5MDEyMzQ1Ng=='))
    expect(b64(open('AES_HMAC', record, ids) ?? random(0))).toBe('YAJ1A/QtTTB33R3Xnx3q7+QFuth6cRagtCMGTytV9VE=')
    expect(open('AES_HMAC', record.subarray(0, 16), ids)).toBeUndefined()
    expect(open(undefined, record, ids)).toBeUndefined()
    expect(createRecordOpener(undefined)('AES_HMAC', record, ids)).toBeUndefined()
  })

  test('numbers that are no private key are refused', () => {
    const point = b64(newKeyPair().uncompressed)
    for (const number of [random(0), new Uint8Array(32), new Uint8Array(32).fill(255), random(40), random(32)])
      expect(openKeyPair(number, point)).toBeUndefined()
    const { privateKey, compressed, uncompressed } = newKeyPair()
    expect(openKeyPair(privateKey, b64(compressed))?.publicKey).toEqual(Buffer.from(uncompressed))
    expect(openKeyPair(privateKey, 'no Base64')).toBeUndefined()
  })
})

describe('the command', () => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-import-'))
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  test('says what is missing before anything is opened', async () => {
    const run = (args: readonly string[], env: Record<string, string> = {}) =>
      runCli(['import', 'powerauth', ...args], { PAWL_DATA_DIR: join(home, 'data'), ...env })
    expect(await run([])).toMatchObject({ code: 2, stderr: expect.stringContaining('POWERAUTH_DATABASE_URL') as unknown })
    const from = ['--from', 'postgres://127.0.0.1:1/none']
    expect(await run(from, { POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY: 'short' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('not Base64 of 16 bytes') as unknown,
    })
    expect(await run([...from, '--master-db-key-file', join(home, 'nothing')])).toMatchObject({ code: 2 })
    const file = join(home, 'key')
    writeFileSync(file, b64(MASTER_DB_KEY))
    const over = await run([...from, '--master-db-key-file', file], { POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY: 'short' })
    expect(over).toMatchObject({ code: 3, stderr: expect.stringContaining('ECONNREFUSED') as unknown })
    expect(await run(from)).toMatchObject({ code: 3, stderr: expect.stringContaining('ECONNREFUSED') as unknown })
  })

  test.skipIf(serverUrl() === undefined)('keeps its transaction on the source while batches are written for long', async () => {
    const made = await openOrigin()
    await createReferenceDatabase(made.database.db, MASTER_DB_KEY)
    await made.database.close()
    // One connection, which would be ended after a second and a half in which its transaction is idle.
    const single = await openDatabase({ databaseUrl: made.databaseUrl, dataDir: '', poolSize: 1 })
    await sql`set idle_in_transaction_session_timeout = 1500`.execute(single.db)
    const count = await readSource(single.db, 'UTC', async (source) => {
      await sleep(2_500)
      return source.countActivations()
    })
    expect(count).toBe(0)
    await single.close()
  })

  test.skipIf(serverUrl() === undefined)('imports from PostgreSQL into PostgreSQL', async () => {
    const source = await openOrigin()
    const own = await createReferenceDatabase(source.database.db, MASTER_DB_KEY)
    await own.addPhone('3.3')
    const broken = await own.addPhone('3.3', { row: { flags: 'not JSON' } })
    await source.database.close()
    const target = await createPostgresDatabase({ isEmpty: true })
    drops.push(target.drop)
    const keyFile = join(home, 'master-db.key')
    writeFileSync(keyFile, `${b64(MASTER_DB_KEY)}\n`)
    const list = join(home, 'left-out.jsonl')
    const env = {
      DATABASE_URL: target.databaseUrl,
      PAWL_MASTER_KEY: b64(random(32)),
      POWERAUTH_DATABASE_URL: source.databaseUrl ?? '',
    }
    const without = await runCli(['import', 'powerauth'], env)
    expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('--master-db-key-file') as unknown })
    const words = ['import', 'powerauth', '--master-db-key-file', keyFile, '--left-out-file', list]
    const dry = await runCli([...words, '--dry-run'], env)
    expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('dry run, nothing was written') as unknown })
    const { code, stdout } = await runCli([...words, '--json'], env)
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ isDryRun: false, tallies: { activation: { found: 2, imported: 1, leftOut: 1 } } })
    const lines = readFileSync(list, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(lines).toEqual([{ kind: 'activation', id: broken.activationId, reason: 'its flags are not a list of names' }])
    expect((await runCli(words, env)).stdout).toMatch(/activations +2 +0 +1 +1/)
  })
})
