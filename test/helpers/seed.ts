// Sets the seed of tests with random values to PAWL_TEST_SEED. A failing test prints its seed.
import { env } from 'node:process'

const seed = env['PAWL_TEST_SEED']
if (seed) {
  // Loaded only here, because it takes a fifth of a second, and most test files do not need it.
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ seed: Number(seed) })
}
