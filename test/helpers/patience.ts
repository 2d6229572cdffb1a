// Defines the time for which tests wait for an event that may come late.

/** In milliseconds. The time is no claim: an event that never comes fails before the test's own time limit. Claims about time are assertions. */
export const PATIENCE_MS = 100_000
