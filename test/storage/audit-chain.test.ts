// Sealing and verification of the audit log against somebody who writes to the database (cloud §7).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuditSealer } from '../../src/domain/audit/seal.ts'
import { type AuditReport, type NotedHead, verifyAudit } from '../../src/domain/audit/verification.ts'
import { lockLog } from '../../src/storage/audit/chain.ts'
import { findPartitions } from '../../src/storage/audit/partitions.ts'
import { findUnsealed } from '../../src/storage/audit/rows.ts'
import { type Db, inTransaction, type Tx } from '../../src/storage/database/database.ts'
import { serverUrl, startTestServer, type TestServer } from '../helpers/app.ts'
import { lookAndUndo, sealAll, writeRow } from '../helpers/audit.ts'
import { createBank } from '../helpers/bank.ts'
import { expectOk, openWorld } from '../helpers/world.ts'

const DAY = 86_400_000
const PARTITION_DAYS = 30
const isPostgres = serverUrl() !== undefined

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
  const bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  for (const id of ['one', 'two']) expectOk(await bank.createApplication(id))
  for (let i = 1; i <= 5; i++) {
    await writeRow(server.context, server.context.db, 'one', `row ${i} of one`)
    await writeRow(server.context, server.context.db, 'two', `row ${i} of two`)
    await writeRow(server.context, server.context.db, null, `row ${i} of nobody`)
  }
  await sealAll(server.context)
})
afterAll(() => server.close())

const verify = (db: Db = server.context.db, noted: readonly NotedHead[] = []): Promise<AuditReport> =>
  verifyAudit({ ...server.context, db }, noted)

/** What verification says of each chain that is not as it was, after something was done that is then undone. */
const faultsAfter = (act: (tx: Tx) => Promise<unknown>, noted: readonly NotedHead[] = []): Promise<Record<string, unknown>> =>
  lookAndUndo(
    server.context.db,
    async (tx) => void (await act(tx)),
    async (tx) => {
      const { isIntact, chains } = await verify(tx, noted)
      const broken = chains.filter((chain) => !chain.isIntact)
      expect(isIntact).toBe(broken.length === 0)
      return Object.fromEntries(broken.map(({ chain, fault }) => [chain, fault]))
    },
  )

/** The sequence of the nth row of an application. */
async function sequenceOf(application: string | null, n: number, db: Db = server.context.db): Promise<number> {
  const { rows } = await sql<{ sequence: string }>`
    select sequence from audit_trail where event_data = ${`row ${n} of ${application ?? 'nobody'}`}`.execute(db)
  return Number(rows[0]?.sequence)
}

const run = (tx: Db, statement: string) => sql.raw(statement).execute(tx)

test('rows are sealed in chains: one for each application, one for rows without, one for the administration', async () => {
  const report = await verify()
  expect(report.isIntact).toBe(true)
  expect(report.chains.map(({ chain, sealed, unsealed }) => [chain, sealed, unsealed])).toEqual([
    ['administration', 2, 0],
    ['application:one', 5, 0],
    ['application:two', 5, 0],
    ['no-application', 5, 0],
  ])
  for (const { headSeal } of report.chains) expect(headSeal).toMatch(/^[0-9a-f]{64}$/)
})

