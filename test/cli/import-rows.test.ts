// pawl import powerauth with rows that cannot be taken: each is named with its reason, and the others are in.
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KINDS } from '../../cli/import/report.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { importInto, openOrigin, type Origin } from '../helpers/powerauth-import.ts'
import { setMultiDevice } from '../helpers/devices.ts'
import { createReferenceDatabase, LOCAL_TIME, type PhoneGiven, type ReferenceDatabase } from '../helpers/powerauth-server.ts'
import { expectOk } from '../helpers/world.ts'

const MASTER_DB_KEY = random(16)
type Row = Readonly<Record<string, unknown>>

let origin: Origin
let reference: ReferenceDatabase
let server: TestServer
let bank: Bank

const runImport = (given: { isDryRun?: boolean; into?: TestServer } = {}) =>
  importInto({ from: origin.database, into: server, masterDbKey: MASTER_DB_KEY, ...given })
type Imported = Awaited<ReturnType<typeof runImport>>

const add = async (row: Row, given: PhoneGiven = {}): Promise<string> => {
  const { activationId } = await reference.addPhone('3.3', { ...given, row })
  return typeof row['activation_id'] === 'string' ? row['activation_id'] : activationId
}

beforeAll(async () => {
  origin = await openOrigin()
  reference = await createReferenceDatabase(origin.database.db, MASTER_DB_KEY)
  // A dump without its constraints may bring anything.
  for (const [table, name] of [
    ['pa_activation', 'pa_activation_application_id_fkey'],
    ['pa_application_version', 'pa_application_version_application_id_fkey'],
    ['pa_application_callback', 'pa_application_callback_application_id_fkey'],
    ['pa_token', 'pa_token_activation_id_fkey'],
    ['pa_activation_history', 'pa_activation_history_activation_id_fkey'],
    ['pa_master_keypair', 'pa_master_keypair_application_id_fkey'],
  ] as const)
    await sql`alter table ${sql.table(table)} drop constraint ${sql.ref(name)}`.execute(origin.database.db)
  await fill()
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  dry = await runImport({ isDryRun: true })
  first = await runImport()
  second = await runImport()
})
afterAll(async () => {
  await server.close()
  await origin.database.close()
  await origin.drop()
})

let dry: Imported
let first: Imported
let second: Imported

