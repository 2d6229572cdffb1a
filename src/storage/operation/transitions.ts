// Ends operations, and gives those without a user to the one who claims them: every transition is one update with the condition
// status = 'PENDING' (cloud §6.2), and an audit row with it.
import { type RawBuilder, sql } from 'kysely'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import { countWritten, type Db, writesRow } from '../database/database.ts'
import { amongPending } from '../database/index-conditions.ts'
import type { OperationStatus } from '../database/schema.ts'

/**
 * Gives an unclaimed PENDING operation to the user of a live activation, with an audit row of the activation; false when the operation has a user
 * already, or is over.
 */
export const claimOperation = (db: Db, operationId: string, claim: AuditEvent & { readonly userId: string }): Promise<boolean> =>
  // With `offset 0` PostgreSQL finds the operation by its id: in a join it may read all unclaimed ones of the application.
  writesRow(
    db,
    sql`
    with claimed as (
      update operation set user_id = ${claim.userId}
      where operation_id = ${operationId} and user_id is null and status = 'PENDING' and expires_at > ${claim.occurredAt} and exists (
        select from activation a where a.activation_id = ${claim.activationId} and a.application_id = operation.application_id
          and a.user_id = ${claim.userId} and a.state <> 'REMOVED' offset 0
      )
      returning operation_id
    )
    ${insertAuditFrom(sql`claimed`, claim)}`,
  )

/** The end of an operation by a decision of the user or the bank. */
interface OperationEnd {
  readonly operationId: string
  readonly to: 'APPROVED' | 'REJECTED' | 'CANCELED'
  readonly statusReason: string | null
  /** JSON object, or null. */
  readonly additionalData: string | null
  readonly at: Date
}

/**
 * Moves a PENDING operation to a final status, with an audit row of the activation that decided. False when the operation was not PENDING any more
 * or had expired.
 */
export const endOperation = (db: Db, end: OperationEnd, audit: AuditEvent): Promise<boolean> =>
  writesRow(
    db,
    sql`
    with ended as (
      ${endPending(end)} returning operation_id
    )
    ${insertAuditFrom(sql`ended`, audit)}`,
  )

/**
 * Cancels a PENDING operation for the bank. The audit row names the operation's activation, else the live activation of its user, else the user's
 * newest one. Of an operation without a user it names the operation's activation and the user of that, else neither.
 */
export async function cancelPendingOperation(
  db: Db,
  applicationId: string,
  end: OperationEnd & { readonly to: 'CANCELED' },
  audit: Pick<AuditEvent, 'eventType' | 'eventData' | 'verifiedBy' | 'occurredAt'>,
): Promise<boolean> {
  const { rows } = await sql`
    with ended as (
      ${endPending(end)} and application_id = ${applicationId} returning application_id, user_id, activation_id
    ), owner as (
      (select a.application_id, a.user_id, a.activation_id
        from ended join activation a on a.application_id = ended.application_id and a.user_id = ended.user_id
        order by a.activation_id is distinct from ended.activation_id, a.state = 'REMOVED', a.created_at desc limit 1)
      union all
      select e.application_id, a.user_id, coalesce(e.activation_id, '')
      from ended e left join activation a on a.activation_id = e.activation_id where e.user_id is null
    ), audited as (
      ${insertAuditFrom(sql`owner`, audit)}
    )
    select application_id from ended`.execute(db)
  return rows.length === 1
}

/**
 * Counts a failed approval of a PENDING operation and returns its new status: FAILED, with an audit row, when the maximum is reached. Undefined
 * when the operation was not PENDING any more.
 */
export async function countOperationFailure(
  db: Db,
  operationId: string,
  at: Date,
  audit: AuditEvent,
): Promise<OperationStatus | undefined> {
  const { rows } = await sql<{ status: OperationStatus }>`
    with counted as (
      update operation set failure_count = failure_count + 1,
        status = case when failure_count + 1 >= max_failure_count then 'FAILED' else status end,
        finalized_at = case when failure_count + 1 >= max_failure_count then ${at}::timestamptz end
      where operation_id = ${operationId} and status = 'PENDING' and expires_at > ${at}
      returning status
    ), failed as (
      select from counted where status = 'FAILED'
    ), audited as (
      ${insertAuditFrom(sql`failed`, audit)}
    )
    select status from counted`.execute(db)
  return rows[0]?.status
}

/** Stores the expiry of up to `limit` due operations, oldest first; safe in several processes. */
export const expireOperations = (db: Db, at: Date, limit: number): Promise<number> =>
  countWritten(
    db,
    sql`
    update operation set status = 'EXPIRED', finalized_at = ${at} where operation_id in (
      select operation_id from operation where ${amongPending('operation')} and expires_at <= ${at}
      order by expires_at limit ${limit} for update skip locked
    )`,
  )

/** Stores the expiry of one operation; false when it is not due, or not PENDING any more. */
export async function expireOperation(db: Db, operationId: string, at: Date): Promise<boolean> {
  const { rows } = await sql`
    update operation set status = 'EXPIRED', finalized_at = ${at}
    where operation_id = ${operationId} and status = 'PENDING' and expires_at <= ${at} returning operation_id`.execute(db)
  return rows.length === 1
}

const endPending = ({ operationId, to, statusReason, additionalData, at }: OperationEnd): RawBuilder<unknown> => sql`
      update operation
      set status = ${to}, status_reason = ${statusReason}, additional_data = ${additionalData}, finalized_at = ${at}
      where operation_id = ${operationId} and status = 'PENDING' and expires_at > ${at}`
