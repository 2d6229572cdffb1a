// The device keys of an activation, for whoever verifies what they signed, and the row of the audit log that says so.
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import type { ActivationAlgorithm, ActivationState } from '../database/schema.ts'
import { effectiveStateAt } from './seen-state.ts'

export interface DeviceKeysRow {
  readonly activationId: string
  readonly userId: string
  readonly state: ActivationState
  /** Null before the key exchange. */
  readonly protocolVersion: number | null
  /** Null in protocol 3. */
  readonly algorithm: ActivationAlgorithm | null
  /** As the generation stores them; null before the key exchange. */
  readonly devicePublicKey: Buffer | null
}

/** An activation of this application, in whatever state; CREATED and PENDING_COMMIT that have run out are REMOVED. */
export async function findDeviceKeys(
  db: Db,
  { applicationId, activationId, at }: { readonly applicationId: string; readonly activationId: string; readonly at: Date },
): Promise<DeviceKeysRow | undefined> {
  const { rows } = await sql<DeviceKeysRow>`
    select activation_id as "activationId", user_id as "userId", ${effectiveStateAt(at)} as state, protocol_version as "protocolVersion",
      algorithm, device_public_key as "devicePublicKey"
    from activation where activation_id = ${activationId} and application_id = ${applicationId}`.execute(db)
  return rows[0]
}

/**
 * Writes the audit row of a verification. False when the application has no such activation, or has none any more: there is no row then. The
 * activation stays to the end of the statement, so that whoever erases its user sees the row (docs/decisions/0019-erasure.md).
 */
export async function insertSignatureAudit(db: Db, event: AuditEvent): Promise<boolean> {
  const { rows } = await sql`
    with held as (
      select activation_id from activation
      where activation_id = ${event.activationId} and application_id = ${event.applicationId} for key share
    )${insertAuditEventFrom('held', event)}`.execute(db)
  return rows.length > 0
}
