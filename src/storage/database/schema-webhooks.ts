// Row types of webhooks and their outbox.
import type { Generated } from 'kysely'
import type { Bytes, OptionalBytes, OptionalText, OptionalTime, Sequence } from './columns.ts'

export type WebhookKind = 'OPERATION' | 'ACTIVATION'
export type DeliveryStatus = 'WAITING' | 'DELIVERED' | 'DEAD'

/** Providers of pushes stand in it too (storage/webhook/push-providers.ts), and are read by none of the queries that are made of these columns. */
export interface WebhookTable {
  webhook_id: string
  application_id: string
  name: string
  kind: WebhookKind
  url: string
  /** Comma list. */
  attributes: string
  secret: Bytes
  previous_secret: OptionalBytes
  previous_secret_expires_at: OptionalTime
  basic_credentials: OptionalBytes
  basic_mac: OptionalBytes
  is_enabled: Generated<boolean>
  disabled_reason: OptionalText
  /** int8: text in both databases. */
  delivered_count: Generated<string>
  failures_in_row: Generated<number>
  failing_since: OptionalTime
  probe_at: OptionalTime
  paused_until: OptionalTime
  created_at: Date
}

/** Rows are inserted by triggers alone. */
export interface WebhookDeliveryTable {
  sequence: Sequence
  delivery_id: string
  webhook_id: string
  object_id: string
  /** Of a push: the device that is told. */
  activation_id: OptionalText
  /** JSON. */
  payload: string
  status: Generated<DeliveryStatus>
  attempts: Generated<number>
  scheduled_at: Generated<Date>
  next_attempt_at: Generated<Date>
  lease_id: OptionalText
  leased_until: OptionalTime
  last_error: OptionalText
  created_at: Date
  finished_at: OptionalTime
}
