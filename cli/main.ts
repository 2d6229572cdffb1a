// The command line of pawl: what is typed behind `pawl`, on this process.
import { ENTRIES } from './entries.ts'
import { runProgram } from './program.ts'
import { openTerminal } from './terminal.ts'

// `pawl … | head`: a reader that has seen enough is no fault, and the command goes on to its end.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

process.exitCode = await runProgram(ENTRIES, process.argv.slice(2), openTerminal())
