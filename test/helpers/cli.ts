// A command line of pawl within this process: no start of Node, what it prints is kept.
import type { Terminal } from '../../cli/command.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { runProgram } from '../../cli/program.ts'

export interface CliEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface CliInput {
  /** All of stdin. */
  readonly input?: string
  /** What a person types when asked for a secret, one after the other; without any, no person is there. */
  readonly secrets?: readonly string[]
  /** A person looks at what is printed. */
  readonly isInteractive?: boolean
}

/** Runs `pawl` with these words and nothing in its environment but `env`. */
export async function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { input = '', secrets = [], isInteractive = false }: CliInput = {},
): Promise<CliEnd> {
  const printed = { stdout: '', stderr: '' }
  const left = [...secrets]
  const terminal: Terminal = {
    env,
    isInteractive,
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
    askSecret: () => Promise.resolve(left.shift()),
    readInput: () => Promise.resolve(input),
    interruption: () => new AbortController().signal,
  }
  const code = await runProgram(ENTRIES, args, terminal)
  return { code, ...printed }
}
