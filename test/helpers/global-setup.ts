// Once a run: a migrated, empty embedded database, so that each test file loads it instead of making its own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { Kysely, PGliteDialect } from 'kysely'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../src/storage/migrate.ts'
import type { Schema } from '../../src/storage/schema.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    embeddedTemplate: string
  }
}

export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-test-'))
  const path = join(folder, 'template.tar')
  const pglite = await PGlite.create()
  await migrate(new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }) }))
  const dump = await pglite.dumpDataDir('none')
  writeFileSync(path, Buffer.from(await dump.arrayBuffer()))
  await pglite.close()
  project.provide('embeddedTemplate', path)
  return () => rmSync(folder, { recursive: true })
}
