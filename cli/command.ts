// Declares commands of pawl as data, from which the parser, the help, the completion and docs/CLI.md are made.
import type { Environment } from './environment.ts'

export interface Option {
  readonly kind: 'text' | 'flag' | 'many'
  /** The placeholder for the value in the help; empty for a flag. */
  readonly value: string
  readonly text: string
  /** A letter that stands for it behind one dash. */
  readonly short?: string
}

/** An option with a value, and the letter that stands for it, if any. */
export const text = (value: string, description: string, short?: string) =>
  ({ kind: 'text', value, text: description, ...(short !== undefined && { short }) }) as const
/** An option that is there or not. */
export const flag = (description: string) => ({ kind: 'flag', value: '', text: description }) as const
/** An option with a value that may be given several times. */
export const many = (value: string, description: string) => ({ kind: 'many', value, text: description }) as const

type Options = Readonly<Record<string, Option>>

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
  /** Whether a person looks at stdout. */
  readonly isInteractive: boolean
  /** To stdout, as it is. Whether that went well, the next `print` tells. */
  readonly write: (text: string) => void
  /** The same, waits until it was taken, and is false when the reader has gone. Throws a Fault when it cannot be written. */
  readonly print: (text: string) => Promise<boolean>
  /** A line on stderr: progress, and what is no part of the answer. */
  readonly note: (line: string) => void
  /** Asks a person for a secret without showing it; undefined where no person is. */
  readonly askSecret: (question: string) => Promise<string | undefined>
  /** All of stdin. Throws a Fault when that is no UTF-8. */
  readonly readInput: () => Promise<string>
  /** From now on a signal to end aborts what is returned, with a Fault as the reason; one that comes a second later ends the process. */
  readonly interruption: () => AbortSignal
}

export interface Given<O extends Options = Options> {
  /** In the order in which the command names them; what may be missing is undefined. */
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
  /** When it is not 0. */
  readonly exitCode?: number
}

export interface Command<O extends Options = Options> {
  readonly name: string
  readonly summary: string
  /** Further help, in whole sentences. */
  readonly more?: string
  /** `<needed>` or `[may be missing]`, each with what it is. */
  readonly words?: Readonly<Record<string, string>>
  readonly options?: O
  /** Whole command lines without `pawl`. */
  readonly examples: readonly string[]
  readonly run: (given: Given<O>) => Promise<Answer | undefined>
}

type NoOptions = Readonly<Record<string, never>>

/** A command whose options are known to its `run`; the list of all commands forgets them. */
export const command = <const O extends Options = NoOptions>(one: Command<O>): Command => one as unknown as Command

/** Commands about one thing. */
export interface Noun {
  readonly name: string
  readonly summary: string
  readonly commands: readonly Command[]
}

/** `keepPreviousSeconds` as people type it. */
export const toFlag = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** An option with its value as the help shows it: `-f, --file <FILE>`. */
export const renderFlag = (name: string, { kind, value, short }: Option): string =>
  `${short === undefined ? '' : `-${short}, `}${toFlag(name)}${kind === 'flag' ? '' : ` <${value}>`}`
