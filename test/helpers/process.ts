// Starts the real process, bin/pawl.mjs, as an operator does, on a database of its own. It ends the processes that it has started, by pid.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createPostgresDatabase, serverUrl, testTemplate } from './app.ts'
import { signalAll } from './children.ts'
import { PATIENCE_MS } from './patience.ts'

export type DatabaseKind = 'embedded' | 'postgresql'
export type Environment = Readonly<Record<string, string>>

/** The database of this run: PostgreSQL when PAWL_TEST_DATABASE_URL names a server. */
export const DATABASE_KIND: DatabaseKind = serverUrl() === undefined ? 'embedded' : 'postgresql'

/** The administrator's password in tests that give one. */
export const ADMIN_PASSWORD = 'chosen by the operator'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The command of a server: out of a few files where test/helpers/bundle.ts has made them. Other commands are run from the sources. */
export const SERVER = join(process.env['PAWL_TEST_BUNDLE'] ?? root, 'bin/pawl.mjs')

/** A place for a server: a directory, or a PostgreSQL database and its master key. */
export interface Installation {
  readonly kind: DatabaseKind
  /** Settings that open it. */
  readonly env: Environment
  /** A directory for the files of a test. It exists, and is beside the data. */
  readonly directory: string
  /** The data directory of the embedded database. */
  readonly dataDir: string
  /** The URL of the PostgreSQL database for the test itself. */
  readonly adminUrl?: string
  /** The master key, 32 bytes; with an embedded database only after its first start. */
  readonly masterKey: () => Uint8Array
}

/** Makes an installation that no server has used; endEverything removes it. `isEmpty`: the database has no schema yet. */
export async function createInstallation(kind: DatabaseKind, { isEmpty = false } = {}): Promise<Installation> {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-test-'))
  cleanups.push(async () => rmSync(directory, { recursive: true, force: true }))
  const dataDir = join(directory, 'data')
  if (kind === 'embedded') {
    if (!isEmpty) cpSync(join(testTemplate(), 'data'), dataDir, { recursive: true })
    const masterKey = (): Uint8Array => Buffer.from(readFileSync(join(dataDir, 'master.key'), 'utf8'), 'base64')
    return { kind, directory, dataDir, env: { PAWL_DATA_DIR: dataDir }, masterKey }
  }
  const { databaseUrl, adminUrl, drop } = await createPostgresDatabase({ isEmpty })
  cleanups.push(drop)
  const key = randomBytes(32)
  const env = { DATABASE_URL: databaseUrl, PAWL_MASTER_KEY: key.toString('base64'), PAWL_DATA_DIR: dataDir }
  return { kind, directory, dataDir, env, adminUrl, masterKey: () => key }
}

/** The end of a process, and all of its output. */
export interface Ended {
  /** Null after a signal. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly pid: number
  /** All output so far, stdout before stderr. */
  readonly output: () => string
  /** Resolves when stdout has `text`; rejects when the process ends before, or after a time limit. */
  readonly printed: (text: string) => Promise<void>
  readonly send: (signal: NodeJS.Signals) => void
  /** Sends the signal and waits for the end. */
  readonly end: (signal: NodeJS.Signals) => Promise<Ended>
  readonly ended: Promise<Ended>
}

export interface PawlProcess extends Running {
  /** http://127.0.0.1:PORT */
  readonly url: string
}

/** Starts a server on a free port and waits until it listens; rejects with its output when it does not. */
export const startPawl = (...env: readonly Environment[]): Promise<PawlProcess> => startServer(SERVER, env)

/** The same out of the sources, for tests that look at the modules. */
export const startSources = (...env: readonly Environment[]): Promise<PawlProcess> => startServer('bin/pawl.mjs', env)

async function startServer(command: string, env: readonly Environment[]): Promise<PawlProcess> {
  const running = startNode([command], { PAWL_PORT: '0', ...Object.assign({}, ...env) })
  await running.printed('Ready.')
  const [, url = ''] = /^pawl listens on (\S+)$/m.exec(running.output()) ?? []
  return { ...running, url }
}

/** Starts a server that should refuse to start, and waits for its end. Kills it when it does not end. */
export const refusePawl = (...env: readonly Environment[]): Promise<Ended> =>
  runNode([SERVER], { PAWL_PORT: '0', ...Object.assign({}, ...env) })

/** Runs a script of the project to its end. Kills it when it does not end. */
export async function runNode(args: readonly string[], env: Environment = {}): Promise<Ended> {
  const running = startNode(args, env)
  const timer = setTimeout(() => signalAll(running.pid, 'SIGKILL'), PATIENCE_MS)
  return running.ended.finally(() => clearTimeout(timer))
}

/** Kills all processes and removes every installation; for afterEach or afterAll. */
export async function endEverything(): Promise<void> {
  const ends = [...children].map((child) => new Promise((resolve) => child.once('close', resolve)))
  killChildren()
  await Promise.all(ends)
  for (const clean of cleanups.splice(0).reverse()) await clean()
}

/**
 * Starts a script of the project. Of the test's environment it gets only PATH and HOME. `stdout`: a descriptor for the output, which is
 * otherwise read and kept.
 */
export function startNode(args: readonly string[], env: Environment = {}, stdout: 'pipe' | number = 'pipe'): Running {
  const { PATH = '', HOME = '' } = process.env
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: root,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', stdout, 'pipe'],
  })
  children.add(child)
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8')
    child[name]?.on('data', (text: string) => {
      printed[name] += text
    })
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      children.delete(child)
      resolve({ code, signal, ...printed })
    })
  })
  return {
    pid: child.pid ?? 0,
    output: () => printed.stdout + printed.stderr,
    printed: (text) => waitForText(child, ended, () => printed.stdout.includes(text), text),
    send: (signal) => void child.kill(signal),
    end: (signal) => {
      child.kill(signal)
      return ended
    },
    ended,
  }
}

function waitForText(child: ChildProcess, ended: Promise<Ended>, isThere: () => boolean, text: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const check = (): void => {
    if (isThere()) resolve()
  }
  const timer = setTimeout(() => reject(new Error(`"${text}" was not printed`)), PATIENCE_MS)
  child.stdout?.on('data', check)
  ended.then(({ code, stdout, stderr }) => reject(new Error(`ended with ${code}: ${stderr || stdout}`)), reject)
  check()
  return promise.finally(() => {
    clearTimeout(timer)
    child.stdout?.off('data', check)
  })
}

/** Kills each process with the ones that it started: pawl demo has servers of its own. */
function killChildren(): void {
  for (const { pid } of children) if (pid !== undefined) signalAll(pid, 'SIGKILL')
}

const children = new Set<ChildProcess>()
const cleanups: (() => Promise<void>)[] = []
// A test run that is interrupted leaves no server behind.
process.once('exit', killChildren)
