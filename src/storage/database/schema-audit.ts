// Row types of the audit log, of what administrators change, of the chains over both, and of counts in place of audit rows.
import type { Generated } from 'kysely'
import type { Bytes, OptionalText, OptionalTime, Position, Sequence } from './columns.ts'

/** A view: all rows of devices, sealed or not. */
interface AuditTrailView {
  sequence: Sequence
  occurred_at: Date
  activation_id: string
  application_id: OptionalText
  user_id: OptionalText
  event_type: string
  event_data: string
  /** User name of the credential for which it was checked. */
  verified_by: OptionalText
  /** 'infinity' until it is sealed. */
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

/** What has failed lately, for all processes together. */
interface FailureCountTable {
  failure_key: Bytes
  failures: number
  ends_at: Date
  waits: number
  wait_ends_at: Date
}

/** Codes for activations that do not exist. */
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

/** One row a log. */
interface AuditSealerTable {
  log: string
  sealed_at: OptionalTime
}

/** Of each user with sealed rows, until the user is erased. */
interface AuditUserKeyTable {
  user_id: string
  user_key: Bytes
}

/** How far each chain was delivered to a store outside. */
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
