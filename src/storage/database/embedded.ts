// Opens the embedded database (PGlite) safely: a lock on the directory, a turn of the event loop before each query, the parsers of node-postgres,
// small buffers. Another process gets a backup of the open database through the lock's socket.
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzip as gunzipWithCallback, gzip as gzipWithCallback } from 'node:zlib'
import type { Socket } from 'node:net'
import { PGlite, types } from '@electric-sql/pglite'
import type { PGliteDialectConfig } from 'kysely'
import { MORE_FILES, StartError } from '../../lib/errors.ts'
import { readFreeBytes, readWritableBytes } from '../../lib/disk.ts'
import { lockDirectory, visitHolder } from './directory-lock.ts'
import { composeSet, parseBytea, parseTime, SESSION_SETTINGS } from './session-settings.ts'

type PGliteForKysely = Exclude<PGliteDialectConfig['pglite'], (...args: never[]) => unknown>

/** What pawl uses of PGlite. */
export type Instance = Pick<PGlite, 'ready' | 'closed' | 'waitReady' | 'query' | 'transaction' | 'exec' | 'dumpDataDir' | 'close'>

export type OpenInstance = (options: typeof embeddedOptions) => Promise<Instance>

export interface Embedded {
  readonly pglite: PGliteForKysely
  /** Makes a backup of everything that is committed. */
  readonly copy: () => Promise<Uint8Array>
  /** Bytes that can still be written; undefined where the file system does not tell. Rejects when the disk takes no writes. */
  readonly writableBytes: () => Promise<number | undefined>
  /** Releases the directory; called after the instance is closed. */
  readonly release: () => Promise<void>
}

/**
 * Opens the database below `dataDir`, and makes the directory with mode 0700 when it is missing. Files that the process writes from now on are
 * readable by its user alone. Throws StartError when other users have rights on the directory, or another process holds its lock.
 */
export async function openEmbedded(dataDir: string): Promise<Embedded> {
  let opened: PGlite | undefined
  const release = await enterDirectory(dataDir, (socket) => serveBackup(socket, async () => opened && copyDatabase(opened)))
  try {
    const path = join(dataDir, FOLDER)
    const pglite = await openFiles(path)
    opened = pglite
    const writableBytes = () => readWritableBytes(path)
    return { pglite: yieldBefore(pglite), copy: () => copyDatabase(pglite), writableBytes, release }
  } catch (error) {
    await release()
    throw error
  }
}

/**
 * Opens or makes the files. For files that are damaged, incomplete, of another version or of another user, PGlite gives only a stack trace; the
 * StartError names the cause.
 */
async function openFiles(path: string): Promise<PGlite> {
  try {
    if (existsSync(path)) requireFiles(path)
    else await makeFiles(path)
    const pglite = await PGlite.create(path, embeddedOptions)
    endAtPanic(pglite)
    await pglite.exec(composeSet(SESSION_SETTINGS))
    closeFiles(path)
    return pglite
  } catch (error) {
    const cause = describe(error)
    throw new StartError(`PAWL_DATA_DIR: the database in ${path} cannot be opened (${cause}); ${await findRemedy(path, cause)}`, {
      cause: error,
    })
  }
}

/** Throws when this file is missing: PGlite would take the folder for an empty one, and make a new database over the rest of the old one. */
function requireFiles(path: string): void {
  const files = readdirSync(path)
  if (files.length > 0 && !files.includes('PG_VERSION')) throw new Error('PG_VERSION is missing')
}

/** Makes an empty database, or unpacks an archive. It is made beside `path` and then renamed, so that a killed process leaves no half database. */
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

/** What to do for a database in `path` that does not open. On a full disk, or without a right, PGlite says only that it failed. */
async function findRemedy(path: string, cause: string): Promise<string> {
  if (cause === 'EMFILE' || cause === 'ENFILE') return MORE_FILES
  const closed = findClosed(path)
  if (closed !== undefined) {
    const [user, owner] = [process.geteuid?.(), statSync(closed).uid]
    const command = owner === user ? 'chmod -R u+rwX' : `chown -R ${user}`
    return `user ${user}, who runs this process, may not read and write ${closed}, which belongs to user ${owner}: ${command} ${path}`
  }
  const left = await readFreeBytes(dirname(path))
  return left === undefined || left >= LOG_FILE_BYTES
    ? 'look at its files, their owner and the room on the disk, or put back a backup'
    : `its disk has ${Math.floor(left / 2 ** 20)} MB left: make room there, a file of its log alone has 16 MB`
}

/** A file in `path` that this process may not read and write: a command that another user ran, such as root, leaves files of its own. */
function findClosed(path: string): string | undefined {
  try {
    for (const { parentPath, name } of readdirSync(path, { recursive: true, withFileTypes: true }))
      accessSync(join(parentPath, name), constants.R_OK | constants.W_OK)
  } catch (error) {
    const failed = error as NodeJS.ErrnoException
    if (failed.code === 'EACCES') return failed.path
  }
  return undefined
}

const LOG_FILE_BYTES = 16 * 2 ** 20

const describe = (error: unknown): string => {
  // PGlite's text for this advises how to build it.
  if (error instanceof Error && error.message.startsWith('Aborted(')) return 'it stopped at once'
  if (error instanceof Error) return 'code' in error ? String(error.code) : error.message.replace(/\s*\n[^]*$/, '')
  // The file system below PGlite throws an object with an error number of WASI and no text.
  const errno = typeof error === 'object' && error !== null && 'errno' in error ? Number(error.errno) : undefined
  return errno === undefined ? String(error) : (WASI_ERRORS[errno] ?? `file system error ${errno}`)
}

