// Starts a PostgreSQL for one measurement, in a temporary folder, with the programs of Debian's package; it is removed after the measurement.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findQuietPort } from '../../test/helpers/ports.ts'
import { closeAtEnd } from './closing.ts'

export interface Postgres {
  /** Makes the database `name`, and returns its URL. */
  readonly createDatabase: (name: string) => string
  /** The id of the server process, whose children are the connections. */
  readonly pid: number
  /** The folder of its data, and of its log if its settings demand one. */
  readonly folder: string
  readonly close: () => Promise<void>
}

/** Starts the newest installed version with its usual settings and the given ones (`name=value`). Throws when none is installed. */
export async function startPostgres(settings: readonly string[] = []): Promise<Postgres> {
  const bin = newestBin()
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-postgres-'))
  const identity = serverIdentity()
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid)
  const data = join(folder, 'data')
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'pawl', '-A', 'trust', '--encoding=UTF8', '--locale=C.UTF-8'], {
    stdio: 'ignore',
    ...identity,
  })
  const port = await findQuietPort()
  const options = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${folder}`]
  for (const setting of settings) options.push('-c', setting)
  const server = spawn(join(bin, 'postgres'), options, { stdio: 'ignore', ...identity })
  const ended = new Promise((resolve) => server.once('exit', resolve))
  const close = async (): Promise<void> => {
    server.kill('SIGINT')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  closeAtEnd(close)
  const address = ['--host=127.0.0.1', `--port=${port}`]
  await waitUntilReady(server, () => execFileSync(join(bin, 'pg_isready'), ['--quiet', ...address], { stdio: 'ignore' }))
  return {
    createDatabase: (name) => {
      execFileSync(join(bin, 'createdb'), [...address, '--username=pawl', name])
      return `postgres://pawl@127.0.0.1:${port}/${name}`
    },
    pid: server.pid ?? 0,
    folder: data,
    close,
  }
}

export function newestBin(): string {
  const versions = existsSync(ROOT) ? readdirSync(ROOT).toSorted((a, b) => Number(b) - Number(a)) : []
  const [newest] = versions
  if (newest === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql, or give DATABASE_URL')
  return join(ROOT, newest, 'bin')
}

/** The server refuses to run as root; Debian's package brings a user for it. */
export function serverIdentity(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('postgres:'))
  const [, , uid, gid] = (line ?? '').split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

async function waitUntilReady(server: ChildProcess, ask: () => unknown): Promise<void> {
  for (let attempt = 0; attempt < READY_ATTEMPTS; attempt += 1) {
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended with ${server.exitCode}`)
    try {
      ask()
      return
    } catch {
      await sleep(READY_STEP_MS)
    }
  }
  throw new Error('PostgreSQL is not ready after 20 s')
}

const ROOT = '/usr/lib/postgresql'
const READY_ATTEMPTS = 100
const READY_STEP_MS = 200
