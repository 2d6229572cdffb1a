// Deletes what is over: each kind has its days, and goes in batches.
import { takeBatches } from './in-batches.ts'
import { deleteOldActivations, deleteOldMessages, deleteOldOperations } from '../storage/retention.ts'
import type { DomainParts } from './secrets/secrets.ts'

export interface RetentionSettings {
  readonly operationRetentionDays: number
  readonly activationRetentionDays: number
  readonly inboxRetentionDays: number
}

/** Deletes what is older than its days: batches until nothing is due, or `signal` is aborted. */
export async function deleteOutdated(
  { db, platform, events, settings }: Omit<DomainParts, 'recordKeys'> & { readonly settings: RetentionSettings },
  signal: AbortSignal,
): Promise<void> {
  const before = (days: number): Date => new Date(platform.now() - days * DAY_MS)
  const deleteAll = (deleteBatch: typeof deleteOldOperations, days: number): Promise<number> =>
    takeBatches((limit) => deleteBatch(db, before(days), limit), signal)
  const operations = await deleteAll(deleteOldOperations, settings.operationRetentionDays)
  const activations = await deleteAll(deleteOldActivations, settings.activationRetentionDays)
  const messages = await deleteAll(deleteOldMessages, settings.inboxRetentionDays)
  if (operations + activations + messages > 0) events.outdatedDeleted({ operations, activations, messages })
}

const DAY_MS = 86_400_000
