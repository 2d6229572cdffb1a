// How busy this process is. Where work waits for the processor anyway, what saves processor time may take a few milliseconds of waiting.
import { performance } from 'node:perf_hooks'

/** True when the event loop has worked for more than half of a tenth of a second or more that has just passed. Asks the loop once in that time. */
export function isLoopBusy(): boolean {
  const now = performance.now()
  if (now - lookedAt >= LOOK_MS) {
    const next = performance.eventLoopUtilization()
    isBusy = performance.eventLoopUtilization(next, use).utilization > BUSY
    use = next
    lookedAt = now
  }
  return isBusy
}

const LOOK_MS = 100
const BUSY = 0.5
let lookedAt = performance.now()
let use = performance.eventLoopUtilization()
let isBusy = false
