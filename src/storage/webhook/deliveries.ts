// Reads and changes the outbox, the table webhook_delivery. Triggers insert its rows (migrations/0004), processes take them with a lease, and they
// end delivered or dead (cloud §9).
import { type RawBuilder, sql } from 'kysely'
import { deleteBatch } from '../database/bulk-statement.ts'
import type { Db } from '../database/database.ts'
import { amongUndelivered } from '../database/index-conditions.ts'
import type { DeliveryStatus } from '../database/schema.ts'

/**
 * Lists enabled webhooks with a due delivery or probe; a due delivery may still wait for an earlier one. Only the push providers in `providers` are
 * listed, because another process may have credentials for other ones.
 */
export async function listDueWebhooks(db: Db, at: Date, providers: readonly string[]): Promise<readonly string[]> {
  const { rows } = await sql<{ webhookId: string }>`
    select webhook_id as "webhookId" from webhook w where is_enabled and (kind <> 'PUSH' or webhook_id = any (${providers}::text[])) and (paused_until is null or paused_until <= ${at}) and (
      exists (
        select from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')} and d.next_attempt_at <= ${at}
          and ${isFree(at)}
      ) or (
        probe_at <= ${at} and exists (select from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')})
      )
    ) order by webhook_id`.execute(db)
  return rows.map(({ webhookId }) => webhookId)
}

/** A delivery that this process holds until the lease ends. */
export interface ClaimedDelivery {
  readonly sequence: string
  readonly deliveryId: string
  readonly webhookId: string
  readonly objectId: string
  /** For a push: the activation of the phone that gets it. */
  readonly activationId: string | null
  /** JSON. */
  readonly payload: string
  readonly attempts: number
  readonly scheduledAt: Date
}

export interface Lease {
  readonly leaseId: string
  readonly at: Date
  readonly until: Date
}

/** Claims up to `limit` due deliveries of an enabled webhook that no other process holds; of each object, only the first that waits. */
export async function claimDeliveries(
  db: Db,
  webhookId: string,
  lease: Lease,
  limit: number,
): Promise<readonly ClaimedDelivery[]> {
  const { rows } = await sql<ClaimedDelivery>`
    with due as (
      select d.sequence from webhook_delivery d join webhook w on w.webhook_id = d.webhook_id
      where d.webhook_id = ${webhookId} and w.is_enabled and (w.paused_until is null or w.paused_until <= ${lease.at})
        and ${amongUndelivered('d')} and d.next_attempt_at <= ${lease.at} and ${isFree(lease.at)} and ${IS_NEXT_IN_LINE}
      order by d.next_attempt_at, d.sequence limit ${limit} for update of d skip locked
    )
    ${takeLease('due', lease)}`.execute(db)
  return rows
}

/**
 * Claims the oldest waiting delivery of a failing webhook, whatever its schedule, when the probe of the webhook is due. The next probe is due at
 * `nextProbeAt`.
 */
export async function claimProbe(
  db: Db,
  webhookId: string,
  lease: Lease,
  nextProbeAt: Date,
): Promise<readonly ClaimedDelivery[]> {
  const { rows } = await sql<ClaimedDelivery>`
    with probed as (
      update webhook set probe_at = ${nextProbeAt}
      where webhook_id = ${webhookId} and is_enabled and probe_at <= ${lease.at}
        and (paused_until is null or paused_until <= ${lease.at})
      returning webhook_id
    ), oldest as (
      select d.sequence from webhook_delivery d join probed on probed.webhook_id = d.webhook_id
      where ${amongUndelivered('d')} and ${isFree(lease.at)} and ${IS_NEXT_IN_LINE}
      order by d.sequence limit 1 for update of d skip locked
    )
    ${takeLease('oldest', lease)}`.execute(db)
  return rows
}

/** Marks a delivery as delivered; does nothing when another process has the lease by now. */
export async function storeDelivered(db: Db, sequence: string, leaseId: string, at: Date): Promise<void> {
  await sql`
    update webhook_delivery set status = 'DELIVERED', attempts = attempts + 1, lease_id = null, leased_until = null, last_error = null,
      finished_at = ${at}
    where sequence = ${sequence} and lease_id = ${leaseId} and status = 'WAITING'`.execute(db)
}

