/**
 * How long tests wait for what comes when it comes: nothing is claimed about that time. What never comes fails before the test runs out
 * of time. A claim about time is an assertion of its own.
 */
export const PATIENCE_MS = 100_000
