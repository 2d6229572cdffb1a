// Runs operations of a third of a millisecond or more in threads, because they would keep the event loop from other requests
// (docs/decisions/0026-threads.md).
import { availableParallelism } from 'node:os'
import { createThreads } from './thread-pool.ts'
import type { Heavy } from './heavy.ts'

// The module is beside this file, both in the sources and in the bundle of the image (scripts/bundle.ts).
const FILE = `heavy.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`

// Each thread takes about 16 MB.
const THREADS_MAX = 4

/** Computes an operation in a thread. Rejects with the error of the operation, and with UNAVAILABLE when too many jobs wait. */
export const inThread = createThreads<Heavy>(new URL(FILE, import.meta.url), {
  name: 'crypto',
  // One thread a core: the event loop has priority on its core, and no core is idle while an operation waits.
  threadsMax: Math.min(THREADS_MAX, availableParallelism()),
  // So many jobs are computed within some seconds.
  jobsMax: 1000,
  // A small young generation is enough, because an operation leaves little garbage.
  resourceLimits: { maxYoungGenerationSizeMb: 4 },
})