/** Deletes a delivery that is not wanted any more; does nothing when another process has the lease by now. */
export async function dropDelivery(db: Db, sequence: string, leaseId: string): Promise<void> {
  await sql`
    delete from webhook_delivery where sequence = ${sequence} and lease_id = ${leaseId} and status = 'WAITING'`.execute(db)
}

interface DeliveryFailure {
  readonly sequence: string
  readonly attempts: number
  /** Null when it was the last attempt. */
  readonly nextAttemptAt: Date | null
  readonly reason: string
}

/** Schedules the next attempts, or marks deliveries as dead. A delivery whose lease another process has by now is left unchanged. */
export async function storeFailures(db: Db, leaseId: string, failures: readonly DeliveryFailure[], at: Date): Promise<void> {
  const sequences = failures.map(({ sequence }) => sequence)
  const attempts = failures.map((failure) => failure.attempts)
  const nextAttempts = failures.map(({ nextAttemptAt }) => nextAttemptAt?.toISOString() ?? null)
  const reasons = failures.map(({ reason }) => reason)
  await sql`
    update webhook_delivery d set status = case when f.next_attempt_at is null then 'DEAD' else 'WAITING' end, attempts = f.attempts,
      scheduled_at = coalesce(f.next_attempt_at, d.scheduled_at), next_attempt_at = coalesce(f.next_attempt_at, d.next_attempt_at),
      lease_id = null, leased_until = null, last_error = f.reason,
      finished_at = case when f.next_attempt_at is null then ${at}::timestamptz end
    from unnest(${sequences}::bigint[], ${attempts}::int[], ${nextAttempts}::timestamptz[], ${reasons}::text[])
      as f (sequence, attempts, next_attempt_at, reason)
    where d.sequence = f.sequence and d.lease_id = ${leaseId} and d.status = 'WAITING'`.execute(db)
}

