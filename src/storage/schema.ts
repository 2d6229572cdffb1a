// Row types of the tables in migrations/. Sealed columns hold records encrypted by domain/record-keys.ts.
import type { ColumnType, Generated } from 'kysely'

type Bytes = ColumnType<Buffer, Uint8Array, Uint8Array>
type OptionalBytes = ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array | null>
/** int8: text in both databases. */
type Sequence = ColumnType<string, never, never>
type OptionalText = ColumnType<string | null, string | null | undefined, string | null>
type OptionalTime = ColumnType<Date | null, Date | null | undefined, Date | null>

export type ActivationState = 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'
/** Where an activation is committed, and where its OTP is demanded if it has one. */
export type CommitPhase = 'ON_COMMIT' | 'ON_KEY_EXCHANGE'
export type Role = 'admin' | 'integration' | 'internal' | 'read-only'

export type OperationStatus = 'PENDING' | 'APPROVED' | 'REJECTED' | 'CANCELED' | 'EXPIRED' | 'FAILED'

export interface WrappedKeyTable {
  purpose: string
  wrapped_key: Bytes
  created_at: Date
}

export interface ApplicationTable {
  application_id: string
  is_default: Generated<boolean>
  vault_factors: Generated<string>
  display_name: OptionalText
  created_at: Date
  /** JSON object. */
  custom_object: OptionalText
}

export interface ApplicationVersionTable {
  application_key: string
  application_id: string
  name: string
  application_secret: Bytes
  is_supported: Generated<boolean>
  created_at: Date
}

export interface MasterKeyPairTable {
  master_key_pair_id: string
  application_id: string
  algorithm: 'EC_P256'
  public_key: Bytes
  private_key: Bytes
  created_at: Date
}

export interface ActivationTable {
  activation_id: string
  application_id: string
  user_id: string
  state: ActivationState
  protocol_version: ColumnType<number | null, number | null | undefined, number | null>
  activation_code_hash: Bytes
  activation_qr_code: OptionalBytes
  server_public_key: Bytes
  server_private_key: Bytes
  device_public_key: OptionalBytes
  activation_fingerprint: OptionalText
  master_secret: OptionalBytes
  ctr_data: OptionalBytes
  counter: Generated<number>
  failed_attempts: Generated<number>
  max_failed_attempts: number
  blocked_reason: OptionalText
  name: OptionalText
  platform: OptionalText
  device_info: OptionalText
  extras: OptionalText
  external_id: OptionalText
  row_version: Generated<number>
  created_at: Date
  expires_at: Date
  last_used_at: OptionalTime
  /** Comma list. */
  flags: Generated<string>
  commit_phase: Generated<CommitPhase>
  otp_hash: OptionalBytes
}

/** A view: live activations without keys. */
export type RegistrationView = Pick<
  ActivationTable,
  | 'activation_id'
  | 'application_id'
  | 'user_id'
  | 'state'
  | 'row_version'
  | 'expires_at'
  | 'activation_qr_code'
  | 'name'
  | 'platform'
  | 'device_info'
  | 'activation_fingerprint'
>

export interface ActivationHistoryTable {
  activation_history_id: Sequence
  activation_id: string
  from_state: OptionalText
  to_state: string
  reason: OptionalText
  external_user_id: OptionalText
  occurred_at: Date
}

export interface TokenTable {
  token_id: string
  activation_id: string
  factors: string
  token_secret: Bytes
  created_at: Date
}

export interface TemporaryKeyTable {
  temporary_key_id: string
  application_key: string
  activation_id: OptionalText
  private_key: Bytes
  expires_at: Date
}

export interface UniqueValueTable {
  value_hash: Bytes
  expires_at: Date
}

export interface CredentialTable {
  username: string
  role: Role
  application_id: OptionalText
  salt: Bytes
  is_disabled: Generated<boolean>
  expires_at: OptionalTime
  created_at: Date
}

export interface CredentialPasswordTable {
  credential_password_id: string
  username: string
  scheme: 'generated' | 'chosen'
  password_hash: Bytes
  expires_at: OptionalTime
  created_at: Date
}

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

