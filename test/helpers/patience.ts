// How long tests wait for what comes when it comes.

/** In milliseconds. Nothing is claimed about that time: what never comes fails before the test runs out of it. A claim has its assertion. */
export const PATIENCE_MS = 100_000
