// Configures npm run test:faults: servers whose database hangs, breaks or cannot write. Each file ends with a line that says how many
// requests were sent, answered, lost and accepted again. The tests have a database server of their own, because some freeze or stop it.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/faults/*.test.ts'],
    globalSetup: ['test/helpers/bundle.ts', 'test/faults/own-postgres.ts', 'test/helpers/global-setup.ts'],
    pool: 'forks',
    // Files run one after the other, because some freeze the database of all. Most of the time of a case is waiting.
    maxWorkers: 1,
    maxConcurrency: 6,
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
