// Once a run: a migrated, empty embedded database, so that each test file loads it instead of making its own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { Kysely, PGliteDialect } from 'kysely'
import { migrate } from '../../src/storage/migrate.ts'
import type { Schema } from '../../src/storage/schema.ts'

let folder = ''

export async function setup(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'pawl-test-'))
  const path = join(folder, 'template.tar')
  const pglite = await PGlite.create()
  await migrate(new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }) }))
  const dump = await pglite.dumpDataDir('none')
  writeFileSync(path, Buffer.from(await dump.arrayBuffer()))
  await pglite.close()
  // Workers inherit the environment.
  process.env['PAWL_TEST_TEMPLATE'] = path
}

export const teardown = (): void => rmSync(folder, { recursive: true })
