// Runs the operator's program that prints the master keys: the command line of a secret store, or a script.
import { execFile } from 'node:child_process'
import { StartError } from '../../lib/errors.ts'

/**
 * Runs the program, and returns what it prints on stdout. It runs without a shell, and only with the given environment, because that of the
 * server has secrets. Throws StartError when it fails or takes too long; neither its output nor its arguments are repeated, because both may
 * contain secrets.
 */
export function runKeyCommand(command: string, env: Readonly<Record<string, string>>, timeoutMs = TIMEOUT_MS): Promise<string> {
  const [program = '', ...args] = command.trim().split(/\s+/)
  return new Promise((resolve, reject) => {
    const limits = {
      env: { ...env },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: OUTPUT_BYTES_MAX,
      encoding: 'utf8',
    } as const
    const child = execFile(program, args, limits, (error, stdout) => {
      if (error === null) resolve(stdout)
      else reject(new StartError(`PAWL_MASTER_KEY_COMMAND: ${program} ${explain(error, timeoutMs)}`))
    })
    child.stdin?.end()
  })
}

function explain(error: Error & { killed?: boolean; code?: unknown; signal?: unknown }, timeoutMs: number): string {
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
    return `printed more than ${OUTPUT_BYTES_MAX} bytes; it is to print the key alone`
  if (error.killed === true) return `did not end within ${timeoutMs / 1000} seconds; run it by hand to see what it waits for`
  if (typeof error.code === 'number') return `ended with exit status ${error.code}; run it by hand to see why`
  return typeof error.code === 'string'
    ? `cannot be run (${error.code}); look at its path and at who may execute it`
    : `was ended by a signal (${String(error.signal)}); look at the log of the system`
}

const TIMEOUT_MS = 10_000
const OUTPUT_BYTES_MAX = 65_536
