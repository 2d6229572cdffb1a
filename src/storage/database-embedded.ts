// The embedded database (PGlite) with what keeps it safe and the server responsive: a lock on the directory, a turn of the
// event loop before each query, the parsers of node-postgres, small buffers.
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { PGlite, types } from '@electric-sql/pglite'
import type { PGliteDialectConfig } from 'kysely'
import { StartError } from '../lib/errors.ts'
import { lockDirectory } from './directory-lock.ts'

type PGliteForKysely = Exclude<PGliteDialectConfig['pglite'], (...args: never[]) => unknown>

export interface Embedded {
  readonly pglite: PGliteForKysely
  /** Gives the directory back; after the instance is closed. */
  readonly release: () => Promise<void>
}

/**
 * Opens the database below `dataDir`, made with mode 0700 when missing; what the process writes from now on is for its user alone. Throws
 * StartError when other users have rights on the directory, or another process has it.
 */
export async function openEmbedded(dataDir: string): Promise<Embedded> {
  process.umask(0o077)
  makeDirectory(dataDir)
  refuseOpenDirectory(dataDir)
  const release = await lockDirectory(dataDir)
  try {
    const path = join(dataDir, 'database')
    const pglite = await PGlite.create(path, embeddedOptions)
    closeFiles(path)
    return { pglite: yieldBefore(pglite), release }
  } catch (error) {
    await release()
    throw error
  }
}

/** Makes the directory and its missing parents, for this user only. One level at a time: mkdir -p of Node never ends below /proc. */
function makeDirectory(path: string): void {
  try {
    if (!existsSync(dirname(path))) makeDirectory(dirname(path))
    if (!existsSync(path)) mkdirSync(path, { mode: 0o700 })
    accessSync(path, constants.W_OK)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`the data directory ${path} cannot be made or written; choose another PAWL_DATA_DIR`, { cause: error })
  }
}

/** A new database is unpacked with the modes of its archive, which let everyone read and write, whatever the umask. */
function closeFiles(path: string): void {
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && (statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  }
}

/** Another user who may enter can read what an earlier umask left open, or put a file in the place of another. */
function refuseOpenDirectory(path: string): void {
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) === 0) return
  throw new StartError(
    `the data directory ${path} is open to other users (mode ${mode.toString(8).padStart(4, '0')}): chmod 700 it, or name a folder in it that does not exist yet as PAWL_DATA_DIR`,
  )
}

/** A database in memory, with the same guards; made from `template`, the dump of an empty one, when there is one. */
export async function createInMemory(template?: Blob): Promise<Embedded> {
  const pglite = await PGlite.create({ ...embeddedOptions, ...(template && { loadDataDir: template }) })
  return { pglite: yieldBefore(pglite), release: async () => undefined }
}

const embeddedOptions = {
  parsers: {
    [types.INT8]: (value: string) => value,
    [types.BYTEA]: (value: string) => Buffer.from(value.slice(2), 'hex'),
  },
  // The default takes 350 to 900 MB of resident memory.
  postgresqlconf: ['shared_buffers=16MB'],
}

/**
 * PGlite answers in the same turn of the event loop: awaited queries in a row would starve timers and other requests.
 * A turn before each query costs about 5 %.
 */
function yieldBefore(pglite: PGlite): PGliteForKysely {
  return {
    get closed() {
      return pglite.closed
    },
    get ready() {
      return pglite.ready
    },
    get waitReady() {
      return pglite.waitReady
    },
    close: () => pglite.close(),
    query: async (text, parameters, options) => {
      await nextTurn()
      return pglite.query(text, parameters, options)
    },
    transaction: async (work) => {
      await nextTurn()
      // PGlite types the value as possibly undefined after a rollback; Kysely throws in that case.
      return pglite.transaction(work) as ReturnType<typeof work>
    },
  }
}
