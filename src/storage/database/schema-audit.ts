// Row types of the audit log, of what administrators change, and of the chains over both.
import type { Generated } from 'kysely'
import type { Bytes, OptionalText, OptionalTime, Position, Sequence } from './columns.ts'

export interface AuditPendingTable {
  sequence: Sequence
  occurred_at: Date
  activation_id: string
  application_id: OptionalText
  user_id: OptionalText
  event_type: string
  event_data: string
  /** User name of the credential for which it was checked. */
  verified_by: OptionalText
}

/** A view: all rows of devices, sealed or not. */
export interface AuditTrailView extends AuditPendingTable {
  /** 'infinity' until then. */
  sealed_at: Date | number
}

export interface AdminEventTable {
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

/** Codes for activations that do not exist. */
export interface FailureCountTable {
  failure_key: Bytes
  failures: number
  ends_at: Date
  waits: number
  wait_ends_at: Date
}

export interface StrangerCountTable {
  minute: Date
  network: string
  codes: Position
}

export interface AuditChainTable {
  chain_id: Generated<number>
  name: string
  start_position: Position
  start_seal: Bytes
  head_position: Position
  head_seal: Bytes
  authentication: Bytes
}

/** One row a log. */
export interface AuditSealerTable {
  log: string
  sealed_at: OptionalTime
}

/** Of each user with sealed rows, until the user is erased. */
export interface AuditUserKeyTable {
  user_id: string
  user_key: Bytes
}

/** How far each chain was delivered to a store outside. */
export interface AuditDeliveryTable {
  chain_id: number
  position: Position
  seal: Bytes
}