describe('verification names the row', () => {
  test.each([
    ['application_id', "'three'"],
    ['user_id', "'bob'"],
    ['user_id', 'null'],
    ['user_id', "''"],
    ['activation_id', "'a-2'"],
    ['event_type', "'signature_ok'"],
    ['event_data', "event_data || ' '"],
    ['occurred_at', "occurred_at + interval '1 microsecond'"],
    ['occurred_at', "'infinity'"],
  ])('whose %s was set to %s', async (column, value) => {
    const sequence = await sequenceOf('one', 3)
    const faults = await faultsAfter((tx) => run(tx, `update audit_log set ${column} = ${value} where sequence = ${sequence}`))
    expect(faults['application:one']).toEqual({ problem: 'the row was changed or moved', position: 3, sequence })
  })

  test.each(['username', 'action', 'target', 'before', 'after'])('of an administrator whose %s was changed', async (column) => {
    const faults = await faultsAfter((tx) => run(tx, `update admin_event set ${column} = '{}' where sequence = 2`))
    expect(faults).toEqual({ administration: { problem: 'the row was changed or moved', position: 2, sequence: 2 } })
  })

  test('where text moved from one column to the next', async () => {
    const sequence = await sequenceOf('one', 2)
    const faults = await faultsAfter((tx) =>
      run(tx, `update audit_log set activation_id = 'a-1t', event_type = 'est_row' where sequence = ${sequence}`),
    )
    expect(faults['application:one']).toMatchObject({ position: 2, sequence })
  })

  test('that was deleted', async () => {
    const sequence = await sequenceOf('one', 4)
    const faults = await faultsAfter((tx) => run(tx, `delete from audit_log where sequence = ${sequence}`))
    expect(faults).toEqual({ 'application:one': { problem: 'the row or its seal is missing', position: 4 } })
  })

  test('of an administrator that lost its seal', async () => {
    const faults = await faultsAfter((tx) => run(tx, 'update admin_event set position = null, seal = null where sequence = 1'))
    expect(faults).toEqual({ administration: { problem: 'the row or its seal is missing', position: 1 } })
  })

  test('whose seal was changed', async () => {
    const sequence = await sequenceOf('two', 1)
    const faults = await faultsAfter((tx) =>
      run(tx, `update audit_log set seal = decode(repeat('00', 32), 'hex') where sequence = ${sequence}`),
    )
    expect(faults).toEqual({ 'application:two': { problem: 'the row was changed or moved', position: 1, sequence } })
  })

  test('that changed places with another, by its content or by its seal', async () => {
    const [second, third] = [await sequenceOf('one', 2), await sequenceOf('one', 3)]
    const contents = await faultsAfter((tx) =>
      run(
        tx,
        `update audit_log a set event_data = b.event_data, occurred_at = b.occurred_at from audit_log b
         where (a.sequence, b.sequence) in ((${second}, ${third}), (${third}, ${second}))`,
      ),
    )
    expect(contents).toEqual({ 'application:one': { problem: 'the row was changed or moved', position: 2, sequence: second } })
    const seals = await faultsAfter(async (tx) => {
      for (const [from, to] of [
        [2, 99],
        [3, 2],
        [99, 3],
      ])
        await run(tx, `update audit_log set position = ${to} where position = ${from} and ${chainIs('application:one')}`)
    })
    expect(seals).toEqual({ 'application:one': { problem: 'the row was changed or moved', position: 2, sequence: third } })
  })

  test('that was moved to another application', async () => {
    const sequence = await sequenceOf('one', 5)
    const faults = await faultsAfter((tx) => run(tx, `update audit_log set application_id = 'two' where sequence = ${sequence}`))
    expect(faults).toEqual({ 'application:one': { problem: 'the row was changed or moved', position: 5, sequence } })
    const moved = await faultsAfter((tx) =>
      run(
        tx,
        `update audit_log set application_id = 'two', position = 6, chain_id = (select chain_id from audit_chain where name = 'application:two')
         where sequence = ${sequence}`,
      ),
    )
    expect(moved).toEqual({
      'application:one': { problem: 'the end of the chain is missing', position: 5 },
      'application:two': { problem: 'rows are sealed beyond the head of the chain', position: 6 },
    })
  })

  test.each([
    ['at a place that is taken', 3, 'a row was added at a place that is taken'],
    ['before the first one', 0, 'the row was added to rows that are sealed'],
  ])('that was added %s', async (_, position, problem) => {
    const faults = await faultsAfter((tx) => run(tx, forge(`chain_id`, position)))
    expect(faults).toEqual({ 'application:one': { problem, ...(position > 0 && { position }), sequence: 9_999 } })
  })

  test('that was added to a chain that there is not', async () => {
    const faults = await faultsAfter((tx) => run(tx, forge('77', 1)))
    expect(faults).toEqual({ 'application:one': { problem: 'the row was added to rows that are sealed', sequence: 9_999 } })
  })
})

