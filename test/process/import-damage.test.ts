// pawl import powerauth from a database in which two thousand rows are damaged at random: the run ends well, good rows are in, the others are
// named, and every list and page of pawl works afterwards.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { KINDS, type Kind } from '../../cli/import/report.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import { createPostgresDatabase, startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import { startSession } from '../helpers/console-session.ts'
import { importInto, openOrigin, type Origin } from '../helpers/powerauth-import.ts'
import { REFERENCE_TABLES } from '../helpers/powerauth-schema.ts'
import { createReferenceDatabase, LOCAL_TIME, type ReferenceDatabase } from '../helpers/powerauth-server.ts'

const SEED = Number(env['PAWL_TEST_SEED'] || Math.floor(Math.random() * 2 ** 31))
const MASTER_DB_KEY = random(16)
const APPLICATIONS = 20
const COUNTS = { pa_activation: 1_000, pa_token: 250, pa_activation_history: 250, pa_application_version: 120 } as const
const OTHERS = { pa_application_callback: 120, pa_operation_template: 120, es_operation_template: 120 } as const

/** Thousands of rows are made, taken and read, also on a machine that others use. */
const WHOLE_MS = 400_000

type Row = Record<string, unknown>

/** mulberry32: the same numbers for the same seed. */
function createDice(seed: number) {
  let state = seed >>> 0
  const roll = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const pick = <T>(list: readonly T[]): T => {
    const one = list[Math.floor(roll() * list.length)]
    if (one === undefined) throw new RangeError('nothing to pick from')
    return one
  }
  return { roll, pick }
}
const dice = createDice(SEED)

const TEXTS: readonly (string | null)[] = [
  null,
  '',
  ' ',
  'x',
  '\t',
  '\u0001',
  'a\u202Eb',
  '"',
  '\\',
  "'",
  '%',
  '%00',
  '../..',
  '<b>',
  'null',
  '5',
  'true',
  'infinity',
  'constructor',
  '__proto__',
  'toString',
  '💥',
  '\uFFFD',
  '=',
  'AAAA',
  'AAAAAAAAAAAAAAAAAAAAAA==',
  '${',
  '${a:-b}',
  'a,b',
  'a/b?c#d',
  '{}',
  '[]',
  '[null]',
  '[1]',
  '{',
  '[[[[',
  '"\\u0000"',
  String.raw`["VIP\u0000"]`,
  String.raw`["\ud800"]`,
  '["A,B"]',
  '["a b"]',
  '{"__proto__":1}',
  '[{"id":"\\u0000"}]',
  '[{"type":"NOTE","params":[]}]',
  '{"success":{}}',
  '{"httpBasic":{"enabled":true}}',
  '{"postApprovalScreen":5}',
  '1e999',
  '[1e999]',
  'http://[',
  'https://user:pass@bank.example/',
  'POSSESSION',
  'AES_HMAC',
  'fido2',
  'x'.repeat(32),
  'x'.repeat(255),
  'x'.repeat(4_000),
  'x'.repeat(100_000),
  '['.repeat(50_000),
]
const TIMES: readonly (string | null)[] = [
  null,
  'infinity',
  '-infinity',
  '0044-03-15 12:00:00 BC',
  '4713-01-01 00:00:00 BC',
  '294276-12-31 23:59:59.999999',
  '0001-01-01 00:00:00',
  '1969-12-31 23:59:59',
  '1970-01-01 00:00:00',
  '4999-12-31 23:59:59',
  '9999-12-31 23:59:59',
  '2026-03-29 02:30:00',
  '2026-10-25 02:30:00',
  '2016-12-31 23:59:60',
]
/** None is that of the application that stays good. */
const NUMBERS: readonly (number | string | null)[] = [
  null,
  0,
  1,
  -1,
  2,
  5,
  9,
  255,
  4711,
  2_147_483_647,
  -2_147_483_648,
  '9223372036854775807',
]

