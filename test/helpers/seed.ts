// Tests with random values print the seed of a failure; with PAWL_TEST_SEED they start from it again.
import { env } from 'node:process'

const seed = env['PAWL_TEST_SEED']
if (seed) {
  // Most test files have no use for it, and it takes a fifth of a second.
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ seed: Number(seed) })
}
