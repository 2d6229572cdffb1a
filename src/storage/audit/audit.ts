// The table audit_pending, where audit rows wait for their seal, and the view audit_trail of all rows. Rows of a change are written in the
// statement of the change. Sealing takes them away within seconds (rows.ts). For activations that do not exist, the table
// stranger_count has counts in place of rows.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'

export interface AuditEvent {
  /** Null when the request named an application that does not exist. */
  readonly applicationId: string | null
  readonly userId: string | null
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  /** User name of the credential for which a code was checked or a change was made; absent for what a phone sent to pawl itself. */
  readonly verifiedBy?: string | undefined
  readonly occurredAt: Date
}

/** Writes one audit row on its own, for events that change nothing else. `rows`: as insertAuditOf; false when there is none. */
export async function insertAuditEvent(db: Db, event: AuditEvent, rows?: RawBuilder<unknown>): Promise<boolean> {
  const { numAffectedRows } = await insertAuditOf(event, rows).execute(db)
  return numAffectedRows === 1n
}

/** The statement that writes it. `rows`: what follows `from`; without it, the audit row is written in any case. */
export const insertAuditOf = (event: AuditEvent, rows: RawBuilder<unknown> = sql`(select) as once`): RawBuilder<unknown> =>
  insertAuditFrom(rows, { ...toColumns(event), activationId: sql`${event.activationId}::text` })

/**
 * One row while the activation is there, which stays to the end of the transaction: whoever erases its user sees what was written, or is seen
 * (docs/decisions/0019-erasure.md). `applicationId`: of which it must be.
 */
export const heldActivation = (activationId: string, applicationId?: string): RawBuilder<unknown> =>
  sql`(select from activation where activation_id = ${activationId}${
    applicationId === undefined ? sql`` : sql` and application_id = ${applicationId}`
  } for key share) as held`

/** An audit row whose activation the statement finds. */
export type AuditEventOfSource = Omit<AuditEvent, 'activationId'>

/**
 * The end of a statement that writes the audit row of a change made by its common table expression `source`, once for each changed
 * row, and returns the activation's id.
 */
export const insertAuditEventFrom = (source: string, event: AuditEventOfSource): RawBuilder<unknown> => sql`
    ${insertAuditFrom(sql.ref(source), toColumns(event))}
    returning activation_id`

/** Where the columns of audit rows come from: values, or columns of what they are made from. */
interface AuditColumns {
  /** Without them, the source has the columns `application_id`, `user_id` and `activation_id`. */
  readonly applicationId?: RawBuilder<unknown>
  readonly userId?: RawBuilder<unknown>
  readonly activationId?: RawBuilder<unknown>
  readonly eventType: RawBuilder<unknown>
  readonly eventData: RawBuilder<unknown>
  readonly occurredAt: RawBuilder<unknown>
  /** Without it, nobody asked. */
  readonly verifiedBy?: RawBuilder<unknown> | undefined
}

/** The columns of given rows that become audit rows, but for the activation, and the time, which is `at`. */
export const AUDIT_GIVEN = {
  applicationId: 'text',
  userId: 'text',
  eventType: 'text',
  eventData: 'text',
  verifiedBy: 'text',
} as const

/** An event as these columns. */
export const toAuditGiven = ({ applicationId, userId, eventType, eventData, verifiedBy }: AuditEvent) => ({
  applicationId,
  userId,
  eventType,
  eventData,
  verifiedBy,
})

/** What an audit row is made of, of rows that have these columns and `at`. */
export const AUDIT_OF_GIVEN = {
  applicationId: sql`"applicationId"`,
  userId: sql`"userId"`,
  eventType: sql`"eventType"`,
  eventData: sql`"eventData"`,
  occurredAt: sql`at`,
  verifiedBy: sql`"verifiedBy"`,
}