/** int8 that is written as a number: text in both databases. */
type Position = ColumnType<string, number, number>

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

export interface TemplateRevisionTable {
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
  /** JSON, by language. */
  texts: string
  created_at: Date
}

export interface TemplateTable {
  template_name: string
  template_revision_id: string
  source: 'shipped' | 'file' | 'administration'
}

export interface OperationTable {
  operation_id: string
  application_id: string
  user_id: OptionalText
  external_id: OptionalText
  template_revision_id: string
  template_name: string
  operation_type: string
  language: string
  /** JSON, as given. */
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
  proximity_seed: OptionalBytes
  /** JSON. */
  additional_data: OptionalText
  created_at: Date
  expires_at: Date
  finalized_at: OptionalTime
}

export interface OperationNonceTable {
  operation_id: string
  nonce: string
  created_at: Date
}

export interface IdempotencyKeyTable {
  username: string
  idempotency_key: string
  body_hash: Bytes
  operation_id: string
  expires_at: Date
}

export interface PushRegistrationTable {
  activation_id: string
  platform: 'apns' | 'fcm' | 'hms'
  environment: ColumnType<
    'development' | 'production' | null,
    'development' | 'production' | null,
    'development' | 'production' | null
  >
  push_token: Bytes
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

export interface UserClaimsTable {
  application_id: string
  user_id: string
  claims: Bytes
  updated_at: Date
}

export type CertificateSource = 'pem' | 'fetch' | 'fingerprint'
export type MobilePlatform = 'ANDROID' | 'IOS'

export interface PinningKeyPairTable {
  application_id: string
  public_key: Bytes
  private_key: Bytes
  created_at: Date
}

export interface PinnedDomainTable {
  application_id: string
  domain: string
  port: Generated<number>
  created_at: Date
  next_check_at: Date
  checked_at: OptionalTime
  live_fingerprint: OptionalBytes
  live_expires_at: OptionalTime
  is_chain_trusted: ColumnType<boolean | null, boolean | null | undefined, boolean | null>
  problem: OptionalText
}

export interface PinnedCertificateTable {
  application_id: string
  domain: string
  fingerprint: Bytes
  expires_at: Date
  source: CertificateSource
  /** DER. */
  certificate: OptionalBytes
  created_at: Date
}

export interface VersionRuleTable {
  version_rule_id: ColumnType<number, never, never>
  application_id: string
  platform: MobilePlatform
  major_os_version: ColumnType<number | null, number | null | undefined, number | null>
  suggested_version: OptionalText
  required_version: OptionalText
  message_key: OptionalText
  created_at: Date
}

export interface VersionTextTable {
  message_key: string
  language: string
  text: string
}

export interface Schema {
  wrapped_key: WrappedKeyTable
  application: ApplicationTable
  application_version: ApplicationVersionTable
  master_key_pair: MasterKeyPairTable
  activation: ActivationTable
  registration: RegistrationView
  activation_history: ActivationHistoryTable
  token: TokenTable
  temporary_key: TemporaryKeyTable
  unique_value: UniqueValueTable
  credential: CredentialTable
  credential_password: CredentialPasswordTable
  audit_event: AuditEventTable
  admin_event: AdminEventTable
  audit_chain: AuditChainTable
  audit_seal: AuditSealTable
  audit_source: AuditSourceTable
  template_revision: TemplateRevisionTable
  template: TemplateTable
  operation: OperationTable
  operation_nonce: OperationNonceTable
  idempotency_key: IdempotencyKeyTable
  push_registration: PushRegistrationTable
  inbox_message: InboxMessageTable
  webhook: WebhookTable
  webhook_delivery: WebhookDeliveryTable
  user_claims: UserClaimsTable
  pinning_key_pair: PinningKeyPairTable
  pinned_domain: PinnedDomainTable
  pinned_certificate: PinnedCertificateTable
  version_rule: VersionRuleTable
  version_text: VersionTextTable
}
