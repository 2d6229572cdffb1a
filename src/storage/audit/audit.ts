// Writes audit rows to the table audit_pending, where they wait for their seal, and reads all rows through the view audit_trail. The rows of a
// change are written in the statement of the change. Sealing moves them within seconds (rows.ts). Codes for activations that do not exist are only
// counted, in the table stranger_count.
import { type RawBuilder, sql } from 'kysely'
import { deleteBatch } from '../database/bulk-statement.ts'
import { type Db, writesRow } from '../database/database.ts'

export interface AuditEvent {
  /** Null when the request named an application that does not exist. */
  readonly applicationId: string | null
  readonly userId: string | null
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  /** User name of the credential that asked for a verification or a change; absent for requests that a phone sent to pawl itself. */
  readonly verifiedBy?: string | undefined
  readonly occurredAt: Date
}

/** Writes one audit row for an event that changes nothing else. `rows` is that of insertAuditFrom; false when it has no row. */
export const insertAuditEvent = (db: Db, event: AuditEvent, rows: RawBuilder<unknown> = ONE_ROW): Promise<boolean> =>
  writesRow(db, insertAuditFrom(rows, event))

/** A table of one row, for an audit row that is always written. */
export const ONE_ROW = sql`(select) as once`

/**
 * Composes a table of one row while the activation exists, in the application if given. The activation is locked until the end of the transaction,
 * so that an erasure of its user either sees the written rows or has deleted the activation before (docs/decisions/0019-erasure.md).
 */
export const heldActivation = (activationId: string, applicationId?: string): RawBuilder<unknown> =>
  sql`(select from activation where activation_id = ${activationId}${
    applicationId === undefined ? sql`` : sql` and application_id = ${applicationId}`
  } for key share) as held`

/** A value, or an expression over the rows that changed. */
type Given<Value> = Value | RawBuilder<unknown>

/** The columns of audit rows. */
interface AuditColumns {
  /** Without these three, the source must have the columns `application_id`, `user_id` and `activation_id`. */
  readonly applicationId?: Given<string | null>
  readonly userId?: Given<string | null>
  readonly activationId?: Given<string>
  readonly eventType: Given<string>
  readonly eventData: Given<string>
  readonly occurredAt: Given<Date>
  /** Left out when no credential asked for the verification or the change. */
  readonly verifiedBy?: Given<string | null> | undefined
}

/** The columns of given rows that become audit rows. The activation is missing, and the time is in `at`. */
export const AUDIT_GIVEN = {
  applicationId: 'text',
  userId: 'text',
  eventType: 'text',
  eventData: 'text',
  verifiedBy: 'text',
} as const

/** Converts an event to these columns. */
export const toAuditGiven = ({ applicationId, userId, eventType, eventData, verifiedBy }: AuditEvent) => ({
  applicationId,
  userId,
  eventType,
  eventData,
  verifiedBy,
})

/** The expressions for audit rows made from rows that have these columns and `at`. */
export const AUDIT_OF_GIVEN = {
  applicationId: sql`"applicationId"`,
  userId: sql`"userId"`,
  eventType: sql`"eventType"`,
  eventData: sql`"eventData"`,
  occurredAt: sql`at`,
  verifiedBy: sql`"verifiedBy"`,
}

/** Composes the insert of audit rows, one for each of `rows`, the text after `from`. */
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
  verifiedBy === undefined ? sql`` : sql`, verified_by`
})
    select ${applicationId}::text, ${userId}::text, ${activationId}::text, ${eventType}::text, ${eventData}::text,
      ${occurredAt}::timestamptz${verifiedBy === undefined ? sql`` : sql`, ${verifiedBy}::text`}
    from ${rows}`

/** An audit row as the bank's API shows it. */
export interface AuditItem {
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  /** User name of the credential that asked for the verification or the change; null for all other rows. */
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
  /** Only rows of verifications that a credential asked for. */
  readonly isVerified?: boolean | undefined
}

/**
 * Lists the newest `limit` rows of a user, newest first, and all rows with the same time as the last of them. The next page begins before that time
 * and misses no row.
 */
export async function listAuditItems(
  db: Db,
  { applicationId, userId, from, to, before, limit, activationId, isVerified }: AuditQuery,
): Promise<AuditItem[]> {
  const isMeant = sql`e.application_id = ${applicationId} and e.user_id = ${userId} and e.occurred_at >= ${from} and e.occurred_at <= ${to}
          and e.occurred_at < coalesce(${before}::timestamptz, 'infinity')${
            activationId === undefined ? sql`` : sql` and e.activation_id = ${activationId}`
          }${isVerified === true ? sql` and ${IS_VERIFICATION}` : sql``}`
  // A row is sealed after its event; one day allows for clocks that differ. So older partitions need not be read. Rows that wait for their seal are
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
 * Lists the rows of an operation that are of no user, oldest first: those of its creation and cancellation while nobody had claimed it (cloud §7).
 * `from` and `to` are inclusive.
 */
export async function listOwnerlessItems(
  db: Db,
  { applicationId, operationId, from, to }: Pick<AuditQuery, 'applicationId' | 'from' | 'to'> & { readonly operationId: string },
): Promise<AuditItem[]> {
  const { rows } = await sql<AuditItem>`
    select activation_id as "activationId", event_type as "eventType", event_data as "eventData",
      verified_by as "verifiedBy", occurred_at as "occurredAt"
    from audit_trail
    where activation_id = '' and application_id = ${applicationId} and user_id is null and occurred_at >= ${from} and occurred_at <= ${to}
      and strpos(event_data, ${operationId}) > 0 and sealed_at >= ${from}::timestamptz - interval '1 day'
    order by occurred_at`.execute(db)
  return rows
}

/** Rows of what a credential changed name it, too. */
const IS_VERIFICATION = sql`e.verified_by is not null and e.event_type !~ '^(registration|token|operation|activation_otp)_'`

/**
 * Counts a code for an activation that does not exist, in one row per minute and source network, so that strangers cannot fill the audit log (cloud
 * §7).
 */
export async function countStranger(db: Db, network: string, at: Date): Promise<void> {
  const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
  await sql`
    insert into stranger_count (minute, network, codes) values (${minute}, ${network}, 1)
    on conflict (minute, network) do update set codes = stranger_count.codes + 1`.execute(db)
}

/** Deletes up to `limit` counts of minutes before `before`, oldest first. */
export const deleteOldStrangerCounts = (db: Db, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, { table: 'stranger_count', key: ['minute', 'network'] }, sql`minute < ${before} order by minute`, limit)

const MINUTE_MS = 60_000