const BAD_TIME = 'one of its times is none of the years 1971 to 4999'
const BAD_ID = 'its id is no UUID in lower case'
/** Columns of a phone, and why it is left out. */
const BAD_PHONES: readonly (readonly [string, Row, string])[] = [
  ['flags with NUL', { flags: String.raw`["VIP\u0000"]` }, 'its flags are not a list of names'],
  ['flags with another control character', { flags: String.raw`["\u0007"]` }, 'its flags are not a list of names'],
  ['flags that are an object', { flags: '{"VIP":1}' }, 'its flags are not a list of names'],
  ['flags that are cut', { flags: '["VIP"' }, 'its flags are not a list of names'],
  ['a flag of 300 characters', { flags: JSON.stringify(['V'.repeat(240), ' ']) }, 'its flags are not a list of names'],
  ['made in 44 BC', { timestamp_created: '0044-03-15 12:00:00 BC' }, `${BAD_TIME}: timestamp_created 0044-03-15 12:00:00 BC`],
  ['made at infinity', { timestamp_created: 'infinity' }, `${BAD_TIME}: timestamp_created infinity`],
  ['used at infinity', { timestamp_last_used: 'infinity' }, `${BAD_TIME}: timestamp_last_used infinity`],
  ['used at -infinity', { timestamp_last_used: '-infinity' }, `${BAD_TIME}: timestamp_last_used -infinity`],
  ['without an end', { timestamp_activation_expire: 'infinity' }, `${BAD_TIME}: timestamp_activation_expire infinity`],
  ['made before 1970', { timestamp_created: '1969-12-31 23:59:59' }, `${BAD_TIME}: timestamp_created 1969-12-31 23:59:59`],
  [
    'made at the end of times',
    { timestamp_created: '294276-12-31 23:59:59', timestamp_last_used: '4713-01-02 00:00:00 BC' },
    `${BAD_TIME}: timestamp_created 294276-12-31 23:59:59, timestamp_last_used 4713-01-02 00:00:00 BC`,
  ],
  ['without an id', { activation_id: '' }, BAD_ID],
  ['a blank id', { activation_id: '  ' }, BAD_ID],
  ['an id in upper case', { activation_id: randomUUID().toUpperCase().replace(/^./, 'A') }, BAD_ID],
  ['another id', { activation_id: 'phone-1' }, BAD_ID],
  ['no user', { user_id: '' }, 'its user id is blank, or has control characters'],
  ['a user id of a tabulator', { user_id: 'a\tb' }, 'its user id is blank, or has control characters'],
  ['a user id of lost bytes', { user_id: 'Nov\uFFFDk' }, 'its user id is blank, or has control characters'],
  ['a counter at its end', { counter: 2_147_483_647 }, 'one of its counts is out of range'],
  ['a negative counter', { counter: -1 }, 'one of its counts is out of range'],
  ['no attempts', { max_failed_attempts: 0 }, 'one of its counts is out of range'],
  ['failures without end', { failed_attempts: 2_147_483_647 }, 'one of its counts is out of range'],
  ['an unknown state', { activation_status: 7 }, 'its state 7 is not known'],
  [
    'a key that is no Base64',
    { server_private_key_base64: '%%%', server_private_key_encryption: 0 },
    'its server key cannot be opened',
  ],
  ['an unknown encryption', { server_private_key_encryption: 2 }, 'its server key cannot be opened'],
  ['a device key of text', { device_public_key_base64: 'not a key' }, 'its device key is not a point of P-256'],
  ['short counter data', { ctr_data: b64(random(15)) }, 'its counter data is not Base64 of 16 bytes'],
  ['an application that is missing', { application_id: 4711 }, 'its application is missing'],
]

const ids = new Map<string, string>()
const idOf = (name: string): string => ids.get(name) ?? `nothing is called ${name}`