/** Makes up to `limit` deliveries due whose next attempt is after `latest`; returns their number. */
export async function bringBackDeliveries(db: Db, at: Date, latest: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    update webhook_delivery set next_attempt_at = ${at}, scheduled_at = ${at} where sequence in (
      select late.sequence from webhook w cross join lateral (
        select d.sequence from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')} and d.next_attempt_at > ${latest}
        limit ${limit} for update of d skip locked
      ) late limit ${limit}
    ) returning sequence`.execute(db)
  return rows.length
}

export interface DeliveryRow {
  readonly sequence: string
  readonly deliveryId: string
  readonly objectId: string
  /** JSON. */
  readonly payload: string
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly nextAttemptAt: Date
  readonly lastError: string | null
  readonly createdAt: Date
  readonly finishedAt: Date | null
  /** True when the delivery waits for an earlier one of the same object. */
  readonly isBehind: boolean
}

interface DeliveryFilter {
  readonly status: DeliveryStatus | null
  /** Only deliveries about this operation or activation. */
  readonly objectId: string | null
  /** Only deliveries older than this sequence. */
  readonly before: string | null
  readonly limit: number
}

/** Lists deliveries of a webhook, newest first. */
export async function listDeliveries(db: Db, webhookId: string, filter: DeliveryFilter): Promise<readonly DeliveryRow[]> {
  const { status, objectId, before, limit } = filter
  const conditions = [
    sql`d.webhook_id = ${webhookId}`,
    // The status is a literal, so that the plan may use the small index of that status.
    ...(status === null ? [] : [sql`d.status = ${sql.lit(status)}`]),
    ...(objectId === null ? [] : [sql`d.object_id = ${objectId}`]),
    sql`(${before}::bigint is null or d.sequence < ${before})`,
  ]
  const { rows } = await sql<DeliveryRow>`
    select ${DELIVERY_COLUMNS} from webhook_delivery d where ${sql.join(conditions, sql` and `)}
    order by d.sequence desc limit ${limit}`.execute(db)
  return rows
}

/** Finds a delivery of a webhook. */
export async function findDelivery(db: Db, webhookId: string, deliveryId: string): Promise<DeliveryRow | undefined> {
  const { rows } = await sql<DeliveryRow>`
    select ${DELIVERY_COLUMNS} from webhook_delivery d where d.delivery_id = ${deliveryId} and d.webhook_id = ${webhookId}`.execute(
    db,
  )
  return rows[0]
}

/** Makes a delivery due: a waiting one at once, an ended one from its first attempt on, with the same id. False when there is none. */
export async function replayDelivery(db: Db, webhookId: string, deliveryId: string): Promise<boolean> {
  const { rows } = await sql`
    update webhook_delivery set status = 'WAITING', attempts = case when status = 'WAITING' then attempts else 0 end,
      scheduled_at = case when status = 'WAITING' then scheduled_at else 'epoch' end, next_attempt_at = 'epoch', finished_at = null
    where webhook_id = ${webhookId} and delivery_id = ${deliveryId} returning sequence`.execute(db)
  return rows.length === 1
}

/** Makes up to `limit` dead deliveries wait again, oldest first; returns their number. */
export async function replayDeadDeliveries(db: Db, webhookId: string, limit: number): Promise<number> {
  const { rows } = await sql`
    update webhook_delivery set status = 'WAITING', attempts = 0, scheduled_at = 'epoch', next_attempt_at = 'epoch', finished_at = null
    where sequence in (
      select sequence from webhook_delivery where webhook_id = ${webhookId} and status = 'DEAD' order by sequence limit ${limit}
      for update skip locked
    ) returning sequence`.execute(db)
  return rows.length
}

/** Deletes up to `limit` deliveries of a deleted webhook. */
export const deleteDeliveriesOf = (db: Db, webhookId: string, limit: number): Promise<number> =>
  deleteBatch(db, { table: 'webhook_delivery', key: ['sequence'] }, sql`webhook_id = ${webhookId} order by sequence`, limit)

/** Deletes up to `limit` deliveries created at `before` or earlier, in any status. `waiting` is the number of those that were still waiting. */
export async function deleteOldDeliveries(db: Db, before: Date, limit: number): Promise<{ deleted: number; waiting: number }> {
  const { rows } = await sql<{ status: DeliveryStatus }>`
    delete from webhook_delivery where sequence in (
      select sequence from webhook_delivery where created_at <= ${before} order by created_at limit ${limit} for update skip locked
    ) returning status`.execute(db)
  return { deleted: rows.length, waiting: rows.filter(({ status }) => status === 'WAITING').length }
}

/**
 * True when no process holds the delivery. A lease that ends later than any new one was made by a clock that was set back since, and is ignored.
 */
const isFree = (at: Date): RawBuilder<boolean> =>
  sql`(d.leased_until is null or d.leased_until <= ${at} or d.leased_until > ${at}::timestamptz + interval '2 minutes')`

/** True when no earlier delivery waits: deliveries about one object are sent in order, separately for each phone that gets them. */
const IS_NEXT_IN_LINE = sql<boolean>`not exists (
        select from webhook_delivery earlier where earlier.webhook_id = d.webhook_id
          and earlier.object_id = d.object_id and ${amongUndelivered('earlier')}
          and earlier.activation_id is not distinct from d.activation_id and earlier.sequence < d.sequence
      )`

const takeLease = (source: string, { leaseId, until }: Lease): RawBuilder<unknown> => sql`
    update webhook_delivery d set lease_id = ${leaseId}, leased_until = ${until}
    from ${sql.ref(source)} where d.sequence = ${sql.ref(`${source}.sequence`)}
    returning d.sequence, d.delivery_id as "deliveryId", d.webhook_id as "webhookId", d.object_id as "objectId",
      d.activation_id as "activationId", d.payload, d.attempts, d.scheduled_at as "scheduledAt"`

const DELIVERY_COLUMNS = sql`d.sequence, d.delivery_id as "deliveryId", d.object_id as "objectId", d.payload, d.status, d.attempts,
      d.next_attempt_at as "nextAttemptAt", d.last_error as "lastError", d.created_at as "createdAt", d.finished_at as "finishedAt",
      d.status = 'WAITING' and not (${IS_NEXT_IN_LINE}) as "isBehind"`
