// Declares row types of operations, of the phone's records about them, and of webhooks and their outbox.
import type { Generated } from 'kysely'
import type { Bytes, OptionalBytes, OptionalText, OptionalTime, Sequence } from './columns.ts'

export type OperationStatus = 'PENDING' | 'APPROVED' | 'REJECTED' | 'CANCELED' | 'EXPIRED' | 'FAILED'

interface TemplateRevisionTable {
  template_revision_id: string
  template_name: string
  operation_type: string
  data_template: string
  /** Comma list. */
  signature_types: string
  max_failure_count: number
  expiration_seconds: number
  risk_flags: string
  is_proximity_check_enabled: boolean
  activation_flag: OptionalText
  /** JSON object, keyed by language. */
  texts: string
  created_at: Date
}

export interface TemplateTable {
  template_name: string
  template_revision_id: string
  source: 'shipped' | 'file' | 'administration'
}

interface OperationTable {
  operation_id: string
  application_id: string
  user_id: OptionalText
  external_id: OptionalText
  template_revision_id: string
  template_name: string
  operation_type: string
  language: string
  /** JSON, as the bank gave it. */
  parameters: string
  data: string
  status: OperationStatus
  status_reason: OptionalText
  /** Comma list. */
  signature_types: string
  failure_count: Generated<number>
  max_failure_count: number
  risk_flags: string
  activation_flag: OptionalText
  activation_id: OptionalText
  proximity_seed: OptionalBytes
  /** JSON. */
  additional_data: OptionalText
  created_at: Date
  expires_at: Date
  finalized_at: OptionalTime
}

interface PushRegistrationTable {
  activation_id: string
  platform: 'apns' | 'fcm' | 'hms'
  environment: 'development' | 'production' | null
  push_token: Bytes
  push_token_hash: OptionalBytes
  updated_at: Date
}

export interface InboxMessageTable {
  message_id: string
  application_id: string
  user_id: string
  type: 'text' | 'html'
  subject: string
  summary: string
  body: string
  is_read: Generated<boolean>
  created_at: Date
}

export type WebhookKind = 'OPERATION' | 'ACTIVATION'
export type DeliveryStatus = 'WAITING' | 'DELIVERED' | 'DEAD'

/** The table also holds providers of pushes (storage/webhook/push-providers.ts). Queries over the columns below never read those rows. */
interface WebhookTable {
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
  /** An int8: both databases return it as text. */
  delivered_count: Generated<string>
  failures_in_row: Generated<number>
  failing_since: OptionalTime
  probe_at: OptionalTime
  paused_until: OptionalTime
  /** How often administrators have changed the webhook. */
  change_count: Generated<number>
  created_at: Date
}

/** Only triggers insert rows. */
interface WebhookDeliveryTable {
  sequence: Sequence
  delivery_id: string
  webhook_id: string
  object_id: string
  /** For a push: the activation of the phone that gets it. */
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

export interface OperationsSchema {
  template_revision: TemplateRevisionTable
  template: TemplateTable
  operation: OperationTable
  push_registration: PushRegistrationTable
  inbox_message: InboxMessageTable
  webhook: WebhookTable
  webhook_delivery: WebhookDeliveryTable
}
