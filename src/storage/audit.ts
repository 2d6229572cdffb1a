// The table audit_event. Append only; rows of a change are written in the statement of the change.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

export interface AuditEvent {
  /** Null when the request named an application that does not exist. */
  readonly applicationId: string | null
  readonly userId: string | null
  /** As the request named it, which for an unknown activation is the claim of a stranger. */
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  readonly occurredAt: Date
}

/** Writes one audit row on its own, for events that change nothing else. */
export async function insertAuditEvent(db: Db, event: AuditEvent): Promise<void> {
  await db
    .insertInto('audit_event')
    .values({
      application_id: event.applicationId,
      user_id: event.userId,
      activation_id: event.activationId,
      event_type: event.eventType,
      event_data: event.eventData,
      occurred_at: event.occurredAt,
    })
    .execute()
}

/**
 * The end of a statement that writes the audit row of a change made by its common table expression `source`, once for each changed
 * row, and returns the activation's id.
 */
export const insertAuditEventFrom = (source: string, event: AuditEvent): RawBuilder<unknown> => sql`
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select ${event.applicationId}::text, ${event.userId}::text, activation_id, ${event.eventType}::text, ${event.eventData}::text,
      ${event.occurredAt}::timestamptz
    from ${sql.ref(source)} returning activation_id`
