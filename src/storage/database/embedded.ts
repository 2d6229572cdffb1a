// The embedded database (PGlite) with what keeps it safe and the server responsive: a lock on the directory, a turn of the
// event loop before each query, the parsers of node-postgres, small buffers. Another process gets a backup of it through that lock.
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzip as gunzipWithCallback, gzip as gzipWithCallback } from 'node:zlib'
import type { Socket } from 'node:net'
import { PGlite, types } from '@electric-sql/pglite'
import type { PGliteDialectConfig } from 'kysely'
import { StartError } from '../../lib/errors.ts'
import { lockDirectory, visitHolder } from './directory-lock.ts'
import { composeSet, parseBytea, parseTime, SESSION_SETTINGS } from './session-settings.ts'

type PGliteForKysely = Exclude<PGliteDialectConfig['pglite'], (...args: never[]) => unknown>

export interface Embedded {
  readonly pglite: PGliteForKysely
  /** A backup of all that is committed. */
  readonly copy: () => Promise<Uint8Array>
  /** Gives the directory back; after the instance is closed. */
  readonly release: () => Promise<void>
}

/**
 * Opens the database below `dataDir`, made with mode 0700 when missing; what the process writes from now on is for its user alone. Throws
 * StartError when other users have rights on the directory, or another process has it.
 */
export async function openEmbedded(dataDir: string): Promise<Embedded> {
  let opened: PGlite | undefined
  const release = await enterDirectory(dataDir, (socket) => serveBackup(socket, async () => opened && copyDatabase(opened)))
  try {
    const path = join(dataDir, FOLDER)
    const pglite = await openFiles(path)
    opened = pglite
    return { pglite: yieldBefore(pglite), copy: () => copyDatabase(pglite), release }
  } catch (error) {
    await release()
    throw error
  }
}

/** What PGlite says of files that are damaged, incomplete, of another version or of another user is its stack. */
async function openFiles(path: string): Promise<PGlite> {
  try {
    if (existsSync(path)) requireFiles(path)
    else await makeFiles(path)
    const pglite = await PGlite.create(path, embeddedOptions)
    await pglite.exec(composeSet(SESSION_SETTINGS))
    closeFiles(path)
    return pglite
  } catch (error) {
    throw new StartError(
      `PAWL_DATA_DIR: the database in ${path} cannot be opened (${describe(error)}); look at its files, their owner and the room on the disk, or put back a backup`,
      { cause: error },
    )
  }
}

/** Without this file PGlite takes the folder for an empty one, and makes a new database over what is left of the old one. */
function requireFiles(path: string): void {
  const files = readdirSync(path)
  if (files.length > 0 && !files.includes('PG_VERSION')) throw new Error('PG_VERSION is missing')
}

/** An empty database, or the one of an archive. Made beside `path`, so that a process that is killed meanwhile leaves none there. */
async function makeFiles(path: string, loadDataDir?: Blob): Promise<void> {
  const unfinished = `${path}.unpacked`
  rmSync(unfinished, { recursive: true, force: true })
  try {
    const pglite = await PGlite.create(unfinished, { ...embeddedOptions, ...(loadDataDir && { loadDataDir }) })
    await pglite.close()
    closeFiles(unfinished)
    renameSync(unfinished, path)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    throw error
  }
}

const describe = (error: unknown): string => {
  if (error instanceof Error) return 'code' in error ? String(error.code) : error.message.replace(/\s*\n[^]*$/, '')
  // What the file system below PGlite throws is an object with a number of WASI, without a text.
  const errno = typeof error === 'object' && error !== null && 'errno' in error ? Number(error.errno) : undefined
  return errno === undefined ? String(error) : (WASI_ERRORS[errno] ?? `file system error ${errno}`)
}

/** Of wasi_snapshot_preview1, `errno`: those of a disk, and of the rights on its files. */
const WASI_ERRORS: Readonly<Record<number, string>> = {
  2: 'EACCES',
  19: 'EDQUOT',
  20: 'EEXIST',
  22: 'EFBIG',
  29: 'EIO',
  31: 'EISDIR',
  33: 'EMFILE',
  41: 'ENFILE',
  44: 'ENOENT',
  51: 'ENOSPC',
  54: 'ENOTDIR',
  63: 'EPERM',
  69: 'EROFS',
}

/**
 * Makes the database of a backup, the bytes that `copy` gave, below `dataDir`. Throws StartError when there is a database, and an Error for
 * bytes that are no backup or when there is no room; then nothing is left of it. A process that is killed meanwhile leaves no database, and
 * the next call begins anew.
 */
