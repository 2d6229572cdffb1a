// The longest turn of the event loop of a server. This module is loaded into it (TargetOptions.imports), and whoever measures asks it by a signal.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** What the server is to load. */
export const TURN_WATCH = fileURLToPath(import.meta.url)

/** Milliseconds of the longest turn of a server since the last question, too long by 1 at most. What keeps the process from a processor is in it. */
export async function askLongestTurn(pid: number): Promise<number> {
  const file = fileOf(pid)
  process.kill(pid, SIGNAL)
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    await sleep(STEP_MS)
    if (!existsSync(file)) continue
    const text = readFileSync(file, 'utf8')
    if (text === '') continue
    rmSync(file)
    return Number(text)
  }
  throw new Error('the server does not tell of its longest turn')
}

/** In the server. */
function watch(): void {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  process.on(SIGNAL, () => {
    writeFileSync(fileOf(process.pid), String(delays.count === 0 ? 0 : delays.max / 1e6))
    delays.reset()
  })
}

const fileOf = (pid: number): string => join(tmpdir(), `pawl-bench-turn-${pid}`)

const SIGNAL = 'SIGUSR2'
const RESOLUTION_MS = 1
const STEP_MS = 2
const ATTEMPTS = 1_000

if (process.execArgv.includes(`--import=${TURN_WATCH}`)) watch()