/** The one statement that writes audit rows. `rows`: what follows `from`. */
export const insertAuditFrom = (
  rows: RawBuilder<unknown>,
  {
    applicationId = sql`application_id`,
    userId = sql`user_id`,
    activationId = sql`activation_id`,
    eventType,
    eventData,
    occurredAt,
    verifiedBy,
  }: AuditColumns,
): RawBuilder<unknown> => sql`insert into audit_pending (application_id, user_id, activation_id, event_type, event_data, occurred_at${
  verifiedBy ? sql`, verified_by` : sql``
})
    select ${applicationId}, ${userId}, ${activationId}, ${eventType}, ${eventData}, ${occurredAt}${verifiedBy ? sql`, ${verifiedBy}` : sql``}
    from ${rows}`

const toColumns = ({
  applicationId,
  userId,
  eventType,
  eventData,
  occurredAt,
  verifiedBy,
}: AuditEventOfSource): AuditColumns => ({
  applicationId: sql`${applicationId}::text`,
  userId: sql`${userId}::text`,
  eventType: sql`${eventType}::text`,
  eventData: sql`${eventData}::text`,
  occurredAt: sql`${occurredAt}::timestamptz`,
  verifiedBy: verifiedBy === undefined ? undefined : sql`${verifiedBy}::text`,
})

/** A row as the bank sees it. */
export interface AuditItem {
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  /** User name of the credential for which a code was checked; null for all other rows. */
  readonly verifiedBy: string | null
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
  /** Only rows of this activation. */
  readonly activationId?: string | undefined
  /** Only rows of what a bank had verified. */
  readonly isVerified?: boolean | undefined
}

/**
 * The newest `limit` rows of a user, and those that share the time of the last of them, newest first: the next page begins before that
 * time and misses nothing.
 */
export async function listAuditItems(
  db: Db,
  { applicationId, userId, from, to, before, limit, activationId, isVerified }: AuditQuery,
): Promise<AuditItem[]> {
  const isMeant = sql`e.application_id = ${applicationId} and e.user_id = ${userId} and e.occurred_at >= ${from} and e.occurred_at <= ${to}
          and e.occurred_at < coalesce(${before}::timestamptz, 'infinity')${
            activationId === undefined ? sql`` : sql` and e.activation_id = ${activationId}`
          }${isVerified === true ? sql` and e.verified_by is not null` : sql``}`
  // A row is sealed after it occurred, but for clocks that differ: partitions that ended before are not looked at. What waits for its seal is
  // found by the user's activations.
  const { rows } = await sql<AuditItem>`
    select activation_id as "activationId", event_type as "eventType", event_data as "eventData",
      verified_by as "verifiedBy", occurred_at as "occurredAt"
    from (
      select * from (
        (select e.sequence, e.activation_id, e.event_type, e.event_data, e.verified_by, e.occurred_at
          from audit_log e where ${isMeant} and e.sealed_at >= ${from}::timestamptz - interval '1 day'
          order by e.occurred_at desc fetch first (${limit}) rows with ties)
        union all
        (select e.sequence, e.activation_id, e.event_type, e.event_data, e.verified_by, e.occurred_at
          from activation a join audit_pending e on e.activation_id = a.activation_id
          where a.application_id = ${applicationId} and a.user_id = ${userId} and ${isMeant}
          order by e.occurred_at desc fetch first (${limit}) rows with ties)
      ) as parts
      order by occurred_at desc fetch first (${limit}) rows with ties
    ) as page
    order by occurred_at desc, sequence desc`.execute(db)
  return rows
}

/**
 * Counts a code for an activation that does not exist, in one row a minute and source network, so that strangers cannot fill the audit log
 * (cloud §7).
 */
export async function countStranger(db: Db, network: string, at: Date): Promise<void> {
  const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
  await sql`
    insert into stranger_count (minute, network, codes) values (${minute}, ${network}, 1)
    on conflict (minute, network) do update set codes = stranger_count.codes + 1`.execute(db)
}

/** Deletes up to `limit` counts of minutes before `before`, oldest first. */
export async function deleteOldStrangerCounts(db: Db, before: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from stranger_count where (minute, network) in (
      select minute, network from stranger_count where minute < ${before} order by minute limit ${limit} for update skip locked
    ) returning minute`.execute(db)
  return rows.length
}

const MINUTE_MS = 60_000
