// Starts HAProxy before the servers of a measurement, with the settings of deploy/haproxy, but without TLS and with one listener.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findQuietPort } from '../../test/helpers/ports.ts'
import { closeAtEnd } from './closing.ts'
import { processesOf, treeCpuMicroseconds, treeResidentMebibytes } from './cpu.ts'
import type { Target } from './target.ts'

/** Makes one target of several. HAProxy's processor time and memory count as Node's. */
export async function standBefore(name: string, targets: readonly [Target, ...Target[]]): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-haproxy-'))
  const port = await findQuietPort()
  const servers = targets.map(({ url }, i) => `  server pawl-${i} ${new URL(url).host}`)
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `defaults
  mode http
  retries 2
  retry-on conn-failure
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend all
  bind 127.0.0.1:${port}
  http-request set-header X-Forwarded-For %[src]
  default_backend pawl
backend pawl
  balance leastconn
${servers.join('\n')}
`,
  )
  const child = spawn('/usr/sbin/haproxy', ['-db', '-f', file], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve, reject) => child.once('exit', () => resolve()).once('error', reject))
  const close = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  closeAtEnd(close)
  const pid = child.pid ?? 0
  const [first] = targets
  return {
    name,
    url: `http://127.0.0.1:${port}`,
    admin: first.admin,
    usage: () => {
      const all = targets.map((target) => target.usage())
      const sum = (pick: 'node' | 'resident'): number => all.reduce((total, one) => total + one[pick], 0)
      return {
        node: sum('node') + treeCpuMicroseconds(pid),
        database: all[0]?.database,
        resident: sum('resident') + treeResidentMebibytes(pid),
      }
    },
    processes: () => [...processesOf(pid), ...targets.flatMap(({ processes }) => processes())],
    close,
  }
}
