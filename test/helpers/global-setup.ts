// Makes a migrated, empty database once a run, which each test loads or copies, and an empty home folder.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { Kysely, PGliteDialect } from 'kysely'
import { openDatabase } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import type { Schema } from '../../src/storage/database/schema.ts'
import { createPostgresDatabase, serverUrl } from './app.ts'
import { makeHostileServer } from './hostile.ts'

let remove: () => void | Promise<void> = () => undefined
const home = mkdtempSync(join(tmpdir(), 'pawl-test-home-'))

/** Sets PAWL_TEST_TEMPLATE, which workers inherit: a folder, or the name of a database if the tests run on PostgreSQL. */
export async function setup(): Promise<void> {
  // The real home folder may have a credential and phones of the account that runs the tests.
  process.env['HOME'] = home
  for (const name of ['XDG_CONFIG_HOME', 'XDG_DATA_HOME']) delete process.env[name]
  process.env['PAWL_TEST_TEMPLATE'] = await (serverUrl() === undefined ? makeFolder() : makeDatabase())
}

export async function teardown(): Promise<void> {
  await remove()
  rmSync(home, { recursive: true, force: true })
}

/**
 * Makes a folder with `data`, a data directory as a stopped server leaves it but without keys, and `memory.tar`, the same for lendInstance. Each
 * worker unpacks it several times, so it is small: log segments have 1 MB in place of 16, and PostgreSQL's template databases are missing.
 */
async function makeFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-test-'))
  remove = () => rmSync(folder, { recursive: true })
  mkdirSync(join(folder, 'data'), { mode: 0o700 })
  const pglite = await PGlite.create(join(folder, 'data', 'database'), { initDbStartParams: ['--wal-segsize=1'] })
  await migrate(new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }) }))
  for (const name of ['template0', 'template1']) {
    await pglite.query('update pg_database set datistemplate = false where datname = $1', [name])
    await pglite.query(`drop database ${name}`)
  }
  await pglite.query('checkpoint')
  const dump = await pglite.dumpDataDir('none')
  writeFileSync(join(folder, 'memory.tar'), Buffer.from(await dump.arrayBuffer()))
  await pglite.close()
  return folder
}

async function makeDatabase(): Promise<string> {
  const server = serverUrl()
  if (server !== undefined && process.env['PAWL_TEST_DATABASE_HOSTILE']) {
    const { empty, migrated, roleUrl, drop: dropAll } = await makeHostileServer(server)
    remove = dropAll
    Object.assign(process.env, { PAWL_TEST_EMPTY_TEMPLATE: empty, PAWL_TEST_ROLE_URL: roleUrl })
    return migrated
  }
  const { databaseUrl, name, drop } = await createPostgresDatabase({ isEmpty: true })
  remove = drop
  const { db, close } = await openDatabase({ databaseUrl, dataDir: '', poolSize: 1 })
  await migrate(db)
  await close()
  return name
}
