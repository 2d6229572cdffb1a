// Measures a window in which client and server never run at the same time, so that the client takes no processor time from the server. The
// client writes requests into the sockets of a stopped server, which then runs while the client sleeps.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from './target.ts'
import { costOf, type Figures } from './window.ts'
import type { Unit } from './works.ts'

/**
 * Runs rounds, each with one unit of every list at once. The rate counts the time from the start of the server until it is idle. A round in
 * which an answer came later is left out. The time of a single answer is not known.
 */
export async function runAsleep(lists: readonly (readonly Unit[])[], { processes, usage }: Target): Promise<Figures> {
  const rounds = Math.min(...lists.map(({ length }) => length))
  const before = usage()
  let counted = 0
  let milliseconds = 0
  for (let round = 0; round < rounds; round += 1) {
    const pids = processes()
    let answered = 0
    const send = async (units: readonly Unit[], client: number): Promise<void> => {
      await units[round]?.(client)
      answered += 1
    }
    const answers = await whileStopped(pids, () => lists.map(send))
    const busy = sleepWhileBusy(pids)
    await sleep(ANSWERS_MS)
    if (answered === lists.length) {
      counted += answered
      milliseconds += busy
    }
    await Promise.all(answers)
  }
  const unknown = { p50: undefined, p95: undefined, p99: undefined, clientCpu: undefined }
  return { rate: (counted * 1000) / milliseconds, ...unknown, ...costOf(before, usage(), rounds * lists.length) }
}

/** Runs `begin` while the processes are stopped, so that they find its requests in their sockets. */
async function whileStopped<Begun>(pids: readonly number[], begin: () => Begun): Promise<Begun> {
  signal(pids, 'SIGSTOP')
  try {
    const begun = begin()
    // A write to a full socket waits for a turn of the event loop.
    await sleep(1)
    return begun
  } finally {
    signal(pids, 'SIGCONT')
  }
}

/** Sleeps, without an event loop, until the processes have done next to nothing for a while. Returns the milliseconds until then. */
function sleepWhileBusy(pids: readonly number[]): number {
  const start = performance.now()
  let busy = 0
  for (let last = ranMilliseconds(pids), idle = 0; idle < IDLE_STEPS; idle += 1) {
    Atomics.wait(NEVER, 0, 0, STEP_MS)
    const now = ranMilliseconds(pids)
    if (now - last > STEP_MS * IDLE_SHARE) {
      idle = -1
      busy = performance.now() - start
    }
    last = now
  }
  return busy
}

/** Milliseconds that the main threads have run so far (proc(5), schedstat counts nanoseconds). */
const ranMilliseconds = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6, 0)

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) process.kill(pid, name)
}

const NEVER = new Int32Array(new SharedArrayBuffer(4))
const STEP_MS = 2
const IDLE_STEPS = 10
const IDLE_SHARE = 0.05
const ANSWERS_MS = 20
