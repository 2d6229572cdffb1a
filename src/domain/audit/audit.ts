// Composes rows of the audit log of devices (cloud §7), and reads the log. Rows about checked codes are made elsewhere.
import type { KeyObject } from 'node:crypto'
import { type PawlError, refused } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Events } from '../../log/events.ts'
import { hasActivation } from '../../storage/activation/search.ts'
import { type AuditEvent, type AuditQuery, listAuditItems } from '../../storage/audit/audit.ts'
import type { Database, Db, Pool } from '../../storage/database/database.ts'

/** Parts for code that reads seals. */
export interface SealParts {
  readonly db: Db
  readonly installationKeys: { readonly auditSeal: KeyObject }
}

/** Parts for background work on the audit logs. */
export interface AuditParts extends SealParts {
  readonly db: Pool
  readonly databaseKind: Database['kind']
  readonly platform: Platform
  readonly events: Events
  readonly settings: {
    readonly auditRetentionDays: number
    readonly auditPartitionDays: number
    readonly adminAuditRetentionDays: number
  }
}

/**
 * Reads the rows of a user within a range, newest first. `next` is the `before` of the next page; undefined when there is none. Throws AUDIT_REFUSED
 * when the user never had a registration in the application.
 */
export async function readAuditLog({ db }: { readonly db: Db }, query: AuditQuery) {
  const items = await listAuditItems(db, query)
  if (items.length === 0 && !(await hasActivation(db, query.applicationId, query.userId)))
    throw auditRefused('userId', `there is no registration of ${query.userId}, and never was one`)
  const last = items.length < query.limit ? undefined : items.at(-1)?.occurredAt
  const isLast = last === undefined || (await listAuditItems(db, { ...query, before: last, limit: 1 })).length === 0
  return { items, next: isLast ? undefined : last }
}

/** The error for a question that the audit log cannot answer. */
export const auditRefused = (fieldName: string, hint: string): PawlError => refused('AUDIT_REFUSED', fieldName, hint)

/** Composes an audit row. `fields` become its data as compact JSON, without the members that are null. */
export const createAuditEvent = (
  { applicationId, userId, activationId }: { applicationId: string; userId: string; activationId: string },
  eventType: string,
  fields: Readonly<Record<string, string | null>>,
  at: number,
): AuditEvent & { readonly userId: string } => {
  const eventData = composeEventData(fields)
  return { applicationId, userId, activationId, eventType, eventData, occurredAt: new Date(at) }
}

/** Composes the data of an audit row: a JSON object without the members that are null. */
export const composeEventData = (fields: Readonly<Record<string, string | null>>): string =>
  JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)))
