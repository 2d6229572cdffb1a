// Row types of the mobile utility.
import type { ColumnType, Generated } from 'kysely'
import type { Bytes, OptionalBytes, OptionalText, OptionalTime } from './columns.ts'

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
