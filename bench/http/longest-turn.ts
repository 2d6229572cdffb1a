// Measures the longest turn of a server's event loop. The server loads this module (TargetOptions.imports), and the measuring process asks it by
// a signal.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The path of the module that the server loads. */
export const TURN_WATCH = fileURLToPath(import.meta.url)

/** Milliseconds of the longest turn since the last question, too long by 1 at most. It includes the time in which the process had no processor. */
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

/** Runs in the server: measures turns, and writes the longest one into a file when the signal comes. */
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