/** Another value for a column: an odd one of its type, or what a damaged row has there. */
function damage(table: string, column: string, others: readonly Row[]): unknown {
  const type = REFERENCE_TABLES[table]?.[column] ?? ''
  if (dice.roll() < 0.2 && others.length > 0) return dice.pick(others)[column] ?? null
  if (type.startsWith('timestamp')) return dice.pick(TIMES)
  if (type.startsWith('boolean')) return dice.pick([null, true, false])
  return type.startsWith('varchar') || type.startsWith('text') ? dice.pick(TEXTS) : dice.pick(NUMBERS)
}

let origin: Origin
let reference: ReferenceDatabase
let server: TestServer
let bank: Bank
const home = mkdtempSync(join(tmpdir(), 'pawl-damage-'))
/** Names of rows that nothing was done to. */
const good = new Map<Kind, Set<string>>(KINDS.map((kind) => [kind, new Set()]))
const damaged = new Map<string, Row[]>()

/** Inserts a row, in three of four cases with other values in one to three columns, as far as the table takes them. True where it is as given. */
async function insert(table: string, row: Row): Promise<boolean> {
  const others = damaged.get(table) ?? []
  damaged.set(table, others)
  if (dice.roll() < 0.25) {
    await reference.insert(table, row)
    return true
  }
  const columns = Object.keys(REFERENCE_TABLES[table] ?? {}).filter((column) => !isNumber(table, column))
  for (let attempt = 0; attempt < 4; attempt++) {
    const spoiled = { ...row }
    for (let i = 0; i <= Math.floor(dice.roll() * 3); i++) {
      const column = dice.pick(columns)
      spoiled[column] = damage(table, column, others)
    }
    try {
      await reference.insert(table, spoiled)
      others.push(spoiled)
      return false
    } catch {
      // Too long, or there already: the table has no such row.
    }
  }
  await reference.insert(table, row)
  return true
}

/** The number of a row, which has no meaning. */
const isNumber = (table: string, column: string): boolean =>
  column === 'id' && !(REFERENCE_TABLES[table]?.[column] ?? '').startsWith('varchar')

/** A dump without its constraints may bring anything. */
async function loosen(): Promise<void> {
  const { db } = origin.database
  const { rows } = await sql<{ statement: string }>`
    select format('alter table %s drop constraint if exists %I cascade', conrelid::regclass, conname) as statement from pg_constraint
    where conrelid::regclass::text ~ '(pa|es)_' and contype in ('p', 'u', 'f')
    union all
    select format('drop index if exists %s', i.indexrelid::regclass) from pg_index i
    where i.indisunique and i.indrelid::regclass::text ~ '(pa|es)_' and not i.indisprimary
      and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`.execute(db)
  for (const { statement } of rows) await sql.raw(statement).execute(db)
  for (const [table, columns] of Object.entries(REFERENCE_TABLES))
    for (const [column, type] of Object.entries(columns))
      if (/^(pa|es)_/.test(table) && /not null|primary key/.test(type))
        await sql`alter table ${sql.table(table)} alter column ${sql.ref(column)} drop not null`.execute(db)
}

