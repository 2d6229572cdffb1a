// Background work every process does beside the others: make expiry durable, delete what has run out (v3 §7.3, §8.7, §14; cloud §9).
import type { Clocked } from '../lib/clock.ts'
import { startRounds } from '../lib/rounds.ts'
import { endTemporaryBlocks, removeExpiredActivations } from '../storage/activation/expiry.ts'
import { deleteOldStrangerCounts } from '../storage/activation/stranger-counts.ts'
import { deleteExpiredUniqueValues } from '../storage/activation/unique-values.ts'
import { deleteExpiredTemporaryKeys } from '../storage/application/temporary-keys.ts'
import { deleteEndedSessions } from '../storage/credential/console-sessions.ts'
import { deleteOldFailureCounts } from '../storage/credential/failure-counts.ts'
import type { Database } from '../storage/database/database.ts'
import { deleteExpiredIdempotencyKeys } from '../storage/operation/idempotency-keys.ts'
import { deleteUselessNonces } from '../storage/operation/operations.ts'
import { expireOperations } from '../storage/operation/transitions.ts'
import { deleteEndedAnswers } from '../storage/request/door-envelopes.ts'
import { deleteExpiredVerdicts } from '../storage/request/door-verdicts.ts'
import { deleteExpiredChallenges } from '../storage/request/offline-challenges.ts'
import { deleteOldActivations, deleteOldMessages, deleteOldOperations } from '../storage/retention.ts'
import { deleteOpenedNames, shortenClosings } from '../storage/user/erasure.ts'
import { analyzeGrown, vacuumFullest } from '../storage/vacuum.ts'
import { deleteOldDeliveries } from '../storage/webhook/deliveries.ts'
import type { DomainParts } from './secrets/secrets.ts'
import { bringBack } from './webhook/schedule.ts'

/** The parts and settings of housekeeping. */
interface House extends DomainParts {
  /** The embedded database has no autovacuum. */
  readonly databaseKind: Database['kind']
  readonly settings: {
    readonly webhookRetryBaseSeconds: number
    readonly webhookRetentionDays: number
    readonly strangerRetentionDays: number
    readonly operationRetentionDays: number
    readonly activationRetentionDays: number
    readonly inboxRetentionDays: number
  }
}

/** Starts the timer; the returned function stops it and waits for a round that runs. */
export function startHousekeeping(parts: House & Clocked): () => Promise<void> {
  const isOutdatedDue = createTurn(OUTDATED_ROUNDS)
  let isMoreOutdated = false
  return startRounds(
    async (signal) => {
      await runHousekeeping(parts)
      if (!isOutdatedDue() && !isMoreOutdated) return
      // It may be work for hours, as after a setting of days was lowered. Each round does a part of it, so that what expires does not wait.
      const slice = AbortSignal.any([signal, AbortSignal.timeout(INTERVAL_MS)])
      await deleteOutdated(parts, slice)
      isMoreOutdated = slice.aborted
    },
    INTERVAL_MS,
    {
      onFailure: (err) => parts.events.housekeepingFailed({ err }),
      onDone: (ms) => parts.events.roundDone({ work: 'housekeeping', ms }),
      mayRun: parts.clock.isAgreed,
    },
  )
}

/** A function that is true at its first call, and from then on once in `every` calls. */
function createTurn(every: number): () => boolean {
  let calls = 0
  return () => calls++ % every === 0
}

/** Runs one round: it works in batches until nothing is due, so that no statement holds many locks. */
export async function runHousekeeping({ db, databaseKind, platform, events, settings }: House): Promise<void> {
  const at = new Date(platform.now())
  for (const removeDue of TASKS) await takeBatches((limit) => removeDue(db, at, limit))
  await takeBatches(async (limit) => {
    const expired = await expireOperations(db, at, limit)
    if (expired > 0) events.operationsExpired({ count: expired })
    return expired
  })
  await takeBatches((limit) => bringBack(db, platform.now(), settings.webhookRetryBaseSeconds, limit))
  const strangersBefore = new Date(at.getTime() - settings.strangerRetentionDays * DAY_MS)
  await takeBatches((limit) => deleteOldStrangerCounts(db, strangersBefore, limit))
  const before = new Date(at.getTime() - settings.webhookRetentionDays * DAY_MS)
  await takeBatches(async (limit) => {
    const { deleted, waiting } = await deleteOldDeliveries(db, before, limit)
    // A receiver that was away for the whole retention is not told any more.
    if (waiting > 0) events.webhookDeliveriesLost({ count: waiting })
    return deleted
  })
  if (databaseKind === 'embedded') await vacuumFullest(db)
  await analyzeGrown(db)
}

const TASKS = [
  removeExpiredActivations,
  endTemporaryBlocks,
  deleteUselessNonces,
  deleteExpiredIdempotencyKeys,
  deleteExpiredTemporaryKeys,
  deleteExpiredUniqueValues,
  deleteExpiredVerdicts,
  deleteExpiredChallenges,
  deleteEndedAnswers,
  deleteEndedSessions,
  deleteOldFailureCounts,
  shortenClosings,
  deleteOpenedNames,
] as const

/** Deletes what is older than its days: batches until nothing is due, or `signal` is aborted. */
export async function deleteOutdated(
  { db, platform, events, settings }: Omit<House, 'recordKeys' | 'databaseKind'>,
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

/** Takes batches until one is not full, or `signal` is aborted; how many rows they were. */
async function takeBatches(take: (limit: number) => Promise<number>, signal?: AbortSignal): Promise<number> {
  let taken = 0
  for (;;) {
    if (signal?.aborted === true) return taken
    const rows = await take(BATCH_ROWS)
    taken += rows
    if (rows < BATCH_ROWS) return taken
  }
}

const INTERVAL_MS = 5_000
// Ten minutes: what is due after days is looked for in many rows.
const OUTDATED_ROUNDS = 120
const DAY_MS = 86_400_000
const BATCH_ROWS = 500
