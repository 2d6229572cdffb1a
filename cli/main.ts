// Runs one command line of pawl in this process.
import { ENTRIES } from './entries.ts'
import { runProgram } from './program.ts'
import { openTerminal } from './terminal.ts'

process.exitCode = await runProgram(ENTRIES, process.argv.slice(2), openTerminal())
