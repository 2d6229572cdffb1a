// Starts a server to measure: a checkout of pawl on a database of its own, started as an operator starts it.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { closeAtEnd } from './closing.ts'
import { processesOf, treeCpuMicroseconds, treeResidentMebibytes } from './cpu.ts'

export interface Target {
  readonly name: string
  readonly url: string
  /** `user:password` of the administrator. */
  readonly admin: string
  readonly usage: () => Usage
  /** The ids of the server's present processes. */
  readonly processes: () => readonly number[]
  readonly close: () => Promise<void>
}

export interface Usage {
  /** Microseconds of processor time so far, of all processes of the server. */
  readonly node: number
  /** Microseconds of processor time of the database; undefined when the measurement did not start its process. */
  readonly database: number | undefined
  /** Resident MiB of all processes of the server. */
  readonly resident: number
}

export interface TargetOptions {
  readonly name: string
  /** Folder of the checkout, its packages installed. */
  readonly checkout: string
  /** The database; when undefined, an embedded one in a temporary folder. */
  readonly databaseUrl: string | undefined
  /** The database's process, whose children are its connections. */
  readonly databasePid: number | undefined
  /** Modules that are loaded into the server before it. */
  readonly imports?: readonly string[]
  /** Settings beside those of every measurement. */
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a server on a free port of loopback and waits until it is ready. */
export async function startTarget(options: TargetOptions): Promise<Target> {
  const { name, checkout, databaseUrl, databasePid, imports = [], env: settings } = options
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'))
  const password = randomBytes(18).toString('base64url')
  const { PATH = '', HOME = '' } = process.env
  const env = {
    PATH,
    HOME,
    TMPDIR: tmpdir(),
    PAWL_PORT: '0',
    PAWL_DATA_DIR: join(folder, 'data'),
    PAWL_ADMIN_PASSWORD: password,
    PAWL_LOG_LEVEL: 'error',
    PAWL_MOBILE_READS_PER_MINUTE: '100000',
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl, PAWL_MASTER_KEY: randomBytes(32).toString('base64') }),
    // All phones of a measurement share one address.
    ...settingsKnownBy(checkout, { PAWL_TEMPORARY_KEYS_PER_MINUTE: '1000000', ...settings }),
  }
  const loaded = imports.map((module) => `--import=${module}`)
  const server = spawn(join(checkout, 'node_modules/.bin/node'), ['--heap-growing-percent=30', ...loaded, 'bin/pawl.mjs'], {
    cwd: checkout,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  // The output is read to its end, so that the server never waits for a reader.
  server.stdout.on('data', (chunk: Buffer) => {
    if (printed.length < PRINTED_MAX) printed += chunk.toString()
  })
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  const close = async (): Promise<void> => {
    server.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  closeAtEnd(close)
  const pid = server.pid ?? 0
  for (let attempt = 0; attempt < READY_ATTEMPTS; attempt += 1) {
    if (server.exitCode !== null) throw new Error(`${name} ended with ${server.exitCode}: ${printed}`)
    const [, url] = /^pawl listens on (\S+)$/m.exec(printed) ?? []
    const isReady =
      url !== undefined &&
      (await fetch(`${url}/health/ready`).then(
        ({ status }) => status === 200,
        () => false,
      ))
    if (!isReady) {
      await sleep(READY_STEP_MS)
      continue
    }
    return {
      name,
      url,
      admin: `admin:${password}`,
      usage: () => ({
        node: treeCpuMicroseconds(pid),
        database: databasePid === undefined ? undefined : treeCpuMicroseconds(databasePid),
        resident: treeResidentMebibytes(pid),
      }),
      processes: () => processesOf(pid),
      close,
    }
  }
  throw new Error(`${name} is not ready after a minute: ${printed}`)
}

/** The settings that a revision knows; an older revision refuses to start with others. */
function settingsKnownBy(checkout: string, settings: Readonly<Record<string, string>>): Record<string, string> {
  const described = readFileSync(join(checkout, 'docs/CONFIG.md'), 'utf8')
  return Object.fromEntries(Object.entries(settings).filter(([name]) => described.includes(`\`${name}\``)))
}

const PRINTED_MAX = 100_000
const READY_ATTEMPTS = 600
const READY_STEP_MS = 100
