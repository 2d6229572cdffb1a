// Declares row types of the tables and views that migrations/ make, except those that only SQL text names. Sealed columns hold records that
// domain/secrets/record-keys.ts encrypts.
import type { ColumnType, Generated } from 'kysely'
import type { Bytes, OptionalBytes, OptionalText, OptionalTime, Sequence } from './columns.ts'
import type { OperationsSchema } from './schema-operations.ts'

export type * from './schema-operations.ts'

export type ActivationState = 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'
/** The call that commits an activation, and that demands its OTP if it has one. */
export type CommitPhase = 'ON_COMMIT' | 'ON_KEY_EXCHANGE'
/** OPEN: records are bound to no owner, so that the previous version can read them. BEGUN: new records are bound, and old ones are sealed anew. */
export type BindingStage = 'OPEN' | 'BEGUN'
/** The readers of an item: every app of the application, or only activated ones. */
export type ConfigScope = 'APPLICATION' | 'ACTIVATION'
/** The algorithm with which the keys of an activation of protocol 4.0 were agreed. */
export type ActivationAlgorithm = 'EC_P384' | 'EC_P384_ML_L3' | 'EC_P384_ML_L5'
/** The algorithm of a master key pair. */
export type MasterKeyAlgorithm = 'EC_P256' | 'EC_P384' | 'ML_DSA_65' | 'ML_DSA_87'
/** A permission of a credential beyond its role; a credential has none by default (cloud §2.4). */
export type Right = 'keys:derive' | 'envelopes:application'
export type Role = 'admin' | 'integration' | 'internal' | 'read-only' | 'verification'

interface ApplicationTable {
  application_id: string
  is_default: Generated<boolean>
  vault_factors: Generated<string>
  display_name: OptionalText
  created_at: Date
  /** JSON object. */
  custom_object: OptionalText
  /** Comma list; empty: all. */
  algorithms: Generated<string>
  is_protocol_3_admitted: Generated<boolean>
  /** Comma list. */
  roles: Generated<string>
  /** Text of the lowest protocol version that is allowed; null: any. */
  minimum_version: OptionalText
  /** True: a user may have several phones. */
  is_multi_device: Generated<boolean>
  /** JSON array. */
  transfers: Generated<string>
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
  algorithm: MasterKeyAlgorithm
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
  algorithm: ColumnType<ActivationAlgorithm | null, ActivationAlgorithm | null | undefined, ActivationAlgorithm | null>
  is_confirmation_pending: Generated<boolean>
  is_biometry_enabled: ColumnType<boolean | null, boolean | null | undefined, boolean | null>
  /** End of a temporary block. */
  block_expires_at: OptionalTime
  blocks_in_row: Generated<number>
  /** The highest protocol version that the phone has used; null: unknown. */
  highest_version: OptionalText
  /** Unique among the live activations of a user: empty where a user may have one phone, else the activation's own id. */
  device_slot: Generated<string>
  /** The activation that asked for the code of this one (mobile-token §9). */
  parent_activation_id: OptionalText
  /** True: the parent is removed when this activation becomes ACTIVE. */
  replaces_parent: Generated<boolean>
}

/** A view of live activations without their keys. */
type RegistrationView = Pick<
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
  | 'block_expires_at'
>

interface ActivationHistoryTable {
  activation_history_id: Sequence
  activation_id: string
  from_state: OptionalText
  to_state: string
  reason: OptionalText
  external_user_id: OptionalText
  occurred_at: Date
}

interface CredentialTable {
  username: string
  role: Role
  application_id: OptionalText
  salt: Bytes
  is_disabled: Generated<boolean>
  expires_at: OptionalTime
  created_at: Date
  /** Comma list of fingerprints. */
  certificates: Generated<string>
  /** Comma list of addresses and ranges; empty: any. */
  allowed_addresses: Generated<string>
  /** Comma list in alphabetical order. */
  rights: Generated<string>
  /** Null in rows from a version without MACs, until the first start of a version with them. */
  mac: ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array>
}

interface CredentialPasswordTable {
  credential_password_id: string
  username: string
  scheme: 'generated' | 'chosen'
  password_hash: Bytes
  expires_at: OptionalTime
  created_at: Date
}

interface UserClaimsTable {
  application_id: string
  user_id: string
  claims: Bytes
  updated_at: Date
}

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

export interface Schema extends OperationsSchema {
  application: ApplicationTable
  application_version: ApplicationVersionTable
  master_key_pair: MasterKeyPairTable
  activation: ActivationTable
  registration: RegistrationView
  activation_history: ActivationHistoryTable
  credential: CredentialTable
  credential_password: CredentialPasswordTable
  user_claims: UserClaimsTable
  audit_trail: AuditTrailView
  admin_event: AdminEventTable
  pinned_domain: PinnedDomainTable
  version_rule: VersionRuleTable
}

export type CertificateSource = 'pem' | 'fetch' | 'fingerprint'
export type MobilePlatform = 'ANDROID' | 'IOS'

interface PinnedDomainTable {
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