async function fill(): Promise<void> {
  const { db } = origin.database
  const keys = (await sql<Row>`select * from pa_master_keypair where id = 1`.execute(db)).rows[0] ?? {}
  for (let i = 0; i < APPLICATIONS; i++) {
    const name = `app-${i}`
    const isGood = await insert('pa_application', { id: 100 + i, name, roles: '["ROLE"]' })
    if ((await insert('pa_master_keypair', { ...keys, id: 100 + i, application_id: 100 + i })) && isGood)
      good.get('application')?.add(name)
  }
  good.get('application')?.add('bank-app')
  good.get('version')?.add('bank-app/default')
  const phones: string[] = []
  const goodPhones: string[] = []
  for (let i = 0; i < COUNTS.pa_activation; i++) {
    // Of two connections: what the helper inserts is taken away again, and its row damaged.
    const { activationId } = await reference.addPhone('3.3', { isPlain: i % 3 === 0 })
    const { rows } = await sql<Row>`
      delete from pa_activation where activation_id = ${activationId}
      returning *, timestamp_created::text, timestamp_last_used::text, timestamp_activation_expire::text`.execute(db)
    const row = { ...rows[0], activation_status: dice.pick([3, 3, 3, 4, 5]) }
    if (await insert('pa_activation', row)) {
      good.get('activation')?.add(activationId)
      if (row.activation_status !== 5) goodPhones.push(activationId)
    }
    phones.push(activationId)
  }
  for (let i = 0; i < COUNTS.pa_token; i++) {
    const isOfGood = i % 2 === 0
    const token = {
      token_id: randomUUID(),
      token_secret: b64(random(16)),
      signature_type: 'POSSESSION',
      timestamp_created: LOCAL_TIME,
    }
    const isGood = await insert('pa_token', { ...token, activation_id: dice.pick(isOfGood ? goodPhones : phones) })
    if (isGood && isOfGood) good.get('token')?.add(token.token_id)
  }
  for (let i = 0; i < COUNTS.pa_activation_history; i++)
    await insert('pa_activation_history', {
      id: i,
      activation_id: dice.pick(phones),
      activation_status: dice.pick([1, 2, 3]),
      event_reason: null,
      external_user_id: null,
      timestamp_created: LOCAL_TIME,
    })
  for (let i = 0; i < COUNTS.pa_application_version; i++) {
    const version = { id: 1_000 + i, application_id: 7, application_key: b64(random(16)), application_secret: b64(random(16)) }
    if (await insert('pa_application_version', { ...version, name: `v${i}`, supported: true }))
      good.get('version')?.add(`bank-app/v${i}`)
  }
  await fillOthers()
}

async function fillOthers(): Promise<void> {
  const basic = JSON.stringify({ httpBasic: { enabled: true, username: 'pa', password: 'x' } })
  for (let i = 0; i < OTHERS.pa_application_callback; i++) {
    const row = {
      id: randomUUID(),
      application_id: 7,
      name: `callback ${i}`,
      callback_url: 'https://bank.example/hook',
      type: 'ACTIVATION_STATUS_CHANGE',
      attributes: '["userId"]',
      authentication: reference.encrypt(Buffer.from(basic), ['bank-app']),
      encryption_mode: 'AES_HMAC',
    }
    if (await insert('pa_application_callback', row)) good.get('webhook')?.add(row.id)
  }
  const attributes = [
    { id: 'operation.amount', type: 'AMOUNT', text: 'Amount', params: { amount: 'amount', currency: 'currency' } },
    { id: 'operation.alert', type: 'ALERT', text: 'Alert', params: { type: 'kind', message: 'text' } },
  ]
  for (let i = 0; i < OTHERS.pa_operation_template; i++) {
    const template = {
      id: i,
      template_name: `template-${i}`,
      operation_type: `type-${i}`,
      data_template: 'A1*A${amount}${currency}*I${iban}',
      signature_type: 'possession_knowledge',
      max_failure_count: 5,
      expiration: 300,
      risk_flags: 'X',
      proximity_check_enabled: false,
    }
    if (await insert('pa_operation_template', template)) good.get('template')?.add(template.template_name)
    await insert('es_operation_template', {
      id: i,
      placeholder: `type-${i}`,
      language: 'en',
      title: 'Payment',
      message: 'Confirm ${amount}',
      attributes: JSON.stringify(attributes),
      ui: '{"flipButtons":true}',
      result_texts: '{"success":"Paid"}',
    })
  }
}

beforeAll(async () => {
  origin = await openOrigin()
  reference = await createReferenceDatabase(origin.database.db, MASTER_DB_KEY)
  await loosen()
  await fill()
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  first = await importInto({ from: origin.database, into: server, masterDbKey: MASTER_DB_KEY, timeZone: 'Europe/Prague' })
}, WHOLE_MS)
afterAll(async () => {
  await server.close()
  await origin.database.close()
  await origin.drop()
  rmSync(home, { recursive: true, force: true })
})

let first: Awaited<ReturnType<typeof importInto>>

