// Declares row types of the audit log, of administrators' changes, of the chains over both, and of counts kept in place of audit rows.
import type { Generated } from 'kysely'
import type { Bytes, OptionalText, OptionalTime, Position, Sequence } from './columns.ts'

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

interface AuditChainTable {
  chain_id: Generated<number>
  name: string
  start_position: Position
  start_seal: Bytes
  head_position: Position
  head_seal: Bytes
  authentication: Bytes
}

/** One row per log. */
interface AuditSealerTable {
  log: string
  sealed_at: OptionalTime
}

/** One row for each user with sealed rows, until the user is erased. */
interface AuditUserKeyTable {
  user_id: string
  user_key: Bytes
}

/** The position up to which each chain was delivered to an external store. */
interface AuditDeliveryTable {
  chain_id: number
  position: Position
  seal: Bytes
}

export interface AuditSchema {
  audit_trail: AuditTrailView
  audit_user_key: AuditUserKeyTable
  admin_event: AdminEventTable
  audit_chain: AuditChainTable
  audit_delivery: AuditDeliveryTable
  audit_sealer: AuditSealerTable
  stranger_count: StrangerCountTable
  failure_count: FailureCountTable
}
