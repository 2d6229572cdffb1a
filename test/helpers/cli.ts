// Runs a command line of pawl in this process, without a start of Node, and keeps its output.
import type { Terminal } from '../../cli/command.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { type Entry, runProgram } from '../../cli/program.ts'

export interface CliEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface CliInput {
  /** All of stdin. */
  readonly input?: string
  /** The answers to questions for secrets, in their order; without any, stdin is no terminal. */
  readonly secrets?: readonly string[]
  /** The columns of the terminal that stdout is; undefined when stdout is no terminal. */
  readonly columns?: number
  /** Commands in the place of those of pawl. */
  readonly entries?: readonly Entry[]
}

/** Runs `pawl` with these words. Its environment has only `env`. */
export async function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { input = '', secrets = [], columns, entries = ENTRIES }: CliInput = {},
): Promise<CliEnd> {
  const printed = { stdout: '', stderr: '' }
  const left = [...secrets]
  const terminal: Terminal = {
    env,
    columns,
    write: (text) => {
      printed.stdout += text
    },
    print: (text) => {
      printed.stdout += text
      return Promise.resolve(true)
    },
    note: (line) => {
      printed.stderr += `${line}\n`
    },
    askSecret: (question) => {
      const answer = left.shift()
      if (answer !== undefined) printed.stderr += `${question}\n`
      return Promise.resolve(answer)
    },
    readInput: () => Promise.resolve(input),
    interruption: () => new AbortController().signal,
  }
  const code = await runProgram(entries, args, terminal)
  return { code, ...printed }
}
