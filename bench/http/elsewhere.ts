// A window with the client elsewhere in time, as where it has a machine of its own: requests lie in the sockets of a stopped server, which then
// runs while the client sleeps.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from './target.ts'
import { connectionOf } from './window.ts'
import type { Unit } from './works.ts'

export interface Elsewhere {
  /** Units a second, from the moment the server runs until it has nothing left to do. */
  readonly rate: number
  /** Microseconds of processor time a unit. */
  readonly nodeCpu: number
}

/** Rounds of one unit of each list at once; one in which an answer came late is left out of the rate. */
export async function runElsewhere(lists: readonly (readonly Unit[])[], { processes, usage }: Target): Promise<Elsewhere> {
  const rounds = Math.min(...lists.map(({ length }) => length))
  const before = usage()
  let counted = 0
  let milliseconds = 0
  for (let round = 0; round < rounds; round += 1) {
    const pids = processes()
    let answered = 0
    signal(pids, 'SIGSTOP')
    try {
      const answers = lists.map(async (units, client) => {
        await units[round]?.((url) => connectionOf(url, client))
        answered += 1
      })
      // A write that found the socket full would wait for the event loop.
      await sleep(1)
      signal(pids, 'SIGCONT')
      const busy = sleepWhileBusy(pids)
      await sleep(ANSWERS_MS)
      if (answered === lists.length) {
        counted += answered
        milliseconds += busy
      }
      await Promise.all(answers)
    } finally {
      signal(pids, 'SIGCONT')
    }
  }
  return { rate: (counted * 1000) / milliseconds, nodeCpu: (usage().node - before.node) / (rounds * lists.length) }
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

/** How long the main threads ran so far (proc(5), schedstat: nanoseconds). */
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
