// Reads the processor time and the memory of processes, as the kernel counts them (proc(5)).
import { readdirSync, readFileSync } from 'node:fs'

/** Microseconds of processor time of a process, its threads and the children it has waited for. Counted in steps of 10 ms. */
function cpuMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name in parentheses may hold anything; the fields after it are counted from the third.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0)
  return ticks * (1_000_000 / TICKS_PER_SECOND)
}

/** Microseconds of processor time of the present threads of a process, counted in nanoseconds. */
export const threadsCpuMicroseconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + threadNanoseconds(`/proc/${pid}/task/${thread}/schedstat`), 0) /
  1000

/** 0 for a thread that has ended meanwhile. */
function threadNanoseconds(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8').split(' ')[0])
  } catch {
    return 0
  }
}

/** Microseconds of processor time of a process and everything below it, whether it still runs or was waited for. */
export function treeCpuMicroseconds(pid: number): number {
  return cpuMicroseconds(pid) + childrenOf(pid).reduce((sum, child) => sum + cpuMicrosecondsIfAlive(child), 0)
}

/** Resident memory of a process and its children in MiB; pages that they share count for each. */
export const treeResidentMebibytes = (pid: number): number =>
  residentMebibytes(pid) + childrenOf(pid).reduce((sum, child) => sum + residentMebibytes(child), 0)

/** A process and its children. */
export const processesOf = (pid: number): number[] => [pid, ...childrenOf(pid)]

const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean))
    .map(Number)

function residentMebibytes(pid: number): number {
  const [, kibibytes = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}

/** 0 for a child that has just ended: from then on its parent's sum includes it. */
function cpuMicrosecondsIfAlive(pid: number): number {
  try {
    return cpuMicroseconds(pid)
  } catch {
    return 0
  }
}

/** USER_HZ, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100
