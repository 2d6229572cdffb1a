// Declares pawl apply and pawl export: make a server equal to a set-up file, and write a server as such a file.
import { bankCommand } from '../bank-command.ts'
import { flag, type Terminal, text } from '../command.ts'
import { orFault, usageFault } from '../fault.ts'
import { readFile } from '../json-argument.ts'
import { printable } from '../output.ts'
import { writeWhole } from '../whole-file.ts'

/** In bytes. The set-up of a bank is far smaller, so a larger file is no set-up file. */
const FILE_MAX = 8 * 1024 * 1024

export const apply = bankCommand({
  name: 'apply',
  summary:
    'Makes a running server as a set-up file says: applications, versions, templates, webhooks, users and all that is set in them',
  more:
    'What is there already stays, what differs is changed, and what the file does not name is left alone and listed, but with --prune. ' +
    'The passwords of new users and the secrets of new webhooks are shown this once. ' +
    'After a fault, or a signal to end it, the next apply goes on. docs/SETUP-FILE.md describes the file.',
  options: {
    file: text('FILE', 'the set-up file, YAML or JSON; - is stdin', 'f'),
    dryRun: flag('shows what would be made (+), changed (~) and removed (-), and changes nothing'),
    prune: flag('also removes what the file does not name, of the kinds that it has a list of; needs --yes'),
    yes: flag('agrees to what --prune removes'),
  },
  examples: [
    'apply -f pawl.yaml --dry-run',
    'apply -f pawl.yaml',
    'apply -f - <pawl.yaml',
    'apply -f pawl.yaml --prune --dry-run',
    'apply -f pawl.yaml --prune --yes',
  ],
  run: async ({ values: { file, dryRun: isDryRun, prune: isPruned, yes: isConfirmed }, terminal, isJson, openBank }) => {
    if (file === undefined) throw usageFault('--file is needed')
    if (isConfirmed && !isPruned) throw usageFault('--yes agrees to what --prune removes, which is not given')
    const { readSetup } = await import('../setup/read.ts')
    const { applySetup } = await import('../setup/run.ts')
    const name = file === '-' ? 'stdin' : file
    const read = readSetup(name, await readText(file, terminal))
    await applySetup(openBank(), read, { file: name, isDryRun, isPruned, isConfirmed, isJson, terminal })
    return undefined
  },
})

export const exportSetup = bankCommand({
  name: 'export',
  summary: 'Writes the set-up of a running server as a file that pawl apply takes',
  more:
    'Everything that apply can set, sorted. Nothing of it is secret; what is needed beside it is said on stderr. ' +
    'With a template that apply would refuse, because it was altered in the database, the file has no templates; the exit code is 1.',
  options: { output: text('FILE', 'where to write it; by default stdout', 'o') },
  examples: ['export >pawl.yaml', 'export -o pawl.yaml', 'export --json'],
  run: async ({ values: { output }, terminal, isJson, openBank }) => {
    const { exportSetup: toSetup, formatSetup } = await import('../setup/export.ts')
    const { readState } = await import('../setup/state.ts')
    const { setup, notes, isWhole } = toSetup(await readState(openBank()))
    for (const note of notes) terminal.note(printable(note))
    const exitCode = isWhole ? 0 : 1
    if (output === undefined) return { json: setup, text: formatSetup(setup), exitCode }
    orFault('output', '--output', () => writeWhole(output, isJson ? `${JSON.stringify(setup, null, 2)}\n` : formatSetup(setup)))
    return { json: { file: output }, text: '', exitCode }
  },
})

async function readText(file: string, { readInput }: Pick<Terminal, 'readInput'>): Promise<string> {
  if (file === '-') return readInput()
  const text = readFile('--file', file)
  if (Buffer.byteLength(text) > FILE_MAX) throw usageFault(`--file: ${file} has more than ${FILE_MAX} bytes`)
  return text
}
