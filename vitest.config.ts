// Tests lie beside the code and in test/. Three workers for two processors, because tests of whole processes often wait.
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// What has no database, or always the embedded one, runs once: not again beside the tests that PostgreSQL is for.
const withoutPostgres = [
  'src/**',
  'test/{architecture,docs}.test.ts',
  'test/{conformance,property}/**',
  'test/process/{listeners,prepare,start,templates}.test.ts',
]
const isOnPostgres = Boolean(process.env['PAWL_TEST_DATABASE_URL'])

/** Whole processes first: what takes a minute must not start when everything else is done. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): number => Number(moduleId.includes('/test/process/'))
    return (await super.sort(files)).toSorted((a, b) => isLong(b) - isLong(a))
  }
}

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(isOnPostgres ? withoutPostgres : [])],
    globalSetup: ['test/helpers/global-setup.ts'],
    sequence: { sequencer: LongestFirst },
    pool: 'forks',
    maxWorkers: 3,
    // One process runs many files: compiling the code and the embedded database anew for each takes two fifths of all processor time.
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    coverage: { include: ['src/**/*.ts'], exclude: ['src/**/*.test.ts'] },
  },
})
