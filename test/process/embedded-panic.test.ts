// An embedded database that panics ends its process, and the next start has everything that was committed. The log finds no room here because the
// system limits the size of a file.
import { spawnSync } from 'node:child_process'
import { sql } from 'kysely'
import { afterEach, expect, test } from 'vitest'
import { openDatabase } from '../../src/storage/database/database.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'
import { createInstallation, endEverything } from '../helpers/process.ts'

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
  expect(stderr).toContain('Error: the embedded database ended: could not write to')

  const database = await openDatabase({ dataDir, poolSize: 1 })
  const { rows } = await sql<{ kept: number }>`select max(kept) as kept from kept`.execute(database.db)
  expect(rows).toEqual([{ kept: Number(stdout.trim().split('\n').at(-1)) }])
  await database.close()
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
