// Measures whether the receiver of a webhook answers in time, so that slow receivers do not delay others (cloud §9).

/** Watches the requests of one batch. */
export interface Patience {
  /** Waits for an answer and returns it. Only this wait counts, because reading and storing are not the receiver's work. */
  readonly wait: <T>(answer: Promise<T>) => Promise<T>
  readonly isLate: () => boolean
}

/**
 * Calls `onLate` once, when no request was answered for a second, or some are still open after three. Time is counted in ticks of a timer: a
 * process that is too busy to read an answer is also too busy to tick.
 */
export function startPatience(onLate: () => void): Patience {
  let open = 0
  let isLate = false
  let ticks = 0
  let silentTicks = 0
  let timer: NodeJS.Timeout | undefined

  const tick = (): void => {
    ticks += 1
    silentTicks += 1
    if (silentTicks < SILENT_TICKS_MAX && ticks < TICKS_MAX) return
    clearInterval(timer)
    isLate = true
    onLate()
  }

  const wait = async <T>(answer: Promise<T>): Promise<T> => {
    open += 1
    if (open === 1 && !isLate) {
      silentTicks = 0
      timer = setInterval(tick, TICK_MS).unref()
    }
    try {
      return await answer
    } finally {
      open -= 1
      silentTicks = 0
      if (open === 0) clearInterval(timer)
    }
  }

  return { wait, isLate: () => isLate }
}

const TICK_MS = 100
const SILENT_TICKS_MAX = 10
const TICKS_MAX = 30
