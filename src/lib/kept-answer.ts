// An answer of another server that is kept for a while: asked for once however many wait, and not again right after a failure.

/** What was answered, and when by the monotonic clock. */
export interface Kept<T> {
  readonly value: T
  readonly at: number
}

export interface KeptAnswer<T> {
  /**
   * What is kept if it is younger than `ageMs`, else what the server answers now. Throws what `ask` throws; for `failureMs` after a failure it
   * throws that one without asking.
   */
  readonly read: (ageMs: number) => Promise<Kept<T>>
}

/** Times go by the monotonic clock: one that is set back a day would keep for a day what was withdrawn. */
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
