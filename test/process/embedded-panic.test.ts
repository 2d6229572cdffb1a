// An embedded database that panics ends its process, and the next start has everything that was committed. The log finds no room here because the
// system limits the size of a file.
import { spawnSync } from 'node:child_process'
import { sql } from 'kysely'
import { afterEach, expect, test } from 'vitest'
import { openDatabase } from '../../src/storage/database/database.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'
import { createInstallation, endEverything, startPawl } from '../helpers/process.ts'

afterEach(endEverything)

test('a log that finds no room ends the process, and what was committed is there at the next start', async () => {
  const { dataDir } = await createInstallation('embedded', { isEmpty: true })
  await (await openDatabase({ dataDir, poolSize: 1 })).close()
  // 10 MB, in blocks of 512 bytes: a file of the log has 16 MB.
  const limited = ['-c', 'ulimit -f 20000; exec "$0" "$@"', process.execPath, '--input-type=module', '-e', WRITE]
  const { status, signal, stdout, stderr } = spawnSync('sh', limited, {
    env: { DATA_DIR: dataDir, DATABASE_MODULE: new URL('../../src/storage/database/database.ts', import.meta.url).href },
    encoding: 'utf8',
    timeout: PATIENCE_MS,
  })
  expect({ status, signal }, stderr).toEqual({ status: 1, signal: null })
  expect(stderr).toContain('Error: PAWL_DATA_DIR: the embedded database ended (could not write to')

  const database = await openDatabase({ dataDir, poolSize: 1 })
  const { rows } = await sql<{ kept: number }>`select max(kept) as kept from kept`.execute(database.db)
  expect(rows).toEqual([{ kept: Number(stdout.trim().split('\n').at(-1)) }])
  await database.close()
})

test('a command whose database panics says so in one line, and its exit code is that of a database that cannot be used', async () => {
  const { dataDir, env } = await createInstallation('embedded', { isEmpty: true })
  const server = await startPawl(env)
  await server.end('SIGTERM')
  const database = await openDatabase({ dataDir, poolSize: 1 })
  // So that whatever comes next is behind the first 4 MB of a file of the log, which has 16 MB, and in the same file.
  for (let isBehind = false; !isBehind; ) {
    await sql`select pg_logical_emit_message(true, 'pawl', repeat('x', 1000000))`.execute(database.db)
    const { rows } = await sql<{ offset: number }>`
      select file_offset as "offset" from pg_walfile_name_offset(pg_current_wal_insert_lsn())`.execute(database.db)
    isBehind = rows.every(({ offset }) => offset > 6e6 && offset < 12e6)
  }
  await database.close()
  const limited = ['-c', 'ulimit -f 8000; exec "$0" "$@"', process.execPath, 'bin/pawl.mjs', 'admin', 'reset']
  const { status, stdout, stderr } = spawnSync('sh', limited, { env, encoding: 'utf8', timeout: PATIENCE_MS })
  expect({ status, stdout }, stderr).toEqual({ status: 3, stdout: '' })
  expect(stderr).toMatch(
    /^PAWL_DATA_DIR: the embedded database ended \(could not write to .*\); look at the room on its disk.*\n$/,
  )
})

// Prints the number of each committed transaction. Another one waits meanwhile, as requests do.
const WRITE = `
import { sql } from 'kysely'
const { inTransaction, openDatabase } = await import(process.env.DATABASE_MODULE)
const { db } = await openDatabase({ dataDir: process.env.DATA_DIR, poolSize: 1 })
await sql\`create table kept (kept integer)\`.execute(db)
for (let i = 1; i < 100; i += 1) {
  const written = inTransaction(db, async (tx) => {
    await sql\`insert into kept values (\${i})\`.execute(tx)
    await sql\`select pg_logical_emit_message(true, 'pawl', repeat('x', 500000))\`.execute(tx)
  })
  await Promise.all([written, sql\`select 1\`.execute(db)])
  process.stdout.write(\`\${i}\\n\`)
}
`
