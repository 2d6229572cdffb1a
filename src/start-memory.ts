// Gives memory back after a start: the garbage of a thousand modules, and a young generation that grew to 32 MB while they were loaded.
import { Session } from 'node:inspector/promises'

/**
 * Collects all garbage once, when the start is done, and gives some 30 MB back to the system (docs/decisions/0014-memory.md). The process does
 * nothing else meanwhile, for a tenth of a second. V8 lets the young generation grow again as requests need it. The inspector session stays within
 * the process: it opens no port and needs no flag of V8.
 */
export async function releaseStartMemory(): Promise<void> {
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}
