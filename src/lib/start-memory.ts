// What a start leaves behind: garbage of a thousand modules, and a young generation that grew to 32 MB while they were loaded.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Gives that memory back to the system, some 30 MB, in a tenth of a second in which nothing else runs; for once, when the start is done
 * (docs/decisions/0014-memory.md). V8 makes the young generation grow again as requests need it. From then on the old generation grows by
 * less between two collections.
 */
export function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { readonly [name: string]: string }) => void
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  setFlagsFromString('--no-expose-gc')
  setFlagsFromString(`--heap-growing-percent=${OLD_GENERATION_GROWTH}`)
}

// Between two full collections the old generation may grow by so many percent of what is in use. V8 would let it double, and with it what its
// garbage holds beside the heap: keys and buffers that the caches have let go.
const OLD_GENERATION_GROWTH = 30
