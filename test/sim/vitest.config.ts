// Configures npm run test:sim: simulations of phones, a bank and administrators on two servers, with faults of network, database, clock and
// processes, each from one seed. PAWL_SIM_SEED names a seed to replay; PAWL_SIM_SEEDS is the number of new seeds.
import { defineConfig } from 'vitest/config'

// Only the embedded database can be held between two statements.
delete process.env['PAWL_TEST_DATABASE_URL']

const isReplay = Boolean(process.env['PAWL_SIM_SEED'])

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: [isReplay ? 'test/sim/replay.test.ts' : 'test/sim/*.test.ts'],
    exclude: isReplay ? [] : ['test/sim/replay.test.ts'],
    globalSetup: ['test/helpers/global-setup.ts', 'test/sim/global-setup.ts'],
    setupFiles: ['test/sim/setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