const saySeed = (): void => onTestFailed(() => console.error(`PAWL_TEST_SEED=${SEED} repeats this`))

test('most of two thousand rows are damaged', () => {
  saySeed()
  const count = [...damaged.values()].flat().length
  expect(count).toBeGreaterThan(1_300)
  expect(first.tallies.activation.leftOut).toBeGreaterThan(200)
  expect(first.tallies.activation.imported).toBeGreaterThan(200)
})

test('every row is in pawl, or named', async () => {
  saySeed()
  for (const kind of KINDS) {
    const { found, imported, alreadyThere, leftOut } = first.tallies[kind]
    expect([kind, imported + alreadyThere + leftOut]).toEqual([kind, found])
    const named = first.told.filter((row) => row.kind === kind && 'reason' in row).map(({ id }) => id)
    expect(named).toHaveLength(leftOut)
    expect([kind, named.filter((id) => good.get(kind)?.has(id))]).toEqual([kind, []])
  }
  await expectInOrNamed(
    'activation',
    sql`select coalesce(activation_id, '') as id from pa_activation`,
    sql`select activation_id as id from activation`,
  )
  await expectInOrNamed('token', sql`select coalesce(token_id, '') as id from pa_token`, sql`select token_id as id from token`)
  await expectInOrNamed(
    'webhook',
    sql`select coalesce(id, '') as id from pa_application_callback`,
    sql`select webhook_id as id from webhook`,
  )
  await expectInOrNamed(
    'template',
    sql`select coalesce(template_name, '') as id from pa_operation_template`,
    sql`select template_name as id from template`,
  )
  await expectInOrNamed(
    'application',
    sql`select coalesce(name, '') as id from pa_application`,
    sql`select application_id as id from application`,
  )
})

type Ids = ReturnType<typeof sql<{ id: string }>>

async function expectInOrNamed(kind: Kind, there: unknown, here: unknown): Promise<void> {
  const { rows: found } = await (there as Ids).execute(origin.database.db)
  const stored = new Set((await (here as Ids).execute(server.context.db)).rows.map(({ id }) => id))
  const named = new Set(first.told.filter((row) => row.kind === kind && 'reason' in row).map(({ id }) => id))
  expect([kind, found.filter(({ id }) => !stored.has(id) && !named.has(id))]).toEqual([kind, []])
  for (const id of good.get(kind) ?? []) expect([kind, id, stored.has(id)]).toEqual([kind, id, true])
}

test('a second run finds what the first one took', async () => {
  saySeed()
  const second = await importInto({ from: origin.database, into: server, masterDbKey: MASTER_DB_KEY, timeZone: 'Europe/Prague' })
  for (const kind of KINDS) {
    const { found, imported, leftOut } = first.tallies[kind]
    expect([kind, second.tallies[kind]]).toEqual([kind, { found, imported: 0, alreadyThere: imported, leftOut }])
  }
})

