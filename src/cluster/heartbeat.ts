// Watches whether the workers live: each says so every second, and one whose event loop stands still does not.
import type { Worker } from 'node:cluster'

export interface Heartbeat {
  readonly add: (worker: Worker) => void
  /** The worker has said anything. */
  readonly hear: (worker: Worker) => void
  /** The worker serves from now on. */
  readonly serve: (worker: Worker) => void
  readonly remove: (worker: Worker) => void
}

/**
 * Looks each second, and calls `onSilent` once for a worker that was not heard of between so many looks. Looks are counted and not seconds: while
 * this process stands still itself, as in a machine that is suspended, nobody is at fault, and what arrived meanwhile is read after one look.
 */
export function createHeartbeat(onSilent: (worker: Worker, seconds: number) => void): Heartbeat {
  const looks = new Map<Worker, { missed: number; max: number }>()
  const timer = setInterval(() => {
    for (const [worker, look] of looks) {
      look.missed += 1
      if (look.missed <= look.max) continue
      looks.delete(worker)
      onSilent(worker, look.max)
    }
  }, BEAT_MS)
  timer.unref()
  return {
    add: (worker) => void looks.set(worker, { missed: 0, max: START_LOOKS }),
    hear: (worker) => {
      const look = looks.get(worker)
      if (look) look.missed = 0
    },
    serve: (worker) => {
      if (looks.has(worker)) looks.set(worker, { missed: 0, max: LOOKS })
    },
    remove: (worker) => void looks.delete(worker),
  }
}

/** How often a worker says that it lives. */
export const BEAT_MS = 1_000
/** A busy worker answers late by a second or two. */
const LOOKS = 7
/** Until it serves, a worker reads its code and does not turn its event loop, which takes long on a machine that is busy with other things. */
const START_LOOKS = 60