describe('verification notices', () => {
  test('that the end of a chain was cut', async () => {
    const cut = (tx: Tx) => run(tx, `delete from audit_log where position > 3 and ${chainIs('application:one')}`)
    expect(await faultsAfter(cut)).toEqual({ 'application:one': { problem: 'the end of the chain is missing', position: 4 } })
  })

  test.each([
    "head_seal = decode(repeat('11', 32), 'hex')",
    'head_position = head_position - 1',
    'start_position = 1, start_seal = (select seal from audit_log l where l.chain_id = audit_chain.chain_id and position = 1)',
    "authentication = decode(repeat('22', 32), 'hex')",
  ])('that the state of a chain was set to %s', async (change) => {
    const faults = await faultsAfter((tx) => run(tx, `update audit_chain set ${change} where name = 'application:one'`))
    expect(faults).toEqual({ 'application:one': { problem: 'start or head of the chain was changed' } })
  })

  test('that a chain was removed while its rows are there', async () => {
    const faults = await faultsAfter((tx) => run(tx, `delete from audit_chain where name = 'application:one'`))
    expect(faults).toMatchObject({ 'application:one': { sequence: await sequenceOf('one', 1) } })
    const administration = await faultsAfter((tx) => run(tx, `delete from audit_chain where name = 'administration'`))
    expect(administration).toEqual({ administration: { problem: 'the row was added to rows that are sealed', sequence: 1 } })
  })

  test('by a head that was noted elsewhere that a chain was cut together with its state, or is another one, or gone', async () => {
    const { db } = server.context
    const older = await readState(db)
    const noted = async () =>
      (await verify()).chains.map(({ chain, headPosition, headSeal }) => ({ chain, position: headPosition, seal: headSeal }))
    const before = await noted()
    await writeRow(server.context, db, 'one', 'row 6 of one')
    await sealAll(server.context)
    const after = await noted()
    expect((await verify(db, [...before, ...after])).isIntact).toBe(true)
    const sequence = await sequenceOf('one', 6)
    const cut = async (tx: Tx) => {
      await run(tx, `delete from audit_log where sequence = ${sequence}`)
      await sql`update audit_chain set head_position = ${older.position}, head_seal = ${older.seal}, authentication = ${older.authentication}
        where name = 'application:one'`.execute(tx)
    }
    expect(await faultsAfter(cut)).toEqual({})
    expect(await faultsAfter(cut, after)).toEqual({
      'application:one': { problem: 'the chain ends before the noted head', position: 6 },
    })
    const other = [{ chain: 'application:two', position: 3, seal: '00'.repeat(32) }]
    expect(await faultsAfter(async () => undefined, other)).toEqual({
      'application:two': { problem: 'the chain is not the one of the noted head', position: 3 },
    })
    const gone = [{ chain: 'application:gone', position: 1, seal: '00'.repeat(32) }]
    expect(await faultsAfter(async () => undefined, gone)).toMatchObject({ 'application:gone': { position: 1 } })
  })

  test('rows that are not sealed yet, and does not take them for altered', async () => {
    const report = await lookAndUndo(server.context.db, (tx) => writeRow(server.context, tx, 'two', 'new'), verify)
    expect(report.isIntact).toBe(true)
    expect(report.chains.find(({ chain }) => chain === 'application:two')).toMatchObject({ sealed: 5, unsealed: 1 })
  })
})

