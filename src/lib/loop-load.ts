// How busy this process is. Where work waits for the processor anyway, what saves processor time may take a few milliseconds of waiting.
import { performance } from 'node:perf_hooks'

/** A function that tells for which part of the time since it was last called, from 0 to 1, the event loop has worked. */
export function watchLoopUse(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const next = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(next, last)
    last = next
    return utilization
  }
}

/** True when the event loop has worked for more than half of a tenth of a second or more that has just passed. Asks the loop once in that time. */
export function isLoopBusy(): boolean {
  const now = performance.now()
  if (now - lookedAt >= LOOK_MS) {
    isBusy = useSinceLook() > BUSY
    lookedAt = now
  }
  return isBusy
}

const LOOK_MS = 100
const BUSY = 0.5
const useSinceLook = watchLoopUse()
let lookedAt = performance.now()
let isBusy = false
