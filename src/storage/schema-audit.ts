// Row types of the audit log, of what administrators change, and of the chains over both.
import type { Generated } from 'kysely'
import type { Bytes, OptionalText, Position, Sequence } from './columns.ts'

export interface AuditEventTable {
  sequence: Sequence
  application_id: OptionalText
  user_id: OptionalText
  activation_id: string
  event_type: string
  event_data: string
  occurred_at: Date
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

export interface AuditSealTable {
  chain_id: number
  position: Position
  sequence: Position
  seal: Bytes
}

export interface AuditSourceTable {
  source: string
  settled_sequence: Position
}