describe('the sealer', () => {
  test('seals each row once, however many of them work at the same time', async () => {
    const { context } = server
    for (let i = 0; i < 40; i++) await writeRow(context, context.db, i % 2 ? 'many' : 'more', `${i}`)
    const sealers = Array.from({ length: 4 }, () => createAuditSealer(context))
    await Promise.all(sealers.map((seal) => sealAll(context, seal)))
    const report = await verify()
    expect(report.isIntact).toBe(true)
    expect(
      report.chains.filter(({ chain }) => /:(many|more)$/.test(chain)).map(({ sealed, unsealed }) => [sealed, unsealed]),
    ).toEqual([
      [20, 0],
      [20, 0],
    ])
  })

  test('takes several batches for more rows than fit in one', async () => {
    const { context } = server
    await run(
      context.db,
      `insert into audit_pending (application_id, activation_id, event_type, event_data, occurred_at)
       select 'bulk', 'x', 'bulk', i::text, now() from generate_series(1, 1203) i`,
    )
    await createAuditSealer(context)()
    await sealAll(context)
    expect((await verify()).chains.find(({ chain }) => chain === 'application:bulk')).toMatchObject({ sealed: 1203, unsealed: 0 })
  })

  test.runIf(isPostgres)('seals a row that becomes visible after higher ones were sealed', async () => {
    const { context } = server
    const committed = Promise.withResolvers<void>()
    const written = Promise.withResolvers<void>()
    const late = inTransaction(context.db, async (tx) => {
      await writeRow(context, tx, 'late', 'row 1 of late')
      written.resolve()
      await committed.promise
    })
    await written.promise
    await writeRow(context, context.db, 'late', 'row 2 of late')
    const seal = createAuditSealer(context)
    const sealedOf = async () => (await verify()).chains.find(({ chain }) => chain === 'application:late')?.sealed
    while ((await sealedOf()) !== 1) await seal()
    for (let i = 0; i < 4; i++) await seal()
    committed.resolve()
    await late
    while ((await sealedOf()) !== 2) await seal()
    expect(await verify()).toMatchObject({ isIntact: true })
    expect(await sealedOf()).toBe(2)
    const { rows } = await sql<{ sequence: string }>`
      select sequence from audit_log where ${sql.raw(chainIs('application:late'))} order by position`.execute(context.db)
    expect(rows.map(({ sequence }) => Number(sequence))).toEqual([await sequenceOf('late', 2), await sequenceOf('late', 1)])
  })

  test.skipIf(isPostgres)('begins anew when a backup is restored into another cluster under a running process', async () => {
    const other = await startTestServer({ worksInBackground: false })
    let { db } = server.context
    const parts = {
      ...server.context,
      get db() {
        return db
      },
    }
    const seal = createAuditSealer(parts)
    await writeRow(server.context, db, 'one', 'row of the lost cluster')
    await seal()
    // Its rows have lower numbers than those that the sealer has seen.
    db = other.context.db
    await writeRow(server.context, db, 'restored', 'row 1 of restored')
    await seal()
    const restored = { chain: 'application:restored', sealed: 1, unsealed: 0, isIntact: true }
    expect((await verifyAudit(parts)).chains).toMatchObject([restored])
    await other.close()
  })

  test.runIf(isPostgres)('lets another one go on when it has the lock, and no request waits for it', async () => {
    const { context } = server
    const admin = `${server.admin.user}:${server.admin.password}`
    const world = await openWorld({ urls: [server.url], admin, advance: () => undefined, close: async () => undefined }, 'one')
    const { phone } = await world.activePhone('3.3')
    await sealAll(context)
    await inTransaction(context.db, async (tx) => {
      while ((await lockLog(tx, 'devices')) === undefined);
      await run(tx, 'select 1 from audit_chain for update')
      expectOk(await phone.send(phone.prepareValidation()))
      await createAuditSealer(context)()
      // While the lock is held: the server's own sealer waits for it as well.
      const unsealed = await findUnsealed(context.db, 'devices', 1_000, [])
      expect(unsealed.map(({ fields }) => fields[3])).toContain('signature_ok')
    })
    await sealAll(context)
    expect((await verify()).isIntact).toBe(true)
  })

  test('adds nothing to a chain that was altered, says so once, and goes on with the others', async () => {
    const { context } = server
    const count = async () => (await verify()).chains.map(({ chain, unsealed }) => [chain, unsealed])
    await sealAll(context)
    const state = await readState(context.db)
    await run(context.db, `update audit_chain set head_position = 2 where name = 'application:one'`)
    const lines = () => server.log().split('an audit chain was altered').length - 1
    const before = lines()
    const seal = createAuditSealer(context)
    for (const id of ['one', 'two']) await writeRow(context, context.db, id, 'after')
    const isDone = async () => (await count()).some(([chain, unsealed]) => chain === 'application:two' && unsealed === 0)
    do await seal()
    while (!(await isDone()))
    await seal()
    // The server's own sealer may have said so as well.
    expect(lines() - before).toBeGreaterThanOrEqual(1)
    expect(lines() - before).toBeLessThanOrEqual(2)
    expect(await count()).toEqual(
      expect.arrayContaining([
        ['application:one', 1],
        ['application:two', 0],
      ]),
    )
    // First the row: the server's own sealer would seal it as soon as the chain is whole.
    await run(context.db, `delete from audit_pending where event_data = 'after' and application_id = 'one'`)
    await run(context.db, `update audit_chain set head_position = ${state.position} where name = 'application:one'`)
    expect((await verify()).isIntact).toBe(true)
  })
})