async function fill(): Promise<void> {
  for (const [name, row] of BAD_PHONES) ids.set(name, await add(row))
  // Of one user each.
  const several: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
    'user-1': { 'damaged active': { activation_status: 3, flags: '{' }, 'good blocked': { activation_status: 4 } },
    'user-2': {
      'active at infinity': { timestamp_last_used: 'infinity' },
      'active of version 2': { version: 2 },
      'good pending': { activation_status: 2, timestamp_activation_expire: '2099-01-01 00:00:00' },
    },
    'user-3': {
      'newest, damaged': { timestamp_last_used: '2026-05-01 00:00:00', ctr_data: 'x' },
      'newer, good': { timestamp_last_used: '2026-04-01 00:00:00' },
      'oldest, good': { timestamp_last_used: '2026-03-01 00:00:00' },
    },
    'user-4': {
      'pending too long': { activation_status: 2 },
      'pending with an OTP': { activation_status: 2, activation_otp: 'x', timestamp_activation_expire: '2099-01-01 00:00:00' },
      'removed once': { activation_status: 5 },
    },
    'user-5': {
      'first of a code': { activation_code: 'AAAAA-BBBBB-CCCCC-DDDDD', activation_status: 5 },
      'second of a code': { activation_code: 'AAAAA-BBBBB-CCCCC-DDDDD' },
    },
  }
  for (const [userId, phones] of Object.entries(several))
    for (const [name, row] of Object.entries(phones)) ids.set(name, await add(row, { userId }))
  await fillVersions()
  const good = await add({})
  ids.set('good', good)
  await fillTokens(good)
  await fillHistory(good)
  const callback = { application_id: 7, name: 'x', callback_url: 'https://bank.example/hook', attributes: '["userId"]' }
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-good' })
  await reference.insert('pa_application_callback', { ...callback, id: '' })
  await reference.insert('pa_application_callback', { ...callback, id: '.' })
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-lost', application_id: 4711 })
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-type', type: 'constructor' })
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-nul', attributes: String.raw`["user\u0000Id"]` })
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-auth', authentication: '[]' })
  // As a record that was damaged, or written under another key, may open.
  const damaged = { authentication: reference.encrypt(Uint8Array.of(0xff), ['bank-app']), encryption_mode: 'AES_HMAC' }
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-damaged', ...damaged })
  // So its server writes it.
  const oauth = '{"certificate":null,"httpBasic":null,"oauth2":{"enabled":true,"tokenUri":"https://bank.example/token"}}'
  await reference.insert('pa_application_callback', { ...callback, id: 'callback-oauth', authentication: oauth })
  await reference.insert('pa_application', { id: 8, name: 'roles-app', roles: String.raw`["GOOD","BAD\u0000","A,B"]` })
  await reference.insert('pa_application', { id: 9, name: ' ', roles: null })
  await reference.insert('pa_application', { id: 10, name: 'keyless-app', roles: null })
  await reference.insert('pa_application', { id: 11, name: '..', roles: null })
  const { rows } = await sql<Row>`select * from pa_master_keypair where id = 1`.execute(origin.database.db)
  await reference.insert('pa_master_keypair', { ...rows[0], id: 3, application_id: 8, timestamp_created: 'infinity' })
  await reference.insert('pa_master_keypair', { ...rows[0], id: 4, application_id: 10, master_key_private_base64: 'AA' })
}

async function fillVersions(): Promise<void> {
  const key = reference.app.applicationKey
  const version = { application_id: 7, application_secret: b64(random(16)), supported: true }
  const versions: readonly Row[] = [
    { id: 71, name: 'same key', application_key: key.replace(/=+$/, '') },
    { id: 72, name: 'default', application_key: b64(random(16)) },
    { id: 73, name: 'bad secret', application_key: b64(random(16)), application_secret: '***' },
    { id: 74, name: null, application_key: null },
    { id: 75, name: 'lost', application_key: b64(random(16)), application_id: 4711 },
    { id: 76, name: null, application_key: b64(random(16)), supported: null },
    { id: 77, name: '.', application_key: b64(random(16)) },
  ]
  for (const row of versions) await reference.insert('pa_application_version', { ...version, ...row })
}

async function fillTokens(activationId: string): Promise<void> {
  const token = {
    activation_id: activationId,
    token_secret: b64(random(16)),
    signature_type: 'POSSESSION',
    timestamp_created: LOCAL_TIME,
  }
  const tokens: readonly Row[] = [
    { token_id: 'token-good' },
    { token_id: '' },
    { token_id: 'token-time', timestamp_created: '-infinity' },
    { token_id: 'token-bc', timestamp_created: '0001-01-01 00:00:00 BC' },
    { token_id: 'token-secret', token_secret: 'x' },
    { token_id: 'token-factors', signature_type: 'KNOWLEDGE' },
    { token_id: 'token-lost', activation_id: randomUUID() },
    { token_id: 'token-of-left-out', activation_id: idOf('flags with NUL') },
    { token_id: 'token-of-removed', activation_id: idOf('removed once') },
  ]
  for (const row of tokens) await reference.insert('pa_token', { ...token, ...row })
}

async function fillHistory(activationId: string): Promise<void> {
  const rows: readonly Row[] = [
    { activation_status: 1 },
    { activation_status: 2, timestamp_created: 'infinity' },
    { activation_status: 9 },
    { activation_status: 3, timestamp_created: '0044-03-15 00:00:00 BC' },
    { activation_status: null },
    { activation_status: 3 },
  ]
  for (const [id, row] of rows.entries())
    await reference.insert('pa_activation_history', { id, activation_id: activationId, timestamp_created: LOCAL_TIME, ...row })
}

