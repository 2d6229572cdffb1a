// Audit rows of what happens to an activation beside the checking of codes (cloud §7).
import type { AuditEvent } from '../storage/audit.ts'

/** An audit row; `fields` become its data as compact JSON, those that are null are left out. */
export const createAuditEvent = (
  { applicationId, userId, activationId }: { applicationId: string; userId: string; activationId: string },
  eventType: string,
  fields: Readonly<Record<string, string | null>>,
  at: number,
): AuditEvent => {
  const present = Object.entries(fields).filter(([, value]) => value !== null)
  return {
    applicationId,
    userId,
    activationId,
    eventType,
    eventData: JSON.stringify(Object.fromEntries(present)),
    occurredAt: new Date(at),
  }
}
