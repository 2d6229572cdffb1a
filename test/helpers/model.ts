// Runs model tests: random commands run against the server and against a model of it, which must agree after each.
import fc from 'fast-check'

export type Command<M extends object, R> = fc.AsyncCommand<M, R>

/** A command that prints as `name`. `run` acts on the server, checks it against the model, and changes the model. */
export const command = <M extends object, R>(name: string, run: (model: M, real: R) => Promise<void>): Command<M, R> => ({
  check: () => true,
  run,
  toString: () => name,
})

/**
 * Runs several sequences of commands, more in CI: half of those on PostgreSQL, and where a run on it follows. Each begins with a value
 * of `start`, and has up to `max` commands. A failing one is shortened and printed with its seed, which PAWL_TEST_SEED takes.
 */
export async function assertModel<S, M extends object, R>(
  start: fc.Arbitrary<S>,
  commands: readonly fc.Arbitrary<Command<M, R>>[],
  begin: (start: S) => Promise<{ readonly model: M; readonly real: R }>,
  max: number,
): Promise<void> {
  const lives = fc.commands([...commands], { maxCommands: max, size: 'max' })
  const property = fc.asyncProperty(start, lives, async (from, life) => {
    const begun = await begin(from)
    await fc.asyncModelRun(() => begun, life)
  })
  await fc.assert(property, { numRuns: LIVES, interruptAfterTimeLimit: TIME_MS })
}

const { CI, PAWL_TEST_DATABASE_URL, PAWL_TEST_POSTGRES_FOLLOWS } = process.env
const LIVES = !CI ? 8 : PAWL_TEST_DATABASE_URL || PAWL_TEST_POSTGRES_FOLLOWS ? 15 : 30
// A sequence takes a second, or five on a busy machine. The rest of the time is for shortening a failing one.
const TIME_MS = 200_000
/** The time limit of a test that calls assertModel. */
export const MODEL_TIMEOUT_MS = TIME_MS + 40_000
