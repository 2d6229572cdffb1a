// Every list of the command line with 10,000 rows: it says that there are more than it shows, and --all shows every one once.
import { sql } from 'kysely'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { TestServer } from '../helpers/app.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { isNoun } from '../../cli/program.ts'
import { type CliInput, runCli } from '../helpers/cli.ts'
import { expectOk, startServerWithWorld, type World } from '../helpers/world.ts'
import { member } from '../../phone/http.ts'

vi.setConfig({ hookTimeout: 180_000 })

/** Three of the largest pages. A statement that writes so many is far from its time limit on a busy machine, too. */
const ROWS = 3_000
const home = mkdtempSync(join(tmpdir(), 'pawl-lists-'))
let server: TestServer
let world: World
let webhookId: string
let listed: string
let activationId: string

beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
  const { phone } = await world.activePhone('3.3')
  const bound = await world.activePhone('3.3')
  const { operationId } = expectOk(await world.bank.call('POST', '/operations', { userId: bound.userId, template: 'login' }))
    .json as { operationId: string }
  webhookId = String(
    member(
      expectOk(
        await world.bank.call('POST', '/admin/webhooks', {
          application: world.applicationId,
          kind: 'ACTIVATION',
          name: 'listed',
          url: 'https://receiver.example',
          isEnabled: false,
        }),
      ).json,
      'id',
    ),
  )
  ;({ activationId } = phone.state)
  listed = await fill(operationId)
})
afterAll(async () => {
  await world.close()
  rmSync(home, { recursive: true, force: true })
})

/** Many rows have the same time, as those of an import have: pages end within it. Returns the user whose phone the activation is. */
async function fill(operationId: string): Promise<string> {
  const { db } = server.context
  const id = sql`'00000000-0000-4000-8000-' || lpad(i::text, 12, '0')`
  const at = sql`date_trunc('milliseconds', now()) - (i / 700) * interval '1 minute'`
  await sql`
    insert into activation select c.* from activation a, generate_series(1, ${ROWS}) i, jsonb_populate_record(a, jsonb_build_object(
      'activation_id', ${id}, 'user_id', 'listed-' || i, 'activation_code_hash', '\\x' || lpad(to_hex(i), 64, '0'), 'created_at', ${at})) c
    where a.activation_id = ${activationId}`.execute(db)
  await sql`
    insert into operation select c.* from operation o, generate_series(1, ${ROWS}) i, jsonb_populate_record(o, jsonb_build_object(
      'operation_id', ${id}, 'user_id', 'listed-' || i, 'created_at', ${at})) c
    where o.operation_id = ${operationId}`.execute(db)
  await sql`
    insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, status, attempts, scheduled_at, next_attempt_at, created_at)
    select ${id}, ${webhookId}, ${id}, '{"status":"ACTIVE"}', 'DEAD', 8, now(), now(), now() from generate_series(1, ${ROWS}) i`.execute(
    db,
  )
  await sql`
    insert into audit_pending (occurred_at, activation_id, application_id, user_id, event_type, event_data)
    select ${at} - interval '1 day', ${activationId}, a.application_id, a.user_id, 'signature_ok', json_build_object('n', i)::text
    from activation a, generate_series(1, ${ROWS}) i where a.activation_id = ${activationId}`.execute(db)
  await sql`
    insert into admin_event (username, action, target, occurred_at)
    select 'listed', 'DELETE /admin/users/{name}', 'user ' || i, now() from generate_series(1, ${ROWS}) i`.execute(db)
  await sql`
    insert into credential select c.* from credential k, generate_series(1, ${ROWS}) i,
      jsonb_populate_record(k, jsonb_build_object('username', 'listed-' || i)) c
    where k.username = ${server.admin.user}`.execute(db)
  await sql`
    insert into application select c.* from application a, generate_series(1, ${ROWS}) i,
      jsonb_populate_record(a, jsonb_build_object('application_id', 'listed-' || i, 'is_default', false)) c
    where a.application_id = ${world.applicationId}`.execute(db)
  await sql`
    insert into webhook select c.* from webhook w, generate_series(1, ${ROWS}) i,
      jsonb_populate_record(w, jsonb_build_object('webhook_id', ${id}, 'name', 'listed-' || i)) c
    where w.webhook_id = ${webhookId}`.execute(db)
  await sql`
    insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, status, attempts, scheduled_at, next_attempt_at, created_at)
    select gen_random_uuid()::text, webhook_id, webhook_id, '{"status":"ACTIVE"}', 'DEAD', 8, now(), now(), now()
    from webhook where webhook_id <> ${webhookId}`.execute(db)
  await sql`
    insert into template select c.* from template t, generate_series(1, ${ROWS}) i,
      jsonb_populate_record(t, jsonb_build_object('template_name', 'listed-' || i)) c
    where t.template_name = 'login'`.execute(db)
  await sql`
    insert into version_text (message_key, language, text)
    select 'listed-' || i, 'en', 'a text' from generate_series(1, ${ROWS}) i`.execute(db)
  await sql`
    insert into version_rule (application_id, platform, major_os_version, suggested_version, created_at)
    select ${world.applicationId}, 'IOS', i, '1.0.0', now() from generate_series(1, ${ROWS}) i`.execute(db)
  await sql`
    insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
    select ${activationId}, 'ACTIVE', 'BLOCKED', 'n-' || i, now() from generate_series(1, ${ROWS}) i`.execute(db)
  // As a database does by itself some time after so many rows.
  await sql`analyze`.execute(db)
  const { rows } = await sql<{ userId: string }>`
    select user_id as "userId" from activation where activation_id = ${activationId}`.execute(db)
  return rows[0]?.userId ?? ''
}

