// Runs one command line of pawl in this process.
import { ENTRIES } from './entries.ts'
import { Fault } from './fault.ts'
import { explain, runProgram } from './program.ts'
import { openTerminal } from './terminal.ts'

const [words, terminal] = [process.argv.slice(2), openTerminal()]
// An embedded database that has ended answers its command no more, and says so here.
process.on('uncaughtException', (error) =>
  process.exit(explain(error.name === 'StartError' ? new Fault('unreachable', error.message) : error, words, terminal)),
)
process.exitCode = await runProgram(ENTRIES, words, terminal)
