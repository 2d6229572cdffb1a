// Whether the audit log is sealed as fast as it is written: npm run bench -- sealing. Rows are written at a steady rate while the sealer
// works in its usual rounds, then a heap of rows is sealed at once. Rows are those of verified requests: one a statement would be what a
// server writes, but here many come with one statement, so that the figures are those of the sealer.
import { createSecretKey, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { createAuditSealer, startAuditSealing } from '../src/domain/audit/seal.ts'
import { verifyAudit } from '../src/domain/audit/verification.ts'
import { createEvents } from '../src/log/events.ts'
import { createLog } from '../src/log/log.ts'
import { systemPlatform } from '../src/lib/platform.ts'
import { type Db, openDatabase } from '../src/storage/database/database.ts'
import { migrateDatabase } from '../src/storage/database/migrate.ts'
import { treeCpuMicroseconds } from './http/cpu.ts'
import { startPostgres } from './http/postgres.ts'

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '30' },
    heap: { type: 'string', default: '100000' },
  },
})

async function main(): Promise<void> {
  const postgres = await startPostgres()
  try {
    const database = await openDatabase({ databaseUrl: postgres.createDatabase('bench_sealing'), dataDir: '', poolSize: 4 })
    try {
      await migrateDatabase(database)
      const parts = {
        db: database.db,
        databaseKind: database.kind,
        platform: systemPlatform,
        events: createEvents(createLog('error', process.stderr)),
        installationKeys: { auditSeal: createSecretKey(randomBytes(32)) },
        settings: { auditRetentionDays: 365, auditPartitionDays: 30, adminAuditRetentionDays: 365 },
      }
      await writeSteadily(database.db, startAuditSealing({ ...parts, clock: { isAgreed: () => true } }))
      await createAuditSealer(parts)()
      await sealHeap(database.db, createAuditSealer(parts), postgres.pid)
      const { isIntact, chains } = await verifyAudit(parts)
      print(`${chains.reduce((sum, { sealed }) => sum + sealed, 0)} rows, ${isIntact ? 'all of them verified' : 'NOT INTACT'}`)
    } finally {
      await database.close()
    }
  } finally {
    await postgres.close()
  }
}

/** Prints every second how many rows wait: in rounds of five seconds it is up to five times the rate, and no more as time goes on. */
async function writeSteadily(db: Db, stop: () => Promise<void>): Promise<void> {
  const rate = Number(values.rate)
  const waiting: number[] = []
  let written = 0
  const start = performance.now()
  for (let second = 1; second <= Number(values.seconds); second += 1) {
    while (written < second * rate) {
      const due = Math.ceil((rate * (performance.now() - start)) / 1000) - written
      if (due > 0) await writeRows(db, due)
      written += Math.max(0, due)
      await sleep(50)
    }
    waiting.push(await countWaiting(db))
  }
  const seconds = (performance.now() - start) / 1000
  await stop()
  print(`written ${Math.round(written / seconds)} a second for ${seconds.toFixed(0)} s; rows that wait, second by second:`)
  print(waiting.join(' '))
}

async function sealHeap(db: Db, seal: () => Promise<void>, databasePid: number): Promise<void> {
  const count = Number(values.heap)
  await writeRows(db, count)
  const before = { node: process.cpuUsage(), database: treeCpuMicroseconds(databasePid), log: await readLogPosition(db) }
  const start = performance.now()
  await seal()
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(before.node)
  const log = (await readLogPosition(db)) - before.log
  const perRow = (total: number): string => (total / count).toFixed(1)
  print(
    `a heap of ${count} rows: ${Math.round(count / seconds)} rows a second; a row ${perRow(user + system)} µs of Node, ` +
      `${perRow(treeCpuMicroseconds(databasePid) - before.database)} µs of PostgreSQL, ${perRow(log)} bytes of its log; ` +
      `${await countWaiting(db)} wait`,
  )
}

async function writeRows(db: Db, count: number): Promise<void> {
  await sql`
    insert into audit_pending (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select 'bench', 'user-' || u, md5('activation-' || u), 'signature_ok', ${BODY}::text, now()
    from (select floor(random() * 100000)::int as u from generate_series(1, ${count}::int)) as users`.execute(db)
}

async function countWaiting(db: Db): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from audit_pending`.execute(db)
  return rows[0]?.count ?? 0
}

async function readLogPosition(db: Db): Promise<number> {
  const { rows } = await sql<{ bytes: string }>`select pg_current_wal_insert_lsn() - '0/0' as bytes`.execute(db)
  return Number(rows[0]?.bytes)
}

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const BODY = `POST\n/pa/signature/validate\n${JSON.stringify({ amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' })}`

await main()