describe('partitions', () => {
  test('are made ahead, one at a time by however many processes, and a row finds one after a long pause', async () => {
    const { context, clock } = server
    const before = await findPartitions(context.db)
    clock.advance(5 * PARTITION_DAYS * DAY)
    await writeRow(context, context.db, 'one', 'after a pause')
    await Promise.all(Array.from({ length: 4 }, () => createAuditSealer(context)()))
    await sealAll(context)
    const after = await findPartitions(context.db)
    expect(after.slice(0, -1)).toEqual(before)
    expect(after.at(-1)?.endsAt.getTime()).toBeGreaterThan(context.platform.now() + DAY)
    expect((await verify()).isIntact).toBe(true)
    await createAuditSealer(context)()
    expect(await findPartitions(context.db)).toEqual(after)
  })
})

describe('retention', () => {
  test('removes rows whose time has come from the front, and what is left still verifies', async () => {
    const { context, clock } = server
    await sealAll(context)
    const noted = (await verify()).chains.map(({ chain, headPosition, headSeal }) => ({
      chain,
      position: headPosition,
      seal: headSeal,
    }))
    clock.advance((365 + 2 * PARTITION_DAYS) * DAY)
    await writeRow(context, context.db, 'one', 'kept')
    await sealAll(context)
    const seal = createAuditSealer(context)
    const isDone = async () =>
      (await verify()).chains.every(({ chain, sealed }) => sealed === (chain === 'application:one' ? 1 : 0))
    do await seal()
    while (!(await isDone()))
    const report = await verify(context.db, noted)
    expect(report.isIntact).toBe(true)
    const one = report.chains.find(({ chain }) => chain === 'application:one')
    expect(one).toMatchObject({ sealed: 1, startPosition: (one?.headPosition ?? 0) - 1 })
    const { rows } = await sql<{ data: string }>`select event_data as data from audit_trail`.execute(context.db)
    expect(rows).toEqual([{ data: 'kept' }])
    expect((await sql`select from admin_event`.execute(context.db)).rows).toEqual([])
    const moved = await faultsAfter((tx) =>
      run(tx, `update audit_chain set start_position = start_position + 1 where name = 'application:one'`),
    )
    expect(moved['application:one']).toMatchObject({ problem: expect.any(String) })
  })

  test('keeps a partition in which a row was changed, and what comes after it', async () => {
    const { context, clock } = server
    await writeRow(context, context.db, 'dated', 'row 1 of dated')
    await sealAll(context)
    const sequence = await sequenceOf('dated', 1)
    await run(context.db, `update audit_log set occurred_at = '2001-01-01' where sequence = ${sequence}`)
    clock.advance((365 + 2 * PARTITION_DAYS) * DAY)
    await createAuditSealer(context)()
    expect((await verify()).chains.find(({ chain }) => chain === 'application:dated')).toMatchObject({
      isIntact: false,
      fault: { position: 1, sequence },
    })
  })
})

