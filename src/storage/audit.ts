// The table audit_event. Append only; rows of a change are written in the statement of the change.
//
// Sealing (audit-chain.ts) relies on one thing here: a transaction has its id before it takes a sequence number, because something else
// was written first. Then all transactions that hold a lower number than one that can be seen are known by their ids.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

export interface AuditEvent {
  /** Null when the request named an application that does not exist. */
  readonly applicationId: string | null
  readonly userId: string | null
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  readonly occurredAt: Date
}

/** Writes one audit row on its own, for events that change nothing else. */
export async function insertAuditEvent(db: Db, event: AuditEvent): Promise<void> {
  await sql`
    with started as materialized (select pg_current_xact_id())
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select ${event.applicationId}::text, ${event.userId}::text, ${event.activationId}::text, ${event.eventType}::text,
      ${event.eventData}::text, ${event.occurredAt}::timestamptz
    from started`.execute(db)
}

/** An audit row whose activation the statement finds. */
export type AuditEventOfSource = Omit<AuditEvent, 'activationId'>

/**
 * The end of a statement that writes the audit row of a change made by its common table expression `source`, once for each changed
 * row, and returns the activation's id.
 */
export const insertAuditEventFrom = (source: string, event: AuditEventOfSource): RawBuilder<unknown> => sql`
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select ${event.applicationId}::text, ${event.userId}::text, activation_id, ${event.eventType}::text, ${event.eventData}::text,
      ${event.occurredAt}::timestamptz
    from ${sql.ref(source)} returning activation_id`

/** The same for several rows about one change, in their order; they have application, user and time of the first. */
export const insertAuditEventsFrom = (
  source: string,
  events: readonly [AuditEventOfSource, ...AuditEventOfSource[]],
): RawBuilder<unknown> => {
  const [{ applicationId, userId, occurredAt }] = events
  const types = events.map(({ eventType }) => eventType)
  const data = events.map(({ eventData }) => eventData)
  return sql`
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select ${applicationId}::text, ${userId}::text, activation_id, e.event_type, e.event_data, ${occurredAt}::timestamptz
    from ${sql.ref(source)}, unnest(${types}::text[], ${data}::text[]) with ordinality as e (event_type, event_data, position)
    order by e.position returning activation_id`
}

/** A row as the bank sees it. */
export interface AuditItem {
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  readonly occurredAt: Date
}

export interface AuditQuery {
  readonly applicationId: string
  readonly userId: string
  /** Inclusive. */
  readonly from: Date
  /** Inclusive. */
  readonly to: Date
  /** Exclusive. */
  readonly before: Date | null
  readonly limit: number
}

/**
 * The newest `limit` rows of a user, and those that share the time of the last of them, newest first: the next page begins before that
 * time and misses nothing.
 */
export async function listAuditItems(
  db: Db,
  { applicationId, userId, from, to, before, limit }: AuditQuery,
): Promise<AuditItem[]> {
  const { rows } = await sql<AuditItem>`
    select activation_id as "activationId", event_type as "eventType", event_data as "eventData", occurred_at as "occurredAt"
    from (
      select sequence, activation_id, event_type, event_data, occurred_at from audit_event
      where application_id = ${applicationId} and user_id = ${userId} and occurred_at >= ${from} and occurred_at <= ${to}
        and occurred_at < coalesce(${before}::timestamptz, 'infinity')
      order by occurred_at desc fetch first (${limit}) rows with ties
    ) as page
    order by occurred_at desc, sequence desc`.execute(db)
  return rows
}
