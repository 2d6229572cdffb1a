// HAProxy before the servers of a cluster, as deploy/haproxy/postgresql.cfg sets it up.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HAPROXY } from '../helpers/haproxy.ts'
import { findQuietPort } from '../helpers/ports.ts'

const SHIPPED = readFileSync(fileURLToPath(new URL('../../deploy/haproxy/postgresql.cfg', import.meta.url)), 'utf8')

/** Starts the shipped file with the addresses of a test; the host is `localhost:PORT`. */
export async function openDatabaseHaproxy(ports: readonly number[]): Promise<{ host: string; close: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-haproxy-'))
  const port = await findQuietPort()
  const text = ports.reduce(
    (config, each, index) => config.replace(`10.0.0.1${index + 1}:5432`, `127.0.0.1:${each}`),
    SHIPPED.replace('127.0.0.1:5000', `127.0.0.1:${port}`),
  )
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  const child = spawn(HAPROXY, ['-db', '-f', file], { stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('close', resolve))
  return {
    host: `localhost:${port}`,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}
