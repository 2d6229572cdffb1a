// Declares row types of the audit log, of administrators' changes, of the chains over both, and of counts kept in place of audit rows.
import type { Bytes, OptionalText, Position, Sequence } from './columns.ts'

/** A view of all audit rows about devices, sealed or not. */
interface AuditTrailView {
  sequence: Sequence
  occurred_at: Date
  activation_id: string
  application_id: OptionalText
  user_id: OptionalText
  event_type: string
  event_data: string
  /** User name of the credential that asked for the verification. */
  verified_by: OptionalText
  /** 'infinity' until the row is sealed. */
  sealed_at: Date
}

interface AdminEventTable {
  sequence: Sequence
  username: string
  action: string
  target: string
  /** JSON. */
  before: OptionalText
  /** JSON. */
  after: OptionalText
  occurred_at: Date
}

/** Counts of recent failures, shared by all processes. */
interface FailureCountTable {
  failure_key: Bytes
  failures: number
  ends_at: Date
  waits: number
  wait_ends_at: Date
}

/** Counts of codes for activations that do not exist. */
interface StrangerCountTable {
  minute: Date
  network: string
  codes: Position
}

export interface AuditSchema {
  audit_trail: AuditTrailView
  admin_event: AdminEventTable
  stranger_count: StrangerCountTable
  failure_count: FailureCountTable
}
