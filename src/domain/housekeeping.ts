// Does the background work of every process: stores that something has expired, and deletes expired rows (v3 §7.3, §8.7, §14; cloud §9).
import type { Clocked } from '../lib/clock.ts'
import { runEach, startRounds } from '../lib/rounds.ts'
import { endTemporaryBlocks, removeExpiredActivations } from '../storage/activation/expiry.ts'
import { deleteOldStrangerCounts } from '../storage/audit/audit.ts'
import { deleteExpiredUniqueValues } from '../storage/activation/unique-values.ts'
import { deleteExpiredTemporaryKeys } from '../storage/application/temporary-keys.ts'
import { deleteEndedSessions } from '../storage/credential/console-sessions.ts'
import { deleteOldFailureCounts } from '../storage/credential/failure-counts.ts'
import { type Database, isAnswered } from '../storage/database/database.ts'
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
  /** Housekeeping also vacuums an embedded database, which has no autovacuum. */
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
  let rounds = 0
  let isMoreOutdated = false
  const deletePart = async (signal: AbortSignal): Promise<void> => {
    const isDue = rounds % OUTDATED_ROUNDS === 0
    rounds += 1
    if (!isDue && !isMoreOutdated) return
    isMoreOutdated = await deleteOutdated(parts, signal, INTERVAL_MS)
  }
  return startRounds(
    (signal) => runAll(parts, [() => runHousekeeping(parts, signal), () => deletePart(signal)], signal),
    INTERVAL_MS,
    {
      onFailure: (err) => parts.events.housekeepingFailed({ err }),
      onDone: (ms) => parts.events.roundDone({ work: 'housekeeping', ms }),
      mayRun: parts.clock.isAgreed,
    },
  )
}

/** Runs one round. It works in batches until nothing is due or `signal` is aborted, so that no statement holds many locks. */
export async function runHousekeeping(
  { db, databaseKind, platform, events, settings }: House,
  signal: AbortSignal = NEVER,
): Promise<void> {
  const at = new Date(platform.now())
  const ago = (days: number): Date => new Date(at.getTime() - days * DAY_MS)
  const expire = async (limit: number): Promise<number> => {
    const expired = await expireOperations(db, at, limit)
    if (expired > 0) events.operationsExpired({ count: expired })
    return expired
  }
  const deleteDeliveries = async (limit: number): Promise<number> => {
    const { deleted, waiting } = await deleteOldDeliveries(db, ago(settings.webhookRetentionDays), limit)
    // These messages never reach their receiver, which was away for the whole retention.
    if (waiting > 0) events.webhookDeliveriesLost({ count: waiting })
    return deleted
  }
  const batched: readonly ((limit: number) => Promise<number>)[] = [
    ...TASKS.map((removeDue) => (limit: number) => removeDue(db, at, limit)),
    expire,
    (limit) => bringBack(db, platform.now(), settings.webhookRetryBaseSeconds, limit),
    (limit) => deleteOldStrangerCounts(db, ago(settings.strangerRetentionDays), limit),
    deleteDeliveries,
  ]
  const tasks = [
    ...batched.map((take) => () => takeBatches(take, signal)),
    ...(databaseKind === 'embedded' ? [() => vacuumFullest(db)] : []),
    () => analyzeGrown(db, (err) => events.housekeepingFailed({ err })),
  ]
  await runAll({ events }, tasks, signal)
}

const runAll = ({ events }: Pick<House, 'events'>, tasks: Parameters<typeof runEach>[0], signal: AbortSignal): Promise<void> =>
  runEach(tasks, { goesOn: isAnswered, onFailure: (err) => events.housekeepingFailed({ err }), signal })

const NEVER = new AbortController().signal

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

/**
 * Deletes rows that are older than their retention, in batches until nothing is due or `signal` is aborted. After a setting of days was lowered,
 * that may take hours. With `partMs` each kind of rows gets only so long, so that the other kinds and the other work do not wait. Returns whether
 * more rows may be due.
 */
export async function deleteOutdated(
  { db, platform, events, settings }: Omit<House, 'recordKeys' | 'databaseKind'>,
  signal: AbortSignal,
  partMs?: number,
): Promise<boolean> {
  const before = (days: number): Date => new Date(platform.now() - days * DAY_MS)
  const deleted = { operations: 0, activations: 0, messages: 0 }
  let isMore = false
  const deleteAll = (of: keyof typeof deleted, deleteBatch: typeof deleteOldOperations, days: number) => async () => {
    const part = partMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(partMs)])
    await takeBatches(async (limit) => {
      const rows = await deleteBatch(db, before(days), limit)
      deleted[of] += rows
      return rows
    }, part)
    isMore ||= part.aborted
  }
  const tasks = [
    deleteAll('operations', deleteOldOperations, settings.operationRetentionDays),
    deleteAll('activations', deleteOldActivations, settings.activationRetentionDays),
    deleteAll('messages', deleteOldMessages, settings.inboxRetentionDays),
  ]
  await runAll({ events }, tasks, signal).finally(() => {
    if (Object.values(deleted).some((rows) => rows > 0)) events.outdatedDeleted(deleted)
  })
  return isMore
}

/** Takes batches until one is not full, or `signal` is aborted. */
async function takeBatches(take: (limit: number) => Promise<number>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) if ((await take(BATCH_ROWS)) < BATCH_ROWS) return
}

const INTERVAL_MS = 5_000
// Ten minutes: the search for rows with a retention of days reads many rows.
const OUTDATED_ROUNDS = 120
const DAY_MS = 86_400_000
const BATCH_ROWS = 500
