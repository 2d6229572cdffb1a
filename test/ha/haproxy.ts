// Starts HAProxy before the servers of a cluster, as deploy/haproxy/postgresql.cfg sets it up.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { HAPROXY } from '../helpers/haproxy.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const SHIPPED = readFileSync(fileURLToPath(new URL('../../deploy/haproxy/postgresql.cfg', import.meta.url)), 'utf8')

/**
 * Starts HAProxy with the shipped file and the addresses of a test; `host` is `localhost:PORT`. Waits until HAProxy knows all but one server as
 * standbys: it takes each for the primary until its first checks have failed, and pawl does not start on a standby.
 */
export async function openDatabaseHaproxy(ports: readonly number[]): Promise<{ host: string; close: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-haproxy-'))
  const port = await findQuietPort()
  const text = ports.reduce(
    (config, each, index) => config.replace(`10.0.0.1${index + 1}:5432`, `127.0.0.1:${each}`),
    SHIPPED.replace('127.0.0.1:5000', `127.0.0.1:${port}`),
  )
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  const child = spawn(HAPROXY, ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (told: string) => (output += told))
  const ended = new Promise((resolve) => child.once('close', resolve))
  await vi.waitFor(
    () => {
      const down = new Set([...output.matchAll(/Server postgresql\/(\S+) is DOWN/g)].map(([, name]) => name))
      if (down.size < ports.length - 1) throw new Error(`HAProxy has found ${down.size} standbys: ${output}`)
    },
    { timeout: PATIENCE_MS },
  )
  return {
    host: `localhost:${port}`,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}