describe('retention and rows that somebody put into an old partition', () => {
  test('keeps them until their own time has come', async () => {
    const own = await startTestServer({ worksInBackground: false })
    const { context, clock } = own
    const seal = createAuditSealer(context)
    await writeRow(context, context.db, 'one', 'old')
    await sealAll(context, seal)
    const [first] = await findPartitions(context.db)
    const endsAt = first?.endsAt.getTime() ?? Number.NaN
    // Five days before the partition of the old row is over.
    clock.advance(endsAt + 360 * DAY - context.platform.now())
    await writeRow(context, context.db, 'one', 'young')
    await sealAll(context, seal)
    const young = () => sql`select from audit_log where event_data = 'young'`.execute(context.db)
    const isIntact = async () => (await verifyAudit(context)).isIntact
    await sql`update audit_log set sealed_at = ${new Date(endsAt - DAY)} where event_data = 'young'`.execute(context.db)
    clock.advance(10 * DAY)
    await seal()
    expect((await young()).rows).toHaveLength(1)
    expect(await isIntact()).toBe(true)
    clock.advance(365 * DAY)
    await seal()
    await seal()
    expect((await young()).rows).toEqual([])
    expect(await isIntact()).toBe(true)
    await own.close()
  })
})

describe('retention with many chains, and a clock that is set back', () => {
  // A server of its own in memory: what is done to the clock here stays.
  const open = () => startTestServer({ worksInBackground: false })

  test('ends partitions of more chains than one round follows', async () => {
    const own = await open()
    const { context, clock } = own
    await run(
      context.db,
      `insert into audit_pending (application_id, activation_id, event_type, event_data, occurred_at)
       select 'app-' || i, 'x', 'many', i::text, now() from generate_series(1, 120) i`,
    )
    await sealAll(context)
    clock.advance((365 + 2 * PARTITION_DAYS) * DAY)
    const seal = createAuditSealer(context)
    for (let round = 0; round < 4; round += 1) await seal()
    const { rows } = await sql<{ count: number }>`select count(*)::int as count from audit_log`.execute(context.db)
    expect(rows).toEqual([{ count: 0 }])
    expect((await verifyAudit(context)).isIntact).toBe(true)
    await own.close()
  })

  test.each([
    ['before the first row', (_: TestServer) => Promise.resolve()],
    ['after rows were sealed', (own: TestServer) => writeRow(own.context, own.context.db, 'one', 'before')],
  ])('seals what comes after the clock was ahead for a moment, %s', async (_, begin) => {
    const own = await open()
    const { context, clock } = own
    await begin(own)
    await sealAll(context)
    clock.advance(500 * DAY)
    await createAuditSealer(context)()
    clock.advance(-500 * DAY)
    await writeRow(context, context.db, 'one', 'after')
    await createAuditSealer(context)()
    const { rows } = await sql`select from audit_log where event_data = 'after'`.execute(context.db)
    expect(rows).toHaveLength(1)
    await own.close()
  })
})

/** A row that stands where no sealer put it. */
const forge = (chainId: string, position: number): string =>
  `insert into audit_log (position, sequence, sealed_at, occurred_at, chain_id, activation_id, application_id, event_type, event_data, seal)
   select ${position}, 9999, sealed_at, occurred_at, ${chainId}, activation_id, application_id, event_type, event_data, seal
   from audit_log l where event_data = 'row 3 of one'`

const chainIs = (name: string): string => `chain_id = (select chain_id from audit_chain where name = '${name}')`

async function readState(db: Db): Promise<{ position: number; seal: Buffer; authentication: Buffer }> {
  const { rows } = await sql<{ position: string; seal: Buffer; authentication: Buffer }>`
    select head_position as position, head_seal as seal, authentication from audit_chain where name = 'application:one'`.execute(
    db,
  )
  const [row] = rows
  if (row === undefined) throw new Error('no such chain')
  return { ...row, position: Number(row.position) }
}

test('what cannot be sealed of devices keeps no row of administrators from its seal', async () => {
  const { context } = server
  const countUnsealed = async () => (await sql`select from admin_event where position is null`.execute(context.db)).rows.length
  await sealAll(context)
  await run(context.db, "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$")
  await run(context.db, 'create trigger refuse before delete on audit_pending for each row execute function refuse()')
  await writeRow(context, context.db, 'one', 'cannot be sealed')
  const bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.call('PATCH', '/admin/applications/two', {}))
  await expect(createAuditSealer(context)()).rejects.toThrow('refused')
  expect(await countUnsealed()).toBe(0)
  await run(context.db, 'drop trigger refuse on audit_pending')
  await run(context.db, 'drop function refuse')
  await sealAll(context)
})