export async function restoreEmbedded(dataDir: string, backup: Uint8Array): Promise<void> {
  const release = await enterDirectory(dataDir)
  const path = join(dataDir, FOLDER)
  try {
    if (existsSync(path)) throw new StartError(`there is a database in ${dataDir} already; choose another PAWL_DATA_DIR`)
    await unpack(path, backup)
  } finally {
    await release()
  }
}

async function unpack(path: string, backup: Uint8Array): Promise<void> {
  try {
    await makeFiles(path, new Blob([new Uint8Array(await gunzip(backup))], { type: 'application/x-tar' }))
  } catch (error) {
    throw new Error(
      `no database can be made of the backup (${describe(error)}); look at whether the file is whole, and at the room on the disk`,
      { cause: error },
    )
  }
}

/**
 * All files of the database, packed. They are read in one turn of the event loop, between two messages to the database, so they are what a
 * process leaves behind that is killed at that moment: all that was committed, and nothing that was not.
 */
async function copyDatabase(pglite: PGlite): Promise<Uint8Array> {
  const packed = await pglite.dumpDataDir('none')
  return gzip(new Uint8Array(await packed.arrayBuffer()))
}

/** Makes the directory when it is missing, and takes its lock. What the process writes from now on is for its user alone. */
function enterDirectory(dataDir: string, onVisit?: Parameters<typeof lockDirectory>[1]): Promise<() => Promise<void>> {
  process.umask(0o077)
  makeDirectory(dataDir)
  refuseOpenDirectory(dataDir)
  return lockDirectory(dataDir, onVisit)
}

/** Makes the directory and its missing parents, for this user only. One level at a time: mkdir -p of Node never ends below /proc. */
function makeDirectory(path: string): void {
  try {
    if (!existsSync(dirname(path))) makeDirectory(dirname(path))
    if (!existsSync(path)) mkdirSync(path, { mode: 0o700 })
    accessSync(path, constants.W_OK)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(
      `the data directory ${path} cannot be made or written (${describe(error)}); choose another PAWL_DATA_DIR`,
      { cause: error },
    )
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
  await pglite.exec(composeSet(SESSION_SETTINGS))
  return { pglite: yieldBefore(pglite), copy: () => copyDatabase(pglite), release: async () => undefined }
}

const embeddedOptions = {
  parsers: {
    [types.INT8]: (value: string) => value,
    [types.BYTEA]: parseBytea,
    [types.TIMESTAMPTZ]: parseTime,
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
      let hasBegun = false
      const begin: typeof work = (transaction) => {
        hasBegun = true
        return work(transaction)
      }
      try {
        // PGlite types the value as possibly undefined after a rollback; Kysely throws in that case.
        return (await pglite.transaction(begin)) as Awaited<ReturnType<typeof work>>
      } catch (error) {
        if (hasBegun) throw error
        // Closed meanwhile. Kysely would wait for the beginning for ever, and leave the rejection to nobody: its first statement fails instead.
        return work({ query: () => Promise.reject(error) } as unknown as Parameters<typeof work>[0])
      }
    },
  }
}

/** Answers a visitor of the lock, who may also look only whether somebody is there. `copy` gives undefined before the database is open. */
function serveBackup(socket: Socket, copy: () => Promise<Uint8Array | undefined>): void {
  socket.unref()
  socket.setTimeout(QUESTION_MS, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.once('data', (question) => {
    socket.setTimeout(0)
    const answer = question.toString('latin1') === QUESTION ? copy() : undefined
    Promise.resolve(answer).then(
      (bytes) => (bytes === undefined ? socket.destroy() : send(socket, bytes)),
      () => socket.destroy(),
    )
  })
}

function send(socket: Socket, bytes: Uint8Array): void {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUIntBE(bytes.length, 0, LENGTH_BYTES)
  socket.write(length)
  socket.end(bytes)
}

/** A backup out of the process that has `dataDir`; undefined when there is none. Throws when it gives none, or not all of it. */
export async function fetchBackup(dataDir: string): Promise<Uint8Array | undefined> {
  const socket = await visitHolder(dataDir)
  if (socket === undefined) return undefined
  socket.write(QUESTION)
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  const [all, length] = [Buffer.concat(parts), Buffer.concat(parts).subarray(0, LENGTH_BYTES)]
  const bytes = all.subarray(LENGTH_BYTES)
  if (length.length < LENGTH_BYTES || bytes.length !== length.readUIntBE(0, LENGTH_BYTES))
    throw new Error('the server that has the database gave no backup; its log may say why')
  return bytes
}

const FOLDER = 'database'
const gzip = promisify<Uint8Array, Uint8Array>(gzipWithCallback)
const gunzip = promisify<Uint8Array, Uint8Array>(gunzipWithCallback)
const QUESTION = 'backup\n'
const QUESTION_MS = 1_000
const LENGTH_BYTES = 6