test.each(BAD_PHONES)('a phone with %s is left out by name, in each run', (name, _row, reason) => {
  for (const run of [dry, first, second]) expect(run.reasonOf(idOf(name))).toContain(reason)
})

test('of several phones of a user the preferred one of those that can be taken is taken', async () => {
  const taken = ['good blocked', 'good pending', 'newer, good', 'removed once', 'first of a code', 'second of a code']
  for (const name of taken) expect([name, first.reasonOf(idOf(name))]).toEqual([name, undefined])
  const { rows } = await sql<{ id: string }>`select activation_id as id from activation`.execute(server.context.db)
  const stored = rows.map(({ id }) => id)
  expect(stored).toEqual(expect.arrayContaining(taken.map(idOf)))
  expect(first.reasonOf(idOf('oldest, good'))).toBe(`the user has another live phone in this application: ${idOf('newer, good')}`)
  expect(first.reasonOf(idOf('damaged active'))).toBe('its flags are not a list of names')
  expect(second.reasonOf(idOf('oldest, good'))).toBe(first.reasonOf(idOf('oldest, good')))
})

test('found is what was imported, was there and was left out, in each run', () => {
  for (const { tallies } of [dry, first, second])
    for (const kind of KINDS) {
      const { found, imported, alreadyThere, leftOut } = tallies[kind]
      expect([kind, imported + alreadyThere + leftOut]).toEqual([kind, found])
      expect(found).toBeGreaterThan(kind === 'template' ? -1 : 0)
    }
  expect(first.tallies).toEqual(dry.tallies)
  expect(first.leftOut).toEqual(dry.leftOut)
  expect(first.mended).toEqual(dry.mended)
  for (const kind of KINDS) {
    const { found, imported, leftOut } = first.tallies[kind]
    expect([kind, second.tallies[kind]]).toEqual([kind, { found, imported: 0, alreadyThere: imported, leftOut }])
  }
})

test('versions: one key twice, odd names, and no application', () => {
  for (const run of [dry, first, second]) {
    expect(run.reasonOf('bank-app/same key')).toBe('another version has its key')
    expect(run.reasonOf('bank-app/bad secret')).toBe('its key or secret is not Base64 of 16 bytes')
    expect(run.reasonOf('bank-app/74')).toBe('its key or secret is not Base64 of 16 bytes')
    expect(run.reasonOf('4711/lost')).toBe('its application is missing')
  }
  expect(first.mendsOf('bank-app/default')).toEqual(['taken under another name: default (72)'])
  expect(first.mendsOf('bank-app/76')).toEqual(['taken under another name: unnamed'])
  expect(first.mendsOf('bank-app/.')).toEqual(['taken under another name: unnamed (77)'])
})

test('tokens are all counted, and named where they are left out', () => {
  for (const run of [dry, first]) {
    expect(run.tallies.token).toEqual({ found: 9, imported: 1, alreadyThere: 0, leftOut: 8 })
    expect(run.reasonOf('')).toBeDefined()
    expect(run.reasonOf('token-time')).toBe(BAD_TIME)
    expect(run.reasonOf('token-bc')).toBe(BAD_TIME)
    expect(run.reasonOf('token-secret')).toBe('its secret is not Base64 of 16 bytes')
    expect(run.reasonOf('token-factors')).toBe('its factors are KNOWLEDGE')
    expect(run.reasonOf('token-lost')).toBe('its activation is missing')
    expect(run.reasonOf('token-of-left-out')).toBe('its activation is left out')
    expect(run.reasonOf('token-of-removed')).toBe('its activation is removed')
  }
})

