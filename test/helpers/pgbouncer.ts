// Starts PgBouncer before the PostgreSQL of a test, in a given mode.
import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { vi } from 'vitest'
import { serverIdentity } from '../../bench/http/postgres.ts'
import { findQuietPort } from './ports.ts'
import { PATIENCE_MS } from './patience.ts'

export const PGBOUNCER = '/usr/sbin/pgbouncer'
export const hasPgbouncer = existsSync(PGBOUNCER)

export interface Pgbouncer {
  /** The URL of the database through PgBouncer. */
  readonly url: string
  readonly close: () => Promise<void>
}

/**
 * Starts it, by default with three server connections for all clients. `ignores`: parameters of a connection that it accepts and drops, as it does
 * for operators who follow its error message. `more`: lines for other databases.
 */
export async function openPgbouncer(
  databaseUrl: string,
  mode: 'session' | 'transaction',
  { ignores = '', poolSize = 3, more = '' } = {},
): Promise<Pgbouncer> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const folder = mkdtempSync(join(tmpdir(), 'pawl-pgbouncer-'))
  const listenPort = await findQuietPort()
  const file = join(folder, 'pgbouncer.ini')
  const secret = password === '' ? '' : ` password='${decodeURIComponent(password)}'`
  writeFileSync(
    file,
    `[databases]
${more}
* = host=${hostname} port=${port || '5432'} user=${username}${secret}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 200
ignore_startup_parameters = ${ignores}
`,
  )
  // PgBouncer refuses to run as root.
  const identity = serverIdentity()
  if (identity !== undefined) for (const path of [folder, file]) chownSync(path, identity.uid, identity.gid)
  const child = spawn(PGBOUNCER, [file], { stdio: ['ignore', 'ignore', 'pipe'], ...identity })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise((resolve) => child.once('close', resolve))
  const url = `postgres://${username}@127.0.0.1:${listenPort}${pathname}`
  await vi.waitFor(() => askOnce(url, () => output), { timeout: PATIENCE_MS })
  return {
    url,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

async function askOnce(url: string, output: () => string): Promise<void> {
  const client = new Client(url)
  try {
    await client.connect()
    await client.query('select 1')
  } catch (error) {
    throw new Error(output(), { cause: error })
  } finally {
    await client.end().catch(() => undefined)
  }
}