const pawl = (line: readonly string[], input?: CliInput) =>
  runCli(line, { HOME: home, PAWL_URL: world.url, PAWL_ADMIN: world.bank.credential ?? '' }, input)

test('every command that lists is one of these, and those that have pages have the same words for them', () => {
  const commands = ENTRIES.flatMap((entry) => (isNoun(entry) ? entry.commands.map((one) => ({ noun: entry.name, ...one })) : []))
  const paged = commands.filter(({ options = {} }) => 'limit' in options || 'cursor' in options || 'all' in options)
  const names = (some: typeof commands) => some.map(({ noun, name }) => `${noun} ${name}`).toSorted()
  expect(names(paged.filter(({ noun }) => noun !== 'phone'))).toEqual(
    [...PAGED.map(([name]) => name).filter((name) => !name.includes(' of ')), 'audit log', 'registration history'].toSorted(),
  )
  for (const { noun, options = {} } of paged)
    if (noun !== 'phone') expect(Object.keys(options)).toEqual(expect.arrayContaining(['limit', 'cursor', 'all']))
  const lists = commands.filter(({ summary }) => /^(Lists|Searches) /.test(summary))
  const known = [...PAGED.map(([name]) => name), ...WHOLE.map(([name]) => name), 'app rules', 'template list', ...SMALL]
  expect(names(lists).filter((name) => !known.includes(name))).toEqual([])
})

const linesOf = (stdout: string): string[] => stdout.split('\n').slice(0, -1)

/** What the server gives whole, and how many rows of it there are. */
const WHOLE: readonly (readonly [name: string, rows: number])[] = [
  ['app list', ROWS + 1],
  ['user list', ROWS + 1],
  ['webhook list', ROWS + 1],
  ['app texts', ROWS],
]
/** Of these there are as many as the server or its settings allow, a few dozen. */
const SMALL = ['app config', 'key list', 'oidc list', 'phone phones', 'phone list']

/** What is listed in pages: the words, how many rows a page has by itself, how many there are, and what tells one from another. */
const PAGED: readonly (readonly [name: string, words: () => readonly string[], shown: number, rows: number, key: string])[] = [
  ['registration list', () => ['registration', 'list'], 50, ROWS + 2, 'activationId'],
  ['operation list', () => ['operation', 'list'], 100, ROWS + 1, 'operationId'],
  ['operation list of a status', () => ['operation', 'list', '--status', 'PENDING'], 100, ROWS + 1, 'operationId'],
  ['webhook deliveries', () => ['webhook', 'deliveries', webhookId], 100, ROWS, 'id'],
  ['webhook deliveries of a status', () => ['webhook', 'deliveries', webhookId, '--status', 'DEAD'], 100, ROWS, 'id'],
  ['audit changes', () => ['audit', 'changes', '--user', 'listed'], 1_000, ROWS, 'id'],
]

describe.each(PAGED)('pawl %s', (_, words, shown, rows, key) => {
  test('says that there are more than it shows, and what to do', async () => {
    const { code, stdout, stderr } = await pawl(words())
    expect(code).toBe(0)
    expect(linesOf(stdout)).toHaveLength(shown + 1)
    expect(stderr).toMatch(/^there are more: --all shows every one, --cursor \S+ those that follow\n$/)
    const few = await pawl([...words(), '--limit', '7', '--json'])
    expect(Object.values(JSON.parse(few.stdout) as object)[0]).toHaveLength(7)
    expect(few.stderr).toMatch(/^there are more: /)
  })

  test('--cursor goes on where a page ended', async () => {
    const both = await pawl([...words(), '--limit', '40', '--json'])
    const first = await pawl([...words(), '--limit', '20', '--json'])
    const cursor = /--cursor (\S+)/.exec(first.stderr)?.[1] ?? ''
    const second = await pawl([...words(), '--limit', '20', '--json', '--cursor', cursor])
    const rowsOf = ({ stdout }: { stdout: string }) => Object.values(JSON.parse(stdout) as object)[0] as unknown[]
    expect([...rowsOf(first), ...rowsOf(second)]).toEqual(rowsOf(both))
  })

  test('--all prints every row once, a line of JSON each, and nothing else', async () => {
    for (const more of [['--all'], ['--all', '--json']]) {
      const { code, stdout, stderr } = await pawl([...words(), ...more])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const ids = linesOf(stdout).map((line) => (JSON.parse(line) as Record<string, unknown>)[key])
      expect(ids).toHaveLength(rows)
      expect(new Set(ids).size).toBe(rows)
    }
  })

  test('--all on a terminal prints tables', async () => {
    const { code, stdout } = await pawl([...words(), '--all'], { columns: 80 })
    expect(code).toBe(0)
    const lines = linesOf(stdout)
    const heads = lines.filter((line) => line.startsWith(key.toUpperCase()))
    expect(heads.length).toBeGreaterThan(1)
    expect(lines).toHaveLength(rows + heads.length)
  })

  test('--all and --limit exclude each other', async () => {
    expect(await pawl([...words(), '--all', '--limit', '5'])).toMatchObject({ code: 2, stdout: '' })
  })

  test('a cursor that is none is refused in one line', async () => {
    for (const cursor of ['x', '-1', `${'9'.repeat(30)}_x`, ' ']) {
      const { code, stdout, stderr } = await pawl([...words(), '--cursor', cursor])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^.*HTTP 400 ERROR_REQUEST.*\n$/)
    }
  })
})

