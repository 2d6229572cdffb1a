// The table webhook_delivery, the outbox: rows come from triggers (migrations/0004), are taken with a lease, and end delivered or dead
// (cloud §9).
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { amongUndelivered } from '../database/index-conditions.ts'
import type { DeliveryStatus } from '../database/schema.ts'

/**
 * Enabled webhooks that have something to try at `at`; not all of it may be next in line. Of providers of pushes those of `providers`: another
 * process may have credentials for more.
 */
export async function listDueWebhooks(db: Db, at: Date, providers: readonly string[]): Promise<readonly string[]> {
  const { rows } = await sql<{ webhookId: string }>`
    select webhook_id as "webhookId" from webhook w where is_enabled and (kind <> 'PUSH' or webhook_id = any (${providers}::text[])) and (paused_until is null or paused_until <= ${at}) and (
      exists (
        select from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')} and d.next_attempt_at <= ${at}
          and ${isFree('d', at)}
      ) or (
        probe_at <= ${at} and exists (select from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')})
      )
    ) order by webhook_id`.execute(db)
  return rows.map(({ webhookId }) => webhookId)
}

/** A delivery that this process holds until its lease ends. */
export interface ClaimedDelivery {
  readonly sequence: string
  readonly deliveryId: string
  readonly webhookId: string
  readonly objectId: string
  /** Of a push: the device that is told. */
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

/** Takes up to `limit` due deliveries of an enabled webhook, of each object the first that waits; none that another process holds. */
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
        and ${amongUndelivered('d')} and d.next_attempt_at <= ${lease.at} and ${isFree('d', lease.at)} and ${isNextInLine('d')}
      order by d.next_attempt_at, d.sequence limit ${limit} for update of d skip locked
    )
    ${takeLease('due', lease)}`.execute(db)
  return rows
}

/**
 * Takes the oldest waiting delivery of a webhook that fails, whatever its schedule, when the time for that has come. It then comes again
 * at `nextProbeAt`.
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
      where ${amongUndelivered('d')} and ${isFree('d', lease.at)} and ${isNextInLine('d')}
      order by d.sequence limit 1 for update of d skip locked
    )
    ${takeLease('oldest', lease)}`.execute(db)
  return rows
}

/** Ends a delivery that was received; nothing happens when the lease has passed to another process. */
export async function storeDelivered(db: Db, sequence: string, leaseId: string, at: Date): Promise<void> {
  await sql`
    update webhook_delivery set status = 'DELIVERED', attempts = attempts + 1, lease_id = null, leased_until = null, last_error = null,
      finished_at = ${at}
    where sequence = ${sequence} and lease_id = ${leaseId} and status = 'WAITING'`.execute(db)
}

/** Takes a delivery out that is not wanted any more; nothing happens when the lease has passed to another process. */
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

/** Schedules the next attempts, or ends deliveries as dead; those whose lease has passed to another process stay as they are. */
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

/** Makes up to `limit` deliveries due that wait for a moment after `latest`, and returns how many. */
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
  /** It waits for the end of an earlier one of its object. */
  readonly isBehind: boolean
}

interface DeliveryFilter {
  readonly status: DeliveryStatus | null
  /** Only those about this operation or activation. */
  readonly objectId: string | null
  /** Only those older than this sequence. */
  readonly before: string | null
  readonly limit: number
}

/** Deliveries of a webhook, newest first. */
export async function listDeliveries(db: Db, webhookId: string, filter: DeliveryFilter): Promise<readonly DeliveryRow[]> {
  const { status, objectId, before, limit } = filter
  const conditions = [
    sql`d.webhook_id = ${webhookId}`,
    // As part of the text, so that the plan may use the small index of that status.
    ...(status === null ? [] : [sql`d.status = ${sql.lit(status)}`]),
    ...(objectId === null ? [] : [sql`d.object_id = ${objectId}`]),
    sql`(${before}::bigint is null or d.sequence < ${before})`,
  ]
  const { rows } = await sql<DeliveryRow>`
    select ${DELIVERY_COLUMNS} from webhook_delivery d where ${sql.join(conditions, sql` and `)}
    order by d.sequence desc limit ${limit}`.execute(db)
  return rows
}

