// Declares commands of pawl as data, from which the parser, the help, the completion and docs/CLI.md are made.
import type { Environment } from './environment.ts'

export interface Option {
  readonly kind: 'text' | 'flag' | 'many'
  /** The placeholder for the value in the help; empty for a flag. */
  readonly value: string
  readonly text: string
  /** The letter of the short form: `f` for `-f`. */
  readonly short?: string
}

/** An option with a value. `short`: the letter of its short form. */
export const text = (value: string, description: string, short?: string) =>
  ({ kind: 'text', value, text: description, ...(short !== undefined && { short }) }) as const
/** An option without a value. */
export const flag = (description: string) => ({ kind: 'flag', value: '', text: description }) as const
/** An option with a value that may be given several times. */
export const many = (value: string, description: string) => ({ kind: 'many', value, text: description }) as const

export type Options = Readonly<Record<string, Option>>

/** The given values of the options, by their names in the code. */
export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K]['kind'] extends 'flag'
    ? boolean
    : O[K]['kind'] extends 'many'
      ? readonly string[]
      : string | undefined
}

/** The terminal of a command: its input, output and environment. */
export interface Terminal {
  readonly env: Environment
  /** The columns of the terminal that stdout is; undefined when stdout is no terminal, and 0 when its width is unknown. */
  readonly columns: number | undefined
  /** Writes to stdout without waiting. The next `print` reports a failure. */
  readonly write: (text: string) => void
  /** Writes to stdout and waits for the write. False when the reader has closed the pipe. Throws a Fault on any other failure. */
  readonly print: (text: string) => Promise<boolean>
  /** Prints a line to stderr: progress, or another text that is no part of the answer. */
  readonly note: (line: string) => void
  /** Asks the user for a secret without showing it; undefined when stdin is no terminal. */
  readonly askSecret: (question: string) => Promise<string | undefined>
  /** Reads stdin to its end. Throws a Fault when it is not UTF-8. */
  readonly readInput: () => Promise<string>
  /** From this call on, SIGINT and SIGTERM abort the returned signal, with a Fault as the reason; one second later they end the process. */
  readonly interruption: () => AbortSignal
}

export interface Given<O extends Options = Options> {
  /** The arguments in the order of the declaration; an optional one that is missing is undefined. */
  readonly words: readonly (string | undefined)[]
  readonly values: Values<O>
  readonly terminal: Terminal
  /** Whether a program will read the output. */
  readonly isJson: boolean
}

/** The result of a command: `json` for programs, `text` for people. Without `text`, people see the JSON as tables and lines. */
export interface Answer {
  readonly json: unknown
  readonly text?: string
  /** The exit code; undefined means 0. */
  readonly exitCode?: number
}

export interface Command<O extends Options = Options> {
  readonly name: string
  readonly summary: string
  /** Further help, in whole sentences. */
  readonly more?: string
  /** The arguments, `<required>` or `[optional]`, each with its description. */
  readonly words?: Readonly<Record<string, string>>
  readonly options?: O
  /** Whole command lines without `pawl`. */
  readonly examples: readonly string[]
  readonly run: (given: Given<O>) => Promise<Answer | undefined>
}

type NoOptions = Readonly<Record<string, never>>

/** Checks the options of one command against its `run`, and returns the type without them, for the list of all commands. */
export const command = <const O extends Options = NoOptions>(one: Command<O>): Command => one as unknown as Command

/** Commands about one thing. */
export interface Noun {
  readonly name: string
  readonly summary: string
  readonly commands: readonly Command[]
}

/** Converts the name of an option to its flag: `keepPreviousSeconds` to `--keep-previous-seconds`. */
export const toFlag = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** An option with its value as the help shows it: `-f, --file <FILE>`. */
export const renderFlag = (name: string, { kind, value, short }: Option): string =>
  `${short === undefined ? '' : `-${short}, `}${toFlag(name)}${kind === 'flag' ? '' : ` <${value}>`}`
