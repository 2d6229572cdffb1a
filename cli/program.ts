// Runs a command line of pawl by commander: parses it, runs the command, prints the result.
import { Command as Program, CommanderError, Option } from 'commander'
import { type Answer, type Command, type Noun, renderFlag, type Terminal } from './command.ts'
import { EXIT_CODES, exitCodeOf, explainFault, Fault, stackOf } from './fault.ts'
import { layOut, printable } from './output.ts'

/** A noun with its commands, or a command that stands alone. */
export type Entry = Noun | Command

/** True for a noun. */
export const isNoun = (entry: Entry): entry is Noun => 'commands' in entry

/** Carries out a command line and returns the exit code. */
export async function runProgram(entries: readonly Entry[], args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const answer = await carryOut(entries, args, terminal)
    // Called for an empty text, too, because it reports the failure of an earlier write.
    await terminal.print(answer === undefined ? '' : render(answer, args))
    return answer?.exitCode ?? EXIT_CODES.done[0]
  } catch (error) {
    // bin/pawl.mjs says what to install.
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') throw error
    return explain(error, args, terminal)
  }
}

/** Runs the command, and returns its result; undefined when help was asked for, which is printed then. */
async function carryOut(entries: readonly Entry[], args: readonly string[], terminal: Terminal): Promise<Answer | undefined> {
  const outcome: Outcome = { answer: undefined }
  try {
    await buildProgram(entries, terminal, outcome).parseAsync(spellOut(args), { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode !== 0) throw ofCommander(error, args)
  }
  return outcome.answer
}

/** Rewrites what people type for other programs: `help app list` is `app list --help`, and `--version` is `version`. */
function spellOut(args: readonly string[]): string[] {
  const [first, ...rest] = args
  if (first === 'help' && rest[0] === 'help') return spellOut(rest)
  if (first === 'help') return [...rest.filter((word) => word !== '--help'), '--help']
  return first === '--version' || first === '-V' ? ['version', ...rest] : [...args]
}

interface Outcome {
  answer: Answer | undefined
}

function buildProgram(entries: readonly Entry[], terminal: Terminal, outcome: Outcome): Program {
  const program = newGroup('pawl', 'Serves, and is the command line of its operators, of the bank and of a phone.', terminal)
  program.addHelpText(
    'after',
    `\nWithout a command it serves. pawl help COMMAND says more of one. Exit codes:\n${describeExitCodes()}`,
  )
  for (const entry of entries) {
    if (!isNoun(entry)) {
      program.addCommand(buildCommand(entry, terminal, outcome))
      continue
    }
    const noun = newGroup(entry.name, entry.summary, terminal)
    for (const one of entry.commands) noun.addCommand(buildCommand(one, terminal, outcome))
    program.addCommand(noun)
  }
  return program
}

const describeExitCodes = (): string =>
  Object.values(EXIT_CODES)
    .map(([code, meaning]) => `  ${code}  ${meaning}`)
    .join('\n')

function buildCommand(one: Command, terminal: Terminal, outcome: Outcome): Program {
  const program = newProgram(one.name, [`${one.summary}.`, one.more ?? ''].join(' ').trim(), terminal).summary(one.summary)
  for (const [word, description] of Object.entries(one.words ?? {})) program.argument(word, description)
  for (const [name, given] of Object.entries(one.options ?? {})) {
    const { kind, text } = given
    const option = new Option(renderFlag(name, given), text)
    if (kind === 'many') option.argParser((given: string, before: readonly string[] | undefined) => [...(before ?? []), given])
    program.addOption(option)
  }
  program.option('--json', 'prints JSON')
  program.addHelpText('after', `\nExamples:\n${one.examples.map((example) => `  pawl ${example}`).join('\n')}`)
  return program.action(async () => {
    const options: Readonly<Record<string, unknown>> = program.opts()
    const values = Object.fromEntries(
      Object.entries(one.options ?? {}).map(([name, { kind }]) => [
        name,
        options[name] ?? (kind === 'flag' ? false : kind === 'many' ? [] : undefined),
      ]),
    )
    const words = program.processedArgs as readonly (string | undefined)[]
    outcome.answer = await one.run({ words, values: values as never, terminal, isJson: options['json'] === true })
  })
}

/** Makes a program that prints nothing on stderr, never ends the process, and refuses surplus words. */
const newProgram = (name: string, description: string, terminal: Terminal): Program =>
  new Program(name)
    .description(description)
    .exitOverride()
    .helpCommand(false)
    .allowExcessArguments(false)
    .configureOutput({
      writeOut: terminal.write,
      writeErr: () => undefined,
      getOutHelpWidth: () => Math.min(HELP_WIDTH, terminal.columns || HELP_WIDTH),
    })
    // Commander wraps nothing where less than 40 columns are left for a description.
    .configureHelp({ minWidthToWrap: 20 })

/** Makes a program of commands. For an unknown word with `--help`, commander alone would print the help of the group. */
function newGroup(name: string, description: string, terminal: Terminal): Program {
  const group = newProgram(name, description, terminal)
  return group.addHelpText('before', () => {
    const [word] = group.args
    return word === undefined || word.startsWith('-') ? '' : group.error(`unknown command '${word}'`)
  })
}

const HELP_WIDTH = 110

const asksForJson = (args: readonly string[]): boolean => args.includes('--json')

function render({ json, text }: Answer, args: readonly string[]): string {
  if (asksForJson(args)) return `${JSON.stringify(json, null, 2)}\n`
  return text ?? layOut(json)
}

/**
 * Says on stderr what was thrown, and returns the exit code. A Fault is one line a problem. Anything else is one line, too, which says how to get
 * the stack, and is followed by the stack once that is asked for.
 */
export function explain(error: unknown, args: readonly string[], terminal: Terminal): number {
  const code = exitCodeOf(error)
  const isDebugging = ['debug', 'trace'].includes(terminal.env['PAWL_LOG_LEVEL'] ?? '')
  const stack = error instanceof Fault || !isDebugging ? [] : stackOf(error).split('\n')
  const lines = error instanceof Fault ? error.message.split('\n') : [`${explainFault(error)}; ${UNFORESEEN}`, ...stack]
  if (asksForJson(args)) terminal.note(JSON.stringify({ error: lines.join('\n'), exitCode: code }))
  else for (const line of lines) terminal.note(printable(line))
  return code
}

const UNFORESEEN = 'nobody foresaw this, PAWL_LOG_LEVEL=debug shows where it comes from'

/** The Fault for commander's complaint about the command line. */
function ofCommander(error: CommanderError, args: readonly string[]): Fault {
  const where = ['pawl', ...args.filter((word) => !word.startsWith('-')).slice(0, 1)].join(' ')
  if (error.code === 'commander.help') return new Fault('usage', `${where}: a command is needed; ${where} --help lists them`)
  const said = error.message.replace(/^error: /, '').replaceAll(/\s*\n\s*/g, ' ')
  return new Fault('usage', `${said}; --help says how to call it`)
}
