// npm run test:faults: what happens to a server whose database hangs, breaks or cannot write. Each file ends with a line that says how
// much was sent, answered, lost and accepted again. The database server is one of their own, because some freeze or stop it.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/faults/*.test.ts'],
    globalSetup: ['test/faults/own-postgres.ts', 'test/helpers/global-setup.ts'],
    pool: 'forks',
    // One file after the other: some of them freeze the database of all. Most of each case is waiting.
    maxWorkers: 1,
    maxConcurrency: 6,
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
