// A lent database is, byte for byte, as it was when it was opened: in its files and in its memory, so in its session too.
import { createHash } from 'node:crypto'
import { PGlite } from '@electric-sql/pglite'
import { afterEach, expect, test, vi } from 'vitest'
import { createInMemory } from '../../src/storage/database/embedded.ts'
import { takeImage } from '../helpers/database-image.ts'
import { readTemplate } from '../helpers/app.ts'
import { lendInstance } from '../helpers/lent-database.ts'

const opened = vi.spyOn(PGlite, 'create')
afterEach(() => opened.mockClear())

/** A template of its own, so that no other test has its databases. */
const newTemplate = async (): Promise<Blob> => new Blob([await readTemplate().arrayBuffer()])

/** Hashes of the memory, of each file of the database, and of the table of open files. */
async function stateOf(pglite: PGlite): Promise<ReadonlyMap<string, string>> {
  const { FS, HEAPU8 } = pglite.Module
  const files = FS as unknown as { readonly streams: readonly ({ readonly path: string; readonly position: number } | null)[] }
  const streams = files.streams.map((stream) => stream && [stream.path, stream.position])
  const state = new Map([
    ['memory', hash(HEAPU8)],
    ['open files', JSON.stringify(streams)],
  ])
  const visit = (folder: string): void => {
    for (const name of FS.readdir(folder)) {
      if (name === '.' || name === '..') continue
      const path = `${folder}/${name}`
      const { mode, size, mtime } = FS.stat(path)
      if (FS.isDir(mode)) visit(path)
      else state.set(path, `${mode} ${size} ${mtime.getTime()} ${hash(FS.readFile(path))}`)
    }
  }
  visit('/pglite')
  return state
}

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Leaves traces of all kinds. */
const CHANGES: readonly string[] = [
  'create table made (id int generated always as identity primary key, filler text)',
  `insert into made (filler) select repeat('x', 1000) from generate_series(1, 2000)`,
  'insert into application_version select * from application_version',
  'alter table webhook add column made int',
  'drop table activation cascade',
  'truncate operation cascade',
  `create function answer() returns int language plpgsql as 'begin return 42; end'`,
  'create temporary table brief as select answer()',
  'prepare kept as select 1',
  `set work_mem = '1GB'`,
  'select pg_advisory_lock(1)',
  'checkpoint',
  'begin',
  'delete from kysely_migration',
]

test('an image holds the memory, the files and which are open', async () => {
  const pglite = await PGlite.create({ loadDataDir: await newTemplate() })
  await pglite.exec('do $$ begin end $$')
  const before = await stateOf(pglite)
  const putBack = takeImage(pglite)
  for (let round = 0; round < 2; round += 1) {
    for (const change of CHANGES) await pglite.exec(change)
    await expect(pglite.exec('select 1 / 0')).rejects.toThrow('division by zero')
    const changed = await stateOf(pglite)
    expect([...changed.keys()]).not.toEqual([...before.keys()])
    for (const part of ['memory', 'open files']) expect(changed.get(part)).not.toBe(before.get(part))
    expect(putBack()).toBe(true)
    expect(await stateOf(pglite)).toEqual(before)
  }
  await pglite.close()
})

test('what comes back is lent again as it was', async () => {
  const open = lendInstance(await newTemplate())
  for (let round = 0; round < 3; round += 1) {
    const { pglite } = await createInMemory(open)
    const { rows } = await pglite.query(`select to_regclass('made') as made, current_setting('work_mem') as memory`)
    expect(rows).toEqual([{ made: null, memory: '4MB' }])
    for (const change of CHANGES) await pglite.query(change)
    await pglite.close()
    expect(opened).toHaveBeenCalledTimes(1)
  }
})

test('what is away is not lent, and at most four are kept', async () => {
  const open = lendInstance(await newTemplate())
  for (const total of [5, 6]) {
    const five = await Promise.all(Array.from({ length: 5 }, () => createInMemory(open)))
    expect(opened).toHaveBeenCalledTimes(total)
    await Promise.all(five.map(({ pglite }) => pglite.close()))
  }
})

test('what runs is waited for before the database is lent again', async () => {
  const open = lendInstance(await newTemplate())
  const { pglite } = await createInMemory(open)
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
  const work = pglite.transaction(async (tx) => {
    await tx.query('create table made ()')
    begin()
    await mayEnd
    return tx.query(`select to_regclass('made') is not null as "isMade"`)
  })
  await begun
  const closed = pglite.close()
  const { pglite: other } = await createInMemory(open)
  expect(opened).toHaveBeenCalledTimes(2)
  end()
  expect((await work)?.rows).toEqual([{ isMade: true }])
  await closed
  const { pglite: again } = await createInMemory(open)
  expect(opened).toHaveBeenCalledTimes(2)
  expect((await again.query(`select to_regclass('made') as made`)).rows).toEqual([{ made: null }])
  for (const each of [other, again]) await each.close()
})

test('a database that has loaded a library, or whose session takes no statement, is not lent again', async () => {
  const open = lendInstance(await newTemplate())
  const spoilt = [[`load 'dict_snowball'`], ['begin', 'select 1 / 0']]
  for (const [index, changes] of spoilt.entries()) {
    const { pglite } = await createInMemory(open)
    for (const change of changes) await pglite.query(change).catch(() => undefined)
    await pglite.close()
    await (await createInMemory(open)).pglite.close()
    expect(opened).toHaveBeenCalledTimes(index + 2)
  }
})
