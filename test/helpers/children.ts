// The processes of a program that makes some, such as a PostgreSQL server: its connections are its children.
import { readdirSync, readFileSync } from 'node:fs'

/** Sends the signal to a process and all that it made. */
export function signalAll(main: number, signal: NodeJS.Signals): void {
  for (const pid of [main, ...childrenOf(main)]) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      // It has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** The parent is the second number after the name, which is in brackets. */
const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => parentOf(pid) === parent)
    .map(Number)

function parentOf(pid: string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    // It has ended meanwhile.
    return 0
  }
}
