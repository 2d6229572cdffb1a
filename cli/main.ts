// Runs one command line of pawl in this process.
import { ENTRIES } from './entries.ts'
import { explainFault, Fault } from './fault.ts'
import { explain, runProgram } from './program.ts'
import { openTerminal } from './terminal.ts'

const [words, terminal] = [process.argv.slice(2), openTerminal()]
// An embedded database that has ended answers its command no more, and says so here. Code 1 would say that what was checked is not in order.
process.on('uncaughtException', (error) => process.exit(explain(new Fault('unreachable', explainFault(error)), words, terminal)))
process.exitCode = await runProgram(ENTRIES, words, terminal)