test('pawl audit log shows every row of a user once; rows of one millisecond stay together', async () => {
  const page = await pawl(['audit', 'log', listed, '--limit', '5'])
  expect(page.stderr).toMatch(/^there are more: --all shows every one, --cursor \d+ those that follow\n$/)
  const { code, stdout, stderr } = await pawl(['audit', 'log', listed, '--all'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const told = linesOf(stdout).map((line) => JSON.parse(line) as { eventType: string; eventData: string })
  const mine = told.filter(({ eventData }) => /^\{"n" : \d+\}$/.test(eventData))
  expect(mine).toHaveLength(ROWS)
  expect(new Set(mine.map(({ eventData }) => eventData)).size).toBe(ROWS)
  const all = linesOf((await pawl(['audit', 'log', listed, '--limit', '1000'])).stdout)
  expect(all.length).toBeGreaterThanOrEqual(1_001)
})

test('rows that come while a list is read change none of its later pages', async () => {
  const first = await pawl(['operation', 'list', '--limit', '1000', '--json'])
  const cursor = /--cursor (\S+)/.exec(first.stderr)?.[1] ?? ''
  const following = ['operation', 'list', '--limit', '1000', '--json', '--cursor', cursor]
  const before = await pawl(following)
  expectOk(await world.bank.call('POST', '/operations', { userId: 'listed-1', template: 'login' }))
  expect((await pawl(following)).stdout).toBe(before.stdout)
})

test('pawl registration history shows the newest of what happened, and with --all every change', async () => {
  const words = ['registration', 'history', activationId]
  const page = await pawl(words)
  expect(page.code).toBe(0)
  expect(linesOf(page.stdout).filter((line) => line.includes('n-'))).toHaveLength(100)
  expect(page.stdout).toContain(activationId)
  expect(page.stderr).toMatch(/^there are more: --all shows every one, --cursor \d+ those that follow\n$/)
  const { code, stdout, stderr } = await pawl([...words, '--all'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const changes = linesOf(stdout).map((line) => JSON.parse(line) as { from?: string; to: string; reason?: string })
  const mine = changes.flatMap(({ reason = '' }) => (reason.startsWith('n-') ? [reason] : []))
  expect(mine).toEqual(Array.from({ length: ROWS }, (_, i) => `n-${ROWS - i}`))
  expect(changes.at(-1)).toMatchObject({ to: 'CREATED' })
  const cursor = /--cursor (\S+)/.exec(page.stderr)?.[1] ?? ''
  const next = JSON.parse((await pawl([...words, '--limit', '2', '--cursor', cursor, '--json'])).stdout) as {
    history: { reason: string }[]
  }
  expect(next.history.map(({ reason }) => reason)).toEqual([`n-${ROWS - 100}`, `n-${ROWS - 101}`])
  for (const odd of ['x', '-1', '1.5', '9'.repeat(19)])
    expect(await pawl([...words, '--cursor', odd])).toMatchObject({ code: 1, stdout: '' })
})

// What the server gives whole, the command line shows whole.
test.each(WHOLE)('pawl %s shows all rows', async (line, rows) => {
  const { code, stdout, stderr } = await pawl(line.split(' '))
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(linesOf(stdout)).toHaveLength(rows + 1)
})

test('pawl app rules shows all rows', async () => {
  const { code, stdout, stderr } = await pawl(['app', 'rules'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(linesOf(stdout).filter((line) => line.includes('IOS'))).toHaveLength(ROWS)
})

test('pawl template list shows all rows', async () => {
  const { code, stdout, stderr } = await pawl(['template', 'list'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(linesOf(stdout).filter((line) => line.startsWith('listed-'))).toHaveLength(ROWS)
})
