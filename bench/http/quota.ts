// Limits processes of a server to a share of a processor, so that neither the clients nor PostgreSQL are the limit of a measurement. It needs
// root and the cpu controller of cgroup v1 (CFS bandwidth control).
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CONTROLLER = '/sys/fs/cgroup/cpu'
const PERIOD_US = 10_000

/** Limits the processes of each list together to `share` of a processor. The returned function removes the limits after their end. */
export function limitProcessors(lists: readonly (readonly number[])[], share: number): () => void {
  if (!existsSync(join(CONTROLLER, 'cpu.cfs_quota_us'))) throw new Error(`no cpu controller of cgroup v1 at ${CONTROLLER}`)
  const groups = lists.map((pids) => {
    const group = join(CONTROLLER, `pawl-bench-${pids.join('-')}`)
    mkdirSync(group)
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US))
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(Math.round(PERIOD_US * share)))
    for (const pid of pids) writeFileSync(join(group, 'cgroup.procs'), String(pid))
    return group
  })
  return () => {
    for (const group of groups) rmdirSync(group)
  }
}
