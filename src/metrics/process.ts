// Measures the process. prom-client's own collection is not used: it starts observers that cannot be stopped again.
import { readdir } from 'node:fs/promises'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Instruments } from './instruments.ts'

export interface ProcessWatch {
  readonly update: () => Promise<void>
  readonly stop: () => void
}

/** Watches the event loop until it is stopped. */
export function watchProcess(instruments: Instruments): ProcessWatch {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  let loopUse = performance.eventLoopUtilization()
  let processorSeconds = 0
  instruments.started.set(performance.timeOrigin / 1000)
  return {
    update: async () => {
      for (const quantile of QUANTILES) {
        // The timer itself is part of what is measured.
        const late = Math.max(0, delays.percentile(quantile * 100) / 1e6 - RESOLUTION_MS)
        instruments.loopDelay.set({ quantile }, delays.count === 0 ? 0 : late / 1000)
      }
      delays.reset()
      const nextLoopUse = performance.eventLoopUtilization()
      instruments.loopUse.set(performance.eventLoopUtilization(nextLoopUse, loopUse).utilization)
      loopUse = nextLoopUse
      const { user, system } = process.cpuUsage()
      const seconds = (user + system) / 1e6
      instruments.processorTime.inc(seconds - processorSeconds)
      processorSeconds = seconds
      const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
      instruments.residentMemory.set(rss)
      instruments.heapUsed.set(heapUsed)
      instruments.heapTotal.set(heapTotal)
      instruments.externalMemory.set(external)
      // Elsewhere than on Linux there is no such folder.
      const files = await readdir('/proc/self/fd').catch(() => undefined)
      if (files) instruments.openFiles.set(files.length)
    },
    stop: () => void delays.disable(),
  }
}

const RESOLUTION_MS = 20
const QUANTILES = [0.5, 0.9, 0.99, 1]
