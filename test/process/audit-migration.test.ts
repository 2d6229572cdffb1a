// A log that the version before wrote and sealed, after migration 0019: everything verifies, and what that version still writes is sealed.
import { createSecretKey, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrations } from '../../migrations/index.ts'
import { authenticateChain, CHAIN_BEGINNING, sealRow } from '../../src/domain/audit/mac.ts'
import { createAuditSealer } from '../../src/domain/audit/seal.ts'
import { verifyAudit } from '../../src/domain/audit/verification.ts'
import { createEvents } from '../../src/log/events.ts'
import { createLog } from '../../src/log/log.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { findPartitions } from '../../src/storage/audit/partitions.ts'
import type { ChainPlace } from '../../src/storage/audit/chain.ts'
import { type Database, type Db, openDatabase, openInMemory } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { createPostgresDatabase, serverUrl } from '../helpers/app.ts'
import { lookAndUndo } from '../helpers/audit.ts'

const auditSeal = createSecretKey(randomBytes(32))
const installationKeys = { auditSeal }
let database: Database
let drop: (() => Promise<void>) | undefined

beforeAll(async () => {
  if (serverUrl() === undefined) database = await openInMemory()
  else {
    const made = await createPostgresDatabase({ isEmpty: true })
    drop = made.drop
    database = await openDatabase({ databaseUrl: made.databaseUrl, dataDir: '', poolSize: 2 })
  }
  const before = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0019'))
  await migrate(database.db, { known: before })
  await writeOldLog(database.db)
  await migrate(database.db)
})
afterAll(async () => {
  await database.close()
  await drop?.()
})

/** 100 rows of each of two chains and 3 of administrators, of which the last ones wait for their seal. */
async function writeOldLog(db: Db): Promise<void> {
  await sql`insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select case when i % 2 = 0 then 'app' end, 'alice', 'a-' || i % 7, 'test_row', 'row ' || i, now() - (200 - i) * interval '1 day'
    from generate_series(1, 200) i`.execute(db)
  await sql`insert into admin_event (username, action, target, before, occurred_at)
    select 'admin', 'PUT /x', 'target ' || i, '{}', now() - i * interval '1 day' from generate_series(1, 3) i`.execute(db)
  const devices = sql`select sequence, application_id as a, user_id as b, activation_id as c, event_type as d, event_data as e,
    encode(timestamptz_send(occurred_at), 'hex') as f from audit_event where `
  const administrators = sql`select sequence, username as a, action as b, target as c, before as d, after as e,
    encode(timestamptz_send(occurred_at), 'hex') as f from admin_event where sequence <= 2`
  await sealAsBefore(db, 'application:app', sql`${devices} application_id = 'app' and sequence <= 195`)
  // Sealed in another order than they were numbered.
  await sealAsBefore(
    db,
    'no-application',
    sql`${devices} application_id is null and sequence <= 195 order by sequence % 50, sequence`,
  )
  await sealAsBefore(db, 'administration', administrators)
}

type Columns = Record<'sequence' | 'a' | 'b' | 'c' | 'd' | 'e' | 'f', string>

/** What the sealer did before: seals in a table of their own. */
async function sealAsBefore(db: Db, name: string, rows: ReturnType<typeof sql>): Promise<void> {
  let head: ChainPlace = CHAIN_BEGINNING
  const seals: ChainPlace[] = []
  const sealed = (await rows.execute(db)).rows as Columns[]
  for (const { sequence, a, b, c, d, e, f } of sealed) {
    head = sealRow(auditSeal, name, head, {
      sequence: Number(sequence),
      fields: [a, b, c, d, e, f],
      userKey: null,
      verifiedBy: null,
    })
    seals.push(head)
  }
  const { authentication } = authenticateChain(auditSeal, { name, start: CHAIN_BEGINNING, head })
  await sql`insert into audit_chain (name, start_position, start_seal, head_position, head_seal, authentication)
    values (${name}, 0, ${CHAIN_BEGINNING.seal}, ${head.position}, ${head.seal}, ${authentication})`.execute(db)
  for (const [i, { position, seal }] of seals.entries())
    await sql`insert into audit_seal (chain_id, position, sequence, seal)
      select chain_id, ${position}, ${sealed[i]?.sequence}, ${seal} from audit_chain where name = ${name}`.execute(db)
}

const verify = (db: Db = database.db) => verifyAudit({ db, installationKeys })
const counts = async (db?: Db) => {
  const { isIntact, chains } = await verify(db)
  return { isIntact, chains: chains.map(({ chain, sealed, unsealed }) => [chain, sealed, unsealed]) }
}
const createSealer = () =>
  createAuditSealer({
    db: database.db,
    databaseKind: database.kind,
    platform: systemPlatform,
    events: createEvents(createLog('silent', process.stderr)),
    installationKeys,
    settings: { auditRetentionDays: 365, auditPartitionDays: 30, adminAuditRetentionDays: 365 },
  })

test('what was sealed verifies at once, in partitions of its time', async () => {
  expect(await counts()).toEqual({
    isIntact: true,
    chains: [
      ['administration', 2, 1],
      ['application:app', 97, 0],
      ['no-application', 98, 0],
    ],
  })
  expect((await findPartitions(database.db)).length).toBeGreaterThanOrEqual(7)
  const altered = await lookAndUndo(
    database.db,
    async (tx) => void (await sql`update audit_log set user_id = 'bob' where sequence = 100`.execute(tx)),
    verify,
  )
  expect(altered.chains.map(({ fault }) => fault)).toEqual([
    undefined,
    { problem: 'the row was changed or moved', position: 50, sequence: 100 },
    undefined,
  ])
})

test('what waited, and what a process of the version before still writes, is sealed once', async () => {
  await sql`insert into audit_event (application_id, activation_id, event_type, event_data, occurred_at)
    values ('app', 'a-1', 'test_row', 'written by the version before', now())`.execute(database.db)
  await Promise.all([createSealer()(), createSealer()(), createSealer()()])
  expect(await counts()).toEqual({
    isIntact: true,
    chains: [
      ['administration', 3, 0],
      ['application:app', 101, 0],
      ['no-application', 100, 0],
    ],
  })
  const { rows } = await sql`select (select count(*)::int from audit_event) as old, count(*)::int as "all",
    count(distinct sequence)::int as "different" from audit_trail`.execute(database.db)
  expect(rows).toEqual([{ old: 0, all: 201, different: 201 }])
})