/** Errors of a disk and of access to files, by their number in `errno` of wasi_snapshot_preview1. */
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
 * Makes a database below `dataDir` from a backup, the bytes that `copy` gave. Throws StartError when there is a database already. Throws an Error
 * when the bytes are no backup or the disk is full, and then leaves no file. If the process is killed meanwhile, the next call starts anew.
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
 * Packs all files of the database. They are read in one turn of the event loop, between two messages to the database. They are therefore the files
 * that a process killed at that moment would leave: they contain every committed transaction and no other.
 */
async function copyDatabase(pglite: Instance): Promise<Uint8Array> {
  const packed = await pglite.dumpDataDir('none')
  return gzip(new Uint8Array(await packed.arrayBuffer()))
}

/** Makes the directory when it is missing, and takes its lock. Files that the process writes from now on are readable by its user alone. */
function enterDirectory(dataDir: string, onVisit?: Parameters<typeof lockDirectory>[1]): Promise<() => Promise<void>> {
  process.umask(0o077)
  makeDirectory(dataDir)
  refuseOpenDirectory(dataDir)
  return lockDirectory(dataDir, onVisit)
}

/**
 * Makes the directory and its missing parents, for this user only. Each level is made alone, because recursive mkdir of Node never ends below
 * /proc.
 */
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

/**
 * Removes the rights of others: a new database is unpacked with the modes of its archive, which let everyone read and write, whatever the umask.
 */
function closeFiles(path: string): void {
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && (statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  }
}

/** Refuses a directory that other users may enter: they could read files written under an earlier umask, or replace a file. */
function refuseOpenDirectory(path: string): void {
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) === 0) return
  throw new StartError(
    `the data directory ${path} is open to other users (mode ${mode.toString(8).padStart(4, '0')}): chmod 700 it, or name a folder in it that does not exist yet as PAWL_DATA_DIR`,
  )
}

/** Makes a database in memory with the same guards. `open` gives the instance, which is otherwise new and empty. */
export async function createInMemory(open: OpenInstance = (options) => PGlite.create(options)): Promise<Embedded> {
  const pglite = await open(embeddedOptions)
  await pglite.exec(composeSet(SESSION_SETTINGS))
  const nothing = async (): Promise<undefined> => undefined
  return { pglite: yieldBefore(pglite), copy: () => copyDatabase(pglite), writableBytes: nothing, release: nothing }
}

const embeddedOptions = {
  parsers: {
    [types.INT8]: (value: string) => value,
    [types.BYTEA]: parseBytea,
    [types.TIMESTAMPTZ]: parseTime,
  },
  // PGlite's default takes 350 to 900 MB of resident memory.
  postgresqlconf: ['shared_buffers=16MB'],
}

/**
 * Ends the process when the database panics, as the server of PostgreSQL ends itself, for instance when its log finds no room. PGlite goes on, but
 * its next statement never returns, and with it the event loop stands still: no probe is answered and no signal is seen. The next start recovers
 * what was committed. The statement is left without an answer, so that PGlite sends no other one.
 */
function endAtPanic(pglite: PGlite): void {
  const run = pglite.execProtocolStream.bind(pglite)
  pglite.execProtocolStream = (...parameters) =>
    run(...parameters).catch((error: unknown) => {
      if (!(error instanceof Error && 'severity' in error && error.severity === 'PANIC')) throw error
      queueMicrotask(() => {
        throw new StartError(
          `PAWL_DATA_DIR: the embedded database ended (${error.message}); look at the room on its disk, and start again: the start recovers what was committed`,
          { cause: error },
        )
      })
      return new Promise<never>(() => undefined)
    })
}

/**
 * PGlite answers in the same turn of the event loop, so awaited queries in a row would starve timers and other requests. A turn before each query
 * costs about 5 %.
 */
function yieldBefore(pglite: Instance): PGliteForKysely {
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
        // The type of PGlite includes undefined, for a rollback; Kysely throws in that case.
        return (await pglite.transaction(begin)) as Awaited<ReturnType<typeof work>>
      } catch (error) {
        if (hasBegun) throw error
        // The database was closed meanwhile. Kysely would wait for the transaction to begin for ever, and nobody would handle the rejection. So the
        // first statement of the transaction fails instead.
        return work({ query: () => Promise.reject(error) } as unknown as Parameters<typeof work>[0])
      }
    },
  }
}

/**
 * Answers a process that connects to the lock's socket. Such a process may also connect only to see whether the lock is held. `copy` resolves to
 * undefined before the database is open.
 */
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

/**
 * Fetches a backup from the process that holds `dataDir`; undefined when there is none. Throws when that process sends no backup or only part of
 * it.
 */
export async function fetchBackup(dataDir: string): Promise<Uint8Array | undefined> {
  const socket = await visitHolder(dataDir)
  if (socket === undefined) return undefined
  socket.write(QUESTION)
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  const all = Buffer.concat(parts)
  const bytes = all.subarray(LENGTH_BYTES)
  if (all.length < LENGTH_BYTES || bytes.length !== all.readUIntBE(0, LENGTH_BYTES))
    throw new Error('the server that has the database gave no backup; its log may say why')
  return bytes
}

const FOLDER = 'database'
const gzip = promisify<Uint8Array, Uint8Array>(gzipWithCallback)
const gunzip = promisify<Uint8Array, Uint8Array>(gunzipWithCallback)
const QUESTION = 'backup\n'
const QUESTION_MS = 1_000
const LENGTH_BYTES = 6
