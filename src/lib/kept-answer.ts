// Keeps an answer of another server for a while. Callers at the same time share one request, and none is sent right after a failure.

/** The answer, and its time by the monotonic clock. */
export interface Kept<T> {
  readonly value: T
  readonly at: number
}

export interface KeptAnswer<T> {
  /**
   * Returns the kept answer if it is younger than `ageMs`, else asks the server now. Throws the error of `ask`. For `failureMs` after a failure it
   * throws that error again without asking.
   */
  readonly read: (ageMs: number) => Promise<Kept<T>>
}

/** Uses the monotonic clock: with a clock that is set back a day, an answer that the server has withdrawn would be kept a day longer. */
export function keepAnswer<T>(ask: () => Promise<T>, monotonic: () => number, failureMs: number): KeptAnswer<T> {
  let kept: Kept<T> | undefined
  let failure: { readonly error: unknown; readonly at: number } | undefined
  let asking: Promise<Kept<T>> | undefined
  const askNow = async (): Promise<Kept<T>> => {
    if (failure !== undefined && monotonic() - failure.at < failureMs) throw failure.error
    try {
      kept = { value: await ask(), at: monotonic() }
      failure = undefined
      return kept
    } catch (error) {
      failure = { error, at: monotonic() }
      throw error
    }
  }
  return {
    read: async (ageMs) => {
      if (kept !== undefined && monotonic() - kept.at < ageMs) return kept
      asking ??= askNow().finally(() => {
        asking = undefined
      })
      return asking
    },
  }
}