describe('afterwards', () => {
  const read = async (path: string): Promise<Record<string, unknown>> => {
    const reply = await bank.call('GET', path)
    expect([path, reply.status, reply.status === 200 ? '' : reply.text]).toEqual([path, 200, ''])
    return reply.json as Record<string, unknown>
  }
  const listOf = (json: Record<string, unknown>, name: string) => json[name] as readonly Record<string, string>[]
  const encode = (text: unknown): string => encodeURIComponent(String(text))

  async function readRegistrations(application: string): Promise<readonly Record<string, string>[]> {
    const all: Record<string, string>[] = []
    for (let cursor = ''; ; ) {
      const page = await read(`/admin/applications/${encode(application)}/registrations?limit=100${cursor}`)
      all.push(...listOf(page, 'registrations'))
      if (page['nextCursor'] === undefined) return all
      cursor = `&cursor=${encode(page['nextCursor'])}`
    }
  }

  test(
    'every list of the API can be read, and what stands in it',
    async () => {
      saySeed()
      const applications = listOf(await read('/admin/applications'), 'applications')
      expect(applications).toHaveLength(first.tallies.application.imported)
      let count = 0
      for (const { id = '' } of applications) {
        await read(`/admin/applications/${encode(id)}`)
        await read(`/admin/applications/${encode(id)}/operations`)
        const registrations = await readRegistrations(id)
        count += registrations.length
        for (const [index, { activationId, userId }] of registrations.entries()) {
          await read(`/admin/applications/${encode(id)}/registrations/${encode(activationId)}`)
          if (index % 10 === 0) await read(`/audit/log?userId=${encode(userId)}`)
        }
      }
      expect(count).toBe(first.tallies.activation.imported)
      for (const { templateName } of listOf(await read('/admin/templates'), 'templates'))
        await read(`/admin/templates/${encode(templateName)}`)
      for (const { id } of listOf(await read('/admin/webhooks'), 'webhooks')) {
        await read(`/admin/webhooks/${encode(id)}`)
        await read(`/admin/webhooks/${encode(id)}/deliveries`)
      }
      for (const path of ['/admin/audit', '/admin/users', '/admin/texts', '/admin/apps', '/admin/audit/verification'])
        await read(path)
    },
    WHOLE_MS,
  )

  test(
    'every page of the console shows itself',
    async () => {
      saySeed()
      const session = await startSession(server.url, server.admin.user, server.admin.password)
      const registrations = await readRegistrations('bank-app')
      const paths = [
        '/',
        '/registrations',
        '/operations',
        '/inbox',
        '/applications',
        '/templates',
        '/webhooks',
        '/certificates',
        '/config',
        '/audit',
        '/audit/devices',
        '/credentials',
        '/operations/new',
        '/new-template',
        ...registrations
          .filter((_, index) => index % 10 === 0)
          .map(({ activationId }) => `/registrations/${encode(activationId)}`),
        ...listOf(await read('/admin/applications'), 'applications').flatMap(({ id }) => [
          `/applications/${encode(id)}`,
          `/registrations?app=${encode(id)}`,
        ]),
        ...listOf(await read('/admin/templates'), 'templates').map(({ templateName }) => `/templates/${encode(templateName)}`),
        ...listOf(await read('/admin/webhooks'), 'webhooks').map(({ id }) => `/webhooks/${encode(id)}`),
      ]
      for (const path of paths) {
        const { status, text } = await session.get(path)
        expect([path, status, status === 200 ? '' : text]).toEqual([path, 200, ''])
      }
    },
    WHOLE_MS,
  )

  test('every list of the command line is printed', async () => {
    saySeed()
    const own = { HOME: home, PAWL_URL: server.url, PAWL_ADMIN: `${server.admin.user}:${server.admin.password}` }
    const lines = ['app list', 'registration list --app bank-app --all', 'operation list --app bank-app --all']
    for (const line of [
      ...lines,
      'template list',
      'webhook list',
      'user list',
      'certificate list --app bank-app',
      'audit changes',
    ])
      for (const more of [[], ['--json']]) {
        const { code, stderr } = await runCli([...line.split(' '), ...more], own)
        expect([line, code, stderr]).toEqual([line, 0, ''])
      }
  })
})

test.skipIf(!env['PAWL_TEST_DATABASE_URL'])(
  'the command ends with 0, and counts the same',
  async () => {
    saySeed()
    const target = await createPostgresDatabase({ isEmpty: true })
    const list = join(home, 'left-out.jsonl')
    const { code, stdout, stderr } = await runCli(
      [
        'import',
        'powerauth',
        '--from',
        origin.databaseUrl ?? '',
        '--time-zone',
        'Europe/Prague',
        '--left-out-file',
        list,
        '--json',
      ],
      {
        DATABASE_URL: target.databaseUrl,
        PAWL_MASTER_KEY: b64(random(32)),
        POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY: b64(MASTER_DB_KEY),
      },
    )
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(JSON.parse(stdout)).toMatchObject({ tallies: first.tallies })
    expect(readFileSync(list, 'utf8').trim().split('\n')).toHaveLength(first.told.length)
    await target.drop()
  },
  WHOLE_MS,
)
