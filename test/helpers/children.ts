// Sends signals to a process and its children, such as a PostgreSQL server, whose connections are its children.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Sends the signal to a process and to its children. */
export function signalAll(main: number, signal: NodeJS.Signals): void {
  for (const pid of [main, ...childrenOf(main)]) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      // The process has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** The parent is the second number after the name, which is in brackets. Where there is no /proc, no child is found. */
const childrenOf = (parent: number): number[] =>
  (existsSync('/proc') ? readdirSync('/proc') : [])
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => parentOf(pid) === parent)
    .map(Number)

function parentOf(pid: string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    // The process has ended meanwhile.
    return 0
  }
}
