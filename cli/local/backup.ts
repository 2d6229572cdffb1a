// Writes the embedded database into a file, out of the server that has it or out of its directory, and makes it from such a file.
import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { StartError } from '../../src/lib/errors.ts'
import { fetchBackup, openEmbedded, restoreEmbedded } from '../../src/storage/database/embedded.ts'
import type { Answer, Terminal } from '../command.ts'
import { explainFault, Fault, type FaultKind, orFault, usageFault } from '../fault.ts'
import { readBytes } from '../json-argument.ts'
import { withProgress } from '../progress.ts'
import { readSettings } from './database.ts'

/** Writes the backup to `file`, which only this account may read, and returns when it is durable. */
export async function backUpLocal(terminal: Terminal, file = ''): Promise<Answer> {
  const dataDir = readDataDir(terminal)
  if (!existsSync(join(dataDir, 'database'))) throw new Fault('unreachable', `there is no database in ${dataDir}`)
  requireNewFile(file)
  const copy = async (): Promise<Uint8Array> => (await fetchBackup(dataDir)) ?? copyStopped(dataDir)
  const bytes = await explained('unreachable', () => withProgress(terminal.note, `at work on ${dataDir}`, copy))
  orFault('output', `${file} cannot be written`, () => writeNew(file, bytes))
  const text = `${file}: ${bytes.length} bytes\nthe master key is not in it: keep ${join(dataDir, 'master.key')} elsewhere\n`
  return { json: { file, bytes: bytes.length }, text }
}

/** Makes the embedded database from `file`. */
export async function restoreLocal(terminal: Terminal, file = ''): Promise<Answer> {
  const dataDir = readDataDir(terminal)
  const bytes = readBytes('the backup', file)
  // A fault of the data directory is a fault of the setting that names it, because no database has to answer here.
  await explained('usage', () => withProgress(terminal.note, `at work on ${dataDir}`, () => restoreEmbedded(dataDir, bytes)))
  const hasKey = existsSync(join(dataDir, 'master.key'))
  const advice = hasKey ? '' : `put its master key into ${join(dataDir, 'master.key')} before a server starts\n`
  return { json: { dataDir, hasKey }, text: `${dataDir} holds the database of ${file}\n${advice}` }
}

function readDataDir(terminal: Terminal): string {
  const { config, secrets } = readSettings(terminal)
  if (secrets.databaseUrl === undefined) return config.dataDir
  throw usageFault('DATABASE_URL is set: PostgreSQL is backed up by pg_basebackup or pg_dump, docs/OPERATIONS.md, "Backup"')
}

async function copyStopped(dataDir: string): Promise<Uint8Array> {
  const { pglite, copy, release } = await openEmbedded(dataDir)
  try {
    return await copy()
  } finally {
    await pglite.close()
    await release()
  }
}

/** Turns an error of `work` into a Fault. `kind`: the kind of a fault of the data directory. */
async function explained<T>(kind: FaultKind, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof StartError ? new Fault(kind, error.message) : new Fault('refused', explainFault(error))
  }
}

/** Throws a Fault when the file exists or cannot be written. It comes before the copy, which may take long. */
function requireNewFile(path: string): void {
  if (existsSync(path)) throw new Fault('usage', `there is ${path} already, and nothing is written over: give another name`)
  try {
    accessSync(dirname(path), constants.W_OK)
  } catch (error) {
    throw new Fault('usage', `${path} cannot be written (${explainFault(error)}): give another name`)
  }
}

/** Writes a new file. Throws and leaves no file when a part of it cannot be written. */
function writeNew(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    // A disk that gets full takes only a part in one call; writeFileSync goes on and then throws.
    writeFileSync(file, bytes)
    fsyncSync(file)
  } catch (error) {
    rmSync(path)
    throw error
  } finally {
    closeSync(file)
  }
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
}
