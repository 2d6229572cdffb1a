// Tests lie beside the code and in test/. Two projects: `quick` is what one waits for before a commit; `process` is what takes long for a
// reason: it starts servers as an operator would, sends floods, hashes passwords by the hundred, repeats a request for each of its statements,
// or makes databases from nothing. Three workers for two processors, because tests of whole processes often wait.
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { PATIENCE_MS } from './test/helpers/patience.ts'

const PROCESS = 'test/process/**/*.test.ts'

// What has no database, always the embedded one, or nothing to ask of it that others do not ask (what is refused before it, what a browser or a
// terminal shows), runs once: not again beside the tests that PostgreSQL is for.
const withoutPostgres = [
  'src/**',
  'test/{architecture,citations,deploy,description,docs,generations,request-guards}.test.ts',
  'test/{conformance,property}/**',
  'test/cli/{commands,development,doctor,exit-codes,phone-screen,phone-store,whole-file}.test.ts',
  'test/storage/{closed-embedded,directory-lock,lent-database,queries}.test.ts',
  'test/process/{alerts,backend-page,backup,client-certificates,demo,haproxy,listeners,load-limits,log,prefix,prepare,production,readme,set-clock,standards,start,statements,templates,traces}.test.ts',
  'test/process/{bad-envelopes-v4,bad-headers-v4,bad-keys-v4,bodies,command-lines,console,console-forms,console-texts,description-page,embedded-panic,key-commands,output,phone,phones-in-reach,races,races-v4,strangers-cost,wrapper}.test.ts',
  'test/http/{duplicate-slash,errors,forwarded,internal-tls,load-limits}.test.ts',
]
// What asks the same of both databases at length, and more of one with many connections: once, on PostgreSQL, where a run on it follows
// (PAWL_TEST_POSTGRES_FOLLOWS). Refused starts, signals, crashes, migrations and secrets at rest run on both.
const onPostgres = [
  'test/api/mobile-token/transfer.test.ts',
  'test/process/{administration-races,console-lists,console-session,database-clock,doors,erasure-races,fence}.test.ts',
  'test/process/{housekeeping,import-damage,key-binding,lost-database-doors,lost-database-v4,service-links,setup,temporary-key-turns}.test.ts',
  'test/process/{between-statements-v4,killed-envelopes,lists,login,only-guesses,operation-races,push,record-binding,stepped-clock,transfers,webhook-delivery,webhooks}.test.ts',
]
// Faults, failovers and simulations have configurations of their own.
const exclude = [
  ...configDefaults.exclude,
  'test/{faults,ha,sim}/**',
  ...(process.env['PAWL_TEST_DATABASE_URL'] ? withoutPostgres : process.env['PAWL_TEST_POSTGRES_FOLLOWS'] ? onPostgres : []),
]

// Of the quick ones those that take longest, which a fresh clone cannot know.
const LONG = /\/test\/(api\/device(\/token|\/faults|-v4)|description|domain\/(model|push)|http\/load-limits|storage\/a[lu])/

/** Whole processes first, then long files: what takes a minute must not start when everything else is done. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification): number =>
      project.name === 'process' ? 0 : LONG.test(moduleId) ? 1 : 2
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'quick', include: ['{src,test}/**/*.test.ts'], exclude: [...exclude, PROCESS] } },
      { extends: true, test: { name: 'process', include: [PROCESS], exclude, globalSetup: ['test/helpers/bundle.ts'] } },
    ],
    globalSetup: ['test/helpers/global-setup.ts'],
    setupFiles: ['test/helpers/seed.ts', 'test/helpers/failed.ts', 'test/helpers/cheap-scrypt.ts'],
    sequence: { sequencer: LongestFirst },
    pool: 'forks',
    maxWorkers: 3,
    // One process runs many files: compiling the code and the embedded database anew for each takes two fifths of all processor time.
    isolate: false,
    // Node loads the sources, as it does in production: through Vite's module runner the same tests take a ninth more processor time. Nothing needs
    // the mocks of modules that the runner has.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // For what hangs: on a machine that others keep busy a test takes five times as long as it does alone.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // What is waited for comes when it comes; what never comes fails before the test runs out of time.
    expect: { poll: { timeout: PATIENCE_MS } },
    coverage: { include: ['src/**/*.ts'], exclude: ['src/**/*.test.ts'] },
  },
})
