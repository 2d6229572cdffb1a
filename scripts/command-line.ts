// Reads the command lines of scripts: options by node:util, a --help that does nothing else, and one line for a fault.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { explainFault, usageFault } from '../cli/fault.ts'

export interface CommandLine<O extends ParseArgsOptionsConfig> {
  /** The text of --help: the first line describes the script, the others show calls of it. */
  readonly usage: string
  readonly options?: O
  /** The greatest number of words other than options; 0 when absent. */
  readonly wordsMax?: number
}

/** The values and the words of a command line with these options. */
export interface Given<O extends ParseArgsOptionsConfig> {
  readonly values: ReturnType<typeof parseArgs<{ options: O }>>['values']
  readonly words: readonly string[]
}

/**
 * Reads the command line of this process and runs `work`. A fault is one line on stderr, never a stack, and exit status 1.
 */
export async function runCommand<const O extends ParseArgsOptionsConfig = ParseArgsOptionsConfig>(
  { usage, options, wordsMax = 0 }: CommandLine<O>,
  work: (given: Given<O>) => unknown,
  args: readonly string[] = process.argv.slice(2),
): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that closes the pipe early is no fault.
    if (error.code === 'EPIPE') return
    process.stderr.write(`the output cannot be written: ${explainFault(error)}\n`)
    process.exitCode = 1
  })
  if (asksForHelp(args)) {
    process.stdout.write(`${usage}\n`)
    return
  }
  try {
    await work(readArguments({ options, wordsMax }, args))
  } catch (error) {
    process.stderr.write(`${explainFault(error)}\n`)
    process.exitCode = 1
  }
}

/** Whether the words before `--` contain --help or -h. It is called before all other checks, so that --help works with any command line. */
export const asksForHelp = (args: readonly string[]): boolean => {
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? args.length : end).some((word) => word === '--help' || word === '-h')
}

function readArguments<O extends ParseArgsOptionsConfig>(
  { options, wordsMax }: { options: O | undefined; wordsMax: number },
  args: readonly string[],
): Given<O> {
  const { values, positionals } = parse({ ...options } as O, args)
  const [extra] = positionals.slice(wordsMax)
  if (extra !== undefined) throw usageFault(`${extra}: one word too many`)
  return { values, words: positionals }
}

function parse<O extends ParseArgsOptionsConfig>(options: O, args: readonly string[]) {
  try {
    return parseArgs({ options, allowPositionals: true, args: [...args] })
  } catch (error) {
    // The message is cut after its first sentence; the others explain the syntax of words that begin with a dash.
    throw usageFault(explainFault(error).replace(/\. To specify .*/s, ''))
  }
}
