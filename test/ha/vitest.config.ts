// Configures npm run test:ha: a primary and two standbys with synchronous replication, of which the primary is lost under load. Each test ends
// with a line that says how many codes were acknowledged, lost and accepted again, and how long after the promotion pawl served again.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/ha/*.test.ts'],
    globalSetup: ['test/helpers/bundle.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // Patroni alone takes half a minute to notice that a primary is gone.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
