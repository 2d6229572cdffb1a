// Finds workers that hang. Each worker sends a message every second; a worker whose event loop stands still sends none.
import type { Worker } from 'node:cluster'

export interface Heartbeat {
  readonly add: (worker: Worker) => void
  /** Called for every message of the worker. */
  readonly hear: (worker: Worker) => void
  /** Called when the worker begins to serve. */
  readonly serve: (worker: Worker) => void
  readonly remove: (worker: Worker) => void
}

/**
 * Looks every second, and calls `onSilent` once for a worker that sent no message during too many looks. It counts looks, not seconds: this process
 * may stand still itself, for example on a suspended machine. No worker is at fault then, and this process reads waiting messages after one look.
 * `seconds` is the number of looks.
 */
export function createHeartbeat(onSilent: (worker: Worker, seconds: number) => void): Heartbeat {
  const looks = new Map<Worker, { missed: number; max: number }>()
  const timer = setInterval(() => {
    for (const [worker, look] of looks) {
      look.missed += 1
      if (look.missed < look.max) continue
      looks.delete(worker)
      onSilent(worker, look.max)
    }
  }, BEAT_MS)
  timer.unref()
  return {
    add: (worker) => void looks.set(worker, { missed: HEARD, max: START_LOOKS }),
    hear: (worker) => {
      const look = looks.get(worker)
      if (look) look.missed = HEARD
    },
    serve: (worker) => {
      if (looks.has(worker)) looks.set(worker, { missed: HEARD, max: LOOKS })
    },
    remove: (worker) => void looks.delete(worker),
  }
}

/** The time between two messages of a worker. */
export const BEAT_MS = 1_000
/** The look after a message finds it, and so is not missed. */
const HEARD = -1
/** A busy worker is a second or two late. */
const LOOKS = 7
/** Before it serves, a worker reads its code and cannot send messages. That takes long on a busy machine. */
const START_LOOKS = 60