/** One delivery of a webhook. */
export async function findDelivery(db: Db, webhookId: string, deliveryId: string): Promise<DeliveryRow | undefined> {
  const { rows } = await sql<DeliveryRow>`
    select ${DELIVERY_COLUMNS} from webhook_delivery d where d.delivery_id = ${deliveryId} and d.webhook_id = ${webhookId}`.execute(
    db,
  )
  return rows[0]
}

/** Makes a delivery wait again, from its first attempt on and with the same id, or one that waits due at once. False when there is none. */
export async function replayDelivery(db: Db, webhookId: string, deliveryId: string): Promise<boolean> {
  const { rows } = await sql`
    update webhook_delivery set status = 'WAITING', attempts = case when status = 'WAITING' then attempts else 0 end,
      scheduled_at = case when status = 'WAITING' then scheduled_at else 'epoch' end, next_attempt_at = 'epoch', finished_at = null
    where webhook_id = ${webhookId} and delivery_id = ${deliveryId} returning sequence`.execute(db)
  return rows.length === 1
}

/** Makes up to `limit` dead deliveries wait again, oldest first, and returns how many. */
export async function replayDeadDeliveries(db: Db, webhookId: string, limit: number): Promise<number> {
  const { rows } = await sql`
    update webhook_delivery set status = 'WAITING', attempts = 0, scheduled_at = 'epoch', next_attempt_at = 'epoch', finished_at = null
    where sequence in (
      select sequence from webhook_delivery where webhook_id = ${webhookId} and status = 'DEAD' order by sequence limit ${limit}
      for update skip locked
    ) returning sequence`.execute(db)
  return rows.length
}

/** Deletes up to `limit` deliveries of a webhook that was deleted. */
export async function deleteDeliveriesOf(db: Db, webhookId: string, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from webhook_delivery where sequence in (
      select sequence from webhook_delivery where webhook_id = ${webhookId} order by sequence limit ${limit} for update skip locked
    ) returning sequence`.execute(db)
  return rows.length
}

/** Deletes up to `limit` deliveries made before `before`, whatever has become of them; `waiting` of them were still to be tried. */
export async function deleteOldDeliveries(db: Db, before: Date, limit: number): Promise<{ deleted: number; waiting: number }> {
  const { rows } = await sql<{ status: DeliveryStatus }>`
    delete from webhook_delivery where sequence in (
      select sequence from webhook_delivery where created_at <= ${before} order by created_at limit ${limit} for update skip locked
    ) returning status`.execute(db)
  return { deleted: rows.length, waiting: rows.filter(({ status }) => status === 'WAITING').length }
}

/** No process holds it. A lease that ends later than any that is taken now is of a clock that was set back. */
const isFree = (table: string, at: Date): RawBuilder<boolean> => {
  const leasedUntil = sql.ref(`${table}.leased_until`)
  return sql<boolean>`(${leasedUntil} is null or ${leasedUntil} <= ${at} or ${leasedUntil} > ${at}::timestamptz + interval '2 minutes')`
}

/** Deliveries of one object go in their order, for each device that is told of it: each waits for the end of all before it. */
const isNextInLine = (table: string): RawBuilder<boolean> => sql<boolean>`not exists (
        select from webhook_delivery earlier where earlier.webhook_id = ${sql.ref(`${table}.webhook_id`)}
          and earlier.object_id = ${sql.ref(`${table}.object_id`)} and ${amongUndelivered('earlier')}
          and earlier.activation_id is not distinct from ${sql.ref(`${table}.activation_id`)}
          and earlier.sequence < ${sql.ref(`${table}.sequence`)}
      )`

const takeLease = (source: string, { leaseId, until }: Lease): RawBuilder<unknown> => sql`
    update webhook_delivery d set lease_id = ${leaseId}, leased_until = ${until}
    from ${sql.ref(source)} where d.sequence = ${sql.ref(`${source}.sequence`)}
    returning d.sequence, d.delivery_id as "deliveryId", d.webhook_id as "webhookId", d.object_id as "objectId",
      d.activation_id as "activationId", d.payload, d.attempts, d.scheduled_at as "scheduledAt"`

const DELIVERY_COLUMNS = sql`d.sequence, d.delivery_id as "deliveryId", d.object_id as "objectId", d.payload, d.status, d.attempts,
      d.next_attempt_at as "nextAttemptAt", d.last_error as "lastError", d.created_at as "createdAt", d.finished_at as "finishedAt",
      d.status = 'WAITING' and not (${isNextInLine('d')}) as "isBehind"`