test('applications, callbacks and history', async () => {
  expect(first.reasonOf(' ')).toBe('its id is blank, too long, or has control characters')
  for (const id of ['.', '..']) expect(first.reasonOf(id)).toBe('no path can have its id')
  expect(first.reasonOf('keyless-app')).toBe('it has no master key pair that can be read')
  expect(first.mendsOf('roles-app')).toEqual([
    'taken without those of its roles that are no names',
    'taken with a new version: it has none that is on',
  ])
  expect(first.reasonOf('callback-good')).toBeUndefined()
  expect(first.reasonOf('callback-lost')).toBe('its application is missing')
  expect(first.reasonOf('callback-type')).toBe('its type is constructor')
  expect(first.reasonOf('callback-nul')).toMatch('its attributes must be one of')
  expect(first.reasonOf('callback-auth')).toBeUndefined()
  expect(first.reasonOf('callback-damaged')).toBe('its credentials cannot be opened')
  expect(first.reasonOf('callback-oauth')).toBe('it gets a token of OAuth 2 first')
  expect(first.mendsOf(idOf('good'))).toHaveLength(1)
  const detail = expectOk(await bank.call('GET', `/admin/applications/bank-app/registrations/${idOf('good')}`)).json as {
    history: { to: string }[]
  }
  expect(detail.history).toHaveLength(3)
  expect(expectOk(await bank.call('GET', '/admin/applications/roles-app')).json).toMatchObject({
    responseObject: { roles: ['GOOD'] },
  })
})

test('every registration can be read, page by page', async () => {
  const seen: string[] = []
  for (let cursor = ''; ; ) {
    const { json } = expectOk(await bank.call('GET', `/admin/applications/bank-app/registrations?limit=2${cursor}`))
    const page = json as { registrations: { activationId: string }[]; nextCursor?: string }
    for (const { activationId } of page.registrations) {
      seen.push(activationId)
      expectOk(await bank.call('GET', `/admin/applications/bank-app/registrations/${encodeURIComponent(activationId)}`))
    }
    if (page.nextCursor === undefined) break
    cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
  }
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen).toHaveLength(first.tallies.activation.imported)
})

test('of two rows with the same id the first is taken, in each run', async () => {
  const other = await startTestServer()
  const own = await openOrigin()
  const { db } = own.database
  const source = await createReferenceDatabase(db, MASTER_DB_KEY)
  const { activationId } = await source.addPhone('3.3')
  await source.insert('pa_token', {
    token_id: 'twice',
    activation_id: activationId,
    token_secret: b64(random(16)),
    signature_type: 'POSSESSION',
    timestamp_created: LOCAL_TIME,
  })
  await source.insert('pa_application_callback', {
    id: 'hook',
    application_id: 7,
    callback_url: 'https://bank.example/hook',
    attributes: '[]',
  })
  await source.insert('pa_operation_template', {
    id: 1,
    template_name: 'template',
    operation_type: 'template',
    data_template: 'A2',
    signature_type: 'possession',
    max_failure_count: 5,
    expiration: 300,
  })
  const tables = ['pa_activation', 'pa_token', 'pa_application_callback', 'pa_operation_template', 'pa_application']
  for (const table of tables) {
    const { rows } = await sql<{ name: string }>`
      select conname as name from pg_constraint where conrelid = to_regclass(${table}) and contype in ('p', 'u')`.execute(db)
    for (const { name } of rows) await sql`alter table ${sql.table(table)} drop constraint ${sql.ref(name)} cascade`.execute(db)
  }
  await sql`drop index pa_application_name`.execute(db)
  for (const table of tables) await sql`insert into ${sql.table(table)} select * from ${sql.table(table)}`.execute(db)
  // One of another user, so that the two are not beside each other.
  await sql`insert into pa_activation select * from pa_activation limit 1`.execute(db)
  await sql`update pa_activation set user_id = 'z' where ctid = (select max(ctid) from pa_activation)`.execute(db)
  const kinds = { activation: 3, token: 2, webhook: 2, template: 2, application: 2 } as const
  for (const [isDryRun, imported, alreadyThere] of [
    [true, 1, 0],
    [false, 1, 0],
    [false, 0, 1],
  ] as const) {
    const { tallies, told } = await importInto({ from: own.database, into: other, masterDbKey: MASTER_DB_KEY, isDryRun })
    for (const [kind, found] of Object.entries(kinds) as [keyof typeof kinds, number][])
      expect([kind, tallies[kind]]).toEqual([kind, { found, imported, alreadyThere, leftOut: found - 1 }])
    expect(new Set(told.map((row) => ('reason' in row ? row.reason : '')))).toContain('another row has its id')
  }
  await other.close()
  await own.database.close()
  await own.drop()
})

