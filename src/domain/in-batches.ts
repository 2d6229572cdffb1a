// Work on many rows, a batch at a time, so that no statement holds many locks.

/** Takes batches until one is not full, or `signal` says that the process wants to end; how many rows they were. */
export async function takeBatches(take: (limit: number) => Promise<number>, signal?: AbortSignal): Promise<number> {
  let taken = 0
  for (;;) {
    if (signal?.aborted === true) return taken
    const rows = await take(BATCH_ROWS)
    taken += rows
    if (rows < BATCH_ROWS) return taken
  }
}

const BATCH_ROWS = 500
