// Partitions of the audit log of devices, made ahead of the rows that go there.
import type { Platform } from '../../lib/platform.ts'
import { lockLog } from '../../storage/audit/chain.ts'
import { addPartition, findPartitions } from '../../storage/audit/partitions.ts'
import type { Tx } from '../../storage/database/database.ts'

/**
 * Adds a partition when the newest one ends within a day. Several processes may do this at once: one of them has the lock of the sealer.
 * After a long pause one partition takes the whole time that was left out.
 */
export async function providePartition(tx: Tx, platform: Platform, partitionDays: number): Promise<void> {
  const lock = await lockLog(tx, 'devices')
  if (lock === undefined) return
  const sealing = Math.max(platform.now(), lock.sealedAt?.getTime() ?? 0)
  const newest = (await findPartitions(tx)).at(-1)
  const end = newest?.endsAt.getTime() ?? Number.NEGATIVE_INFINITY
  if (end - sealing > DAY_MS) return
  await addPartition(tx, newest?.endsAt, new Date(Math.max(end, sealing + DAY_MS) + partitionDays * DAY_MS))
}

const DAY_MS = 86_400_000