describe('what the database of pawl refuses', () => {
  test('is left out row by row, and the next phone of the user has its turn', async () => {
    const other = await startTestServer()
    const { db } = other.context
    // A bank's own constraint, and a name that is being erased.
    await sql`alter table activation add constraint own check (name <> 'refused')`.execute(db)
    const own = await openOrigin()
    const source = await createReferenceDatabase(own.database.db, MASTER_DB_KEY)
    const good = []
    for (let i = 0; i < 9; i++) good.push((await source.addPhone('3.3')).activationId)
    const bad = await source.addPhone('3.3', { userId: 'u', row: { activation_name: 'refused' } })
    const next = await source.addPhone('3.3', { userId: 'u', row: { activation_status: 4 } })
    const closed = await source.addPhone('3.3', { userId: 'closed' })
    await sql`insert into user_erasure values ('e', ${Buffer.from('s')}, sha256(convert_to('sclosed', 'UTF8')), now() + interval '1 hour')`.execute(
      db,
    )
    const { tallies, reasonOf } = await importInto({ from: own.database, into: other, masterDbKey: MASTER_DB_KEY })
    expect(reasonOf(bad.activationId)).toMatch(/^the database refuses it: .*"own"/)
    expect(reasonOf(closed.activationId)).toBe('the database refuses it: the user is being erased')
    expect(reasonOf(next.activationId)).toBeUndefined()
    expect(tallies.activation).toEqual({ found: 12, imported: 10, alreadyThere: 0, leftOut: 2 })
    await other.close()
    await own.database.close()
    await own.drop()
  })

  test('but for a deadlock, after which the same rows are stored again', async () => {
    const other = await startTestServer()
    const { db } = other.context
    await sql`create sequence deadlocks`.execute(db)
    await sql`
      create function deadlock() returns trigger language plpgsql as $$ begin
        if nextval('deadlocks') <= 3 then raise exception 'deadlock detected' using errcode = 'deadlock_detected'; end if;
        return new;
      end $$`.execute(db)
    await sql`create trigger deadlock before insert on activation for each row execute function deadlock()`.execute(db)
    const own = await openOrigin()
    const source = await createReferenceDatabase(own.database.db, MASTER_DB_KEY)
    for (let i = 0; i < 3; i++) await source.addPhone('3.3')
    const { tallies } = await importInto({ from: own.database, into: other, masterDbKey: MASTER_DB_KEY })
    expect(tallies.activation).toEqual({ found: 3, imported: 3, alreadyThere: 0, leftOut: 0 })
    await other.close()
    await own.database.close()
    await own.drop()
  })
})

test('where a user may have several phones, those that were left out for another one are taken', async () => {
  expectOk(await setMultiDevice(bank, 'bank-app', true))
  const third = await runImport()
  expect(third.reasonOf(idOf('oldest, good'))).toBeUndefined()
  expect(third.reasonOf(idOf('damaged active'))).toBe('its flags are not a list of names')
  const kept = (leftOut: Imported['leftOut']) => JSON.stringify(leftOut).includes('another live phone')
  expect([kept(second.leftOut), kept(third.leftOut)]).toEqual([true, false])
})
