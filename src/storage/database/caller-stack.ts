// Stacks that lead from a failed statement back to the endpoint whose request caused it.

/** From a driver to an endpoint there are more frames than the 10 that V8 keeps. */
export function keepLongStacks(): void {
  Error.stackTraceLimit = 40
}

/**
 * Handles the failure of a promise: adds to the stack of the error who waits for that promise, and throws it again. V8 follows promises that
 * are awaited; it loses a caller whose promise is settled by a function kept aside. Of several who wait for one error the first is named.
 */
export function addCallers(error: unknown): never {
  if (error instanceof Error && !extended.has(error)) {
    extended.add(error)
    const waiting = { stack: '' }
    Error.captureStackTrace(waiting, addCallers)
    error.stack += waiting.stack.replace(/^.*/, '')
  }
  throw error
}

const extended = new WeakSet<Error>()
