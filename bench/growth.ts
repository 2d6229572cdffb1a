// Compares the cost of a request in a large database with that in a small one: npm run bench -- growth. Two servers run, each on a database of
// its own, with the same number of active phones. One database is filled first with activations, operations and audit rows of other users.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { providePartition } from '../src/domain/audit/seal.ts'
import { systemPlatform } from '../src/lib/platform.ts'
import { type Db, inTransaction, openDatabase } from '../src/storage/database/database.ts'
import { createPhoneCopier, insertLike } from './http/copies.ts'
import { startPostgres } from './http/postgres.ts'
import { startTarget } from './http/target.ts'
import { print } from './http/terminal.ts'
import { compare, header, measureInTurns, row } from './http/turns.ts'
import { runWindow } from './http/window.ts'
import { openWorks } from './http/works.ts'

const { values } = parseArgs({
  options: {
    activations: { type: 'string', default: '1000000' },
    operations: { type: 'string', default: '2000000' },
    audit: { type: 'string', default: '5000000' },
    phones: { type: 'string', default: '1000' },
    // The phones in the small database; by default as many as in the large one.
    'small-phones': { type: 'string' },
    clients: { type: 'string', default: '16' },
    windows: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    'warm-up': { type: 'string', default: '5' },
  },
})
const count = (name: keyof typeof values): number => Number(values[name])
const WORKS = ['3.3 validate', '3.3 status', '3.3 detail', '3.3 operation list', '3.3 operation create']

// The large database has 11 GB. With the usual 128 MB its pages would be in the system's cache, and not in PostgreSQL's.
const SETTINGS = ['shared_buffers=2GB']

async function main(): Promise<void> {
  const postgres = await startPostgres(SETTINGS)
  const opened = []
  for (const [name, phones] of [
    ['large', count('phones')],
    ['small', Number(values['small-phones'] ?? values.phones)],
  ] as const) {
    const databaseUrl = postgres.createDatabase(`bench_${name}`)
    const checkout = new URL('..', import.meta.url).pathname
    const masterKey = randomBytes(32)
    const env = { PAWL_MASTER_KEY: masterKey.toString('base64') }
    const target = await startTarget({ name, checkout, databaseUrl, databasePid: postgres.pid, env })
    const works = await openWorks(target, phones, (work) => WORKS.includes(work), createPhoneCopier(databaseUrl, masterKey))
    // The operations of other users are copied from those of these phones.
    const [create] = works.filter((work) => work.name === '3.3 operation create')
    if (create) await runWindow(await create.prepare(phones, count('clients')), target)
    await prepareDatabase(databaseUrl, name === 'large')
    opened.push({ target, works, phones })
  }
  print(header())
  for (const name of WORKS) {
    const pairs = opened.flatMap(({ target, works, phones }) =>
      works.filter((work) => work.name === name).map((work) => ({ target, work, phones })),
    )
    const turns = { clients: count('clients'), windows: count('windows'), seconds: count('seconds'), warmUp: count('warm-up') }
    const measured = await measureInTurns(name, pairs, turns)
    for (const one of measured) print(row(`${name} (${one.target})`, one))
    const [large, small] = measured
    if (large && small) print(compare(large, small))
  }
}

async function prepareDatabase(databaseUrl: string, isLarge: boolean): Promise<void> {
  const { db, openPatient, close } = await openDatabase({ databaseUrl, dataDir: '', poolSize: 1 })
  const patient = openPatient?.()
  // The server makes the first partition only when it seals rows for the first time.
  await inTransaction(db, (tx) => providePartition(tx, systemPlatform, 7))
  // All statements use one connection, because settings and temporary tables belong to its session.
  await (patient?.db ?? db).connection().execute((session) => fill(session as Db, isLarge))
  await patient?.close()
  await close()
}

/** Fills a database and prints its contents. The active phones have as many operations and audit rows as the others. */
async function fill(db: Db, isLarge: boolean): Promise<void> {
  if (isLarge) {
    // Without this setting, triggers would compose webhook messages that nobody receives.
    await sql`set session_replication_role = replica`.execute(db)
    await sql`create temporary table person as select user_id, activation_id from activation`.execute(db)
    await copy(db, 'activation', count('activations') - count('phones'), {
      activation_id: `md5(i::text)::uuid::text`,
      user_id: `'other-' || i`,
      activation_code_hash: `decode(md5('code ' || i), 'hex')`,
      created_at: `now() - i * interval '20 seconds'`,
    })
    await sql`truncate person`.execute(db)
    await sql`insert into person select user_id, activation_id from activation order by md5(activation_id)`.execute(db)
    await sql`alter table person add column i bigint generated always as identity`.execute(db)
    await sql`create index person_i on person (i)`.execute(db)
    await sql`analyze person`.execute(db)
    const someone = `(select user_id from person where person.i = 1 + s.i % ${count('activations')})`
    await copy(db, 'operation', count('operations'), {
      operation_id: `md5('operation ' || i)::uuid::text`,
      user_id: someone,
      status: `'EXPIRED'`,
      // These rows are too young for housekeeping to delete.
      created_at: `now() - i::float8 / ${count('operations')} * interval '300 days'`,
    })
    await sql`
      insert into audit_log (position, sequence, sealed_at, occurred_at, chain_id, activation_id, application_id, user_id, event_type,
        event_data, seal)
      select s.i, -s.i, now(), now() - s.i * interval '1 second', -1, p.activation_id, 'bench', p.user_id, 'signature_ok',
        'POST' || chr(10) || '/pa/signature/validate' || chr(10) || repeat('x', 100), decode(repeat(md5(s.i::text), 2), 'hex')
      from generate_series(1, ${count('audit')}::bigint) as s (i) join person p on p.i = 1 + s.i % ${count('activations')}`.execute(
      db,
    )
  }
  await sql`vacuum analyze`.execute(db)
  await settle(db)
  const { rows } = await sql<Record<'activations' | 'operations' | 'audit' | 'size', string>>`
    select (select count(*) from activation) as activations, (select count(*) from operation) as operations,
      (select count(*) from audit_trail) as audit, pg_size_pretty(pg_database_size(current_database())) as size`.execute(db)
  for (const { activations, operations, audit, size } of rows)
    print(`${isLarge ? 'large' : 'small'}: ${activations} activations, ${operations} operations, ${audit} audit rows, ${size}`)
}

/** Waits for the end of autovacuum, five minutes at most, and has PostgreSQL write the new rows to the disk. */
async function settle(db: Db): Promise<void> {
  for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt += 1) {
    const { rows } = await sql`select from pg_stat_activity where backend_type = 'autovacuum worker'`.execute(db)
    if (rows.length === 0) break
    await sleep(SETTLE_STEP_MS)
  }
  await sql`checkpoint`.execute(db)
}

/** Inserts copies of an existing row. `columns` differ between the copies: they are SQL over a number `i` from 1. */
const copy = (db: Db, table: string, rows: number, columns: Readonly<Record<string, string>>): Promise<void> =>
  insertLike(db, table, {
    model: sql`select * from ${sql.table(table)} limit 1`,
    each: sql`generate_series(1, ${rows}::bigint) as s (i)`,
    columns,
  })

const SETTLE_ATTEMPTS = 300
const SETTLE_STEP_MS = 1000

await main()
