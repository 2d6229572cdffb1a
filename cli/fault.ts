// Defines the faults of a command line: their lines of text, and the exit code of each kind.

/** Exit codes and their meanings; docs/CLI.md lists them. */
export const EXIT_CODES = {
  done: [0, 'done'],
  refused: [1, 'the server refused, or what was checked is not in order'],
  usage: [2, 'the command line cannot be carried out as it is given, or a setting is wrong'],
  unreachable: [3, 'the server or the database does not answer, is not there, or cannot be used'],
  missing: [4, 'what was named does not exist'],
  credential: [5, 'the credential is missing, wrong, or not allowed to do this'],
  output: [6, 'what was to be said could not be written; what the command does may be done'],
  unforeseen: [7, 'nobody foresaw this, and it may be a defect of pawl: PAWL_LOG_LEVEL=debug shows where it comes from'],
} as const satisfies Readonly<Record<string, readonly [number, string]>>
export type FaultKind = Exclude<keyof typeof EXIT_CODES, 'done'>

/** A fault whose message is printed without a stack, one line a problem. */
export class Fault extends Error {
  readonly kind: FaultKind

  constructor(kind: FaultKind, message: string) {
    super(message)
    this.name = 'Fault'
    this.kind = kind
  }
}

/** A command line that cannot be carried out as it is given. */
export const usageFault = (message: string): Fault => new Fault('usage', `${message}; --help says how to call it`)

export const exitCodeOf = (error: unknown): number => EXIT_CODES[error instanceof Fault ? error.kind : 'unforeseen'][0]

/** Runs a step with a file. Throws a Fault that begins with `what` when the system refuses the step. */
export function orFault<T>(kind: FaultKind, what: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw error instanceof Fault ? error : new Fault(kind, `${what}: ${explainFault(error)}`)
  }
}

/** The stack of a thrown value, and the stacks of its causes, for a report of a defect. */
export const stackOf = (error: unknown): string =>
  error instanceof Error
    ? [error.stack ?? error.message, ...(error.cause === undefined ? [] : [stackOf(error.cause)])].join('\n')
    : String(error)

/** Explains a thrown value in one line, with its causes: for a request, why no answer came. */
export function explainFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const causes = error instanceof AggregateError ? error.errors : error.cause instanceof Error ? [error.cause] : []
  const own = error.message || ('code' in error ? String(error.code) : error.name)
  const reasons = causes.slice(0, 1).map(explainFault)
  return [own, ...reasons.filter((reason) => !own.includes(reason))].join(': ').replace(/\s*\n\s*/g, ' ')
}
