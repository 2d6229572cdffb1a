// The keys of an activation: its key exchange, and what changes in them afterwards (v3 §8.3, v4 §9.6, §9.12, §9.13).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventsFrom } from '../audit.ts'
import type { Db, Tx } from '../database.ts'
import type { ActivationAlgorithm } from '../schema.ts'
import { insertHistoryFrom } from './history.ts'

/** What the key exchange stores. */
export interface KeyExchange {
  readonly activationId: string
  readonly rowVersion: number
  readonly to: 'PENDING_COMMIT' | 'ACTIVE'
  readonly protocolVersion: number
  /** Text of the protocol version it was done in. */
  readonly highestVersion: string
  readonly algorithm: ActivationAlgorithm | null
  readonly isConfirmationPending: boolean
  readonly isBiometryEnabled: boolean | null
  /** Keys that were made in the exchange, in place of those of the creation. */
  readonly serverKeys: { readonly publicKey: Uint8Array /** sealed */; readonly privateKey: Uint8Array } | null
  readonly devicePublicKey: Uint8Array
  readonly activationFingerprint: string
  /** sealed */
  readonly masterSecret: Uint8Array
  /** sealed */
  readonly ctrData: Uint8Array
  readonly name: string | null
  readonly platform: string
  readonly deviceInfo: string | null
  readonly extras: string | null
  readonly externalId: string | null
  readonly at: Date
}

/**
 * CREATED to PENDING_COMMIT or ACTIVE with the device's key, together with history and audit rows. False when the code was used,
 * removed or expired meanwhile, or a wrong OTP counted.
 */
export async function storeKeyExchange(
  db: Db,
  exchange: KeyExchange,
  audit: readonly [AuditEvent, ...AuditEvent[]],
): Promise<boolean> {
  const { serverKeys } = exchange
  const { rows } = await sql`
    with moved as (
      update activation set state = ${exchange.to}, protocol_version = ${exchange.protocolVersion},
        highest_version = ${exchange.highestVersion}, algorithm = ${exchange.algorithm}, is_confirmation_pending = ${exchange.isConfirmationPending},
        is_biometry_enabled = ${exchange.isBiometryEnabled}, server_public_key = coalesce(${serverKeys?.publicKey ?? null}, server_public_key),
        server_private_key = coalesce(${serverKeys?.privateKey ?? null}, server_private_key),
        device_public_key = ${exchange.devicePublicKey}, activation_fingerprint = ${exchange.activationFingerprint},
        master_secret = ${exchange.masterSecret}, ctr_data = ${exchange.ctrData}, counter = 0, failed_attempts = 0,
        name = ${exchange.name}, platform = ${exchange.platform}, device_info = ${exchange.deviceInfo}, extras = ${exchange.extras},
        external_id = ${exchange.externalId}, activation_qr_code = null, row_version = row_version + 1,
        otp_hash = case when ${exchange.to}::text = 'PENDING_COMMIT' then otp_hash end
      where activation_id = ${exchange.activationId} and row_version = ${exchange.rowVersion} and state = 'CREATED'
        and expires_at > ${exchange.at}
      returning activation_id
    ), history as (
      ${insertHistoryFrom(sql`moved`, {
        from: sql`'CREATED'`,
        to: sql`${exchange.to}::text`,
        at: sql`${exchange.at}::timestamptz`,
      })}
    )
    ${insertAuditEventsFrom('moved', audit)}`.execute(db)
  return rows.length > 0
}

/** Ends the wait for the phone's confirmation. False when nothing waits for it. */
export async function confirmActivation(tx: Tx, activationId: string, isBiometryEnabled: boolean): Promise<boolean> {
  const { rows } = await sql`
    update activation set is_confirmation_pending = false, is_biometry_enabled = ${isBiometryEnabled}, row_version = row_version + 1
    where activation_id = ${activationId} and is_confirmation_pending and state in ('PENDING_COMMIT', 'ACTIVE')
    returning activation_id`.execute(tx)
  return rows.length === 1
}

/** New factor keys of an activation. */
export interface FactorKeyChange {
  readonly activationId: string
  /** sealed; what the new secret was made of */
  readonly from: Uint8Array
  /** sealed */
  readonly to: Uint8Array
  /** Undefined: stays. */
  readonly isBiometryEnabled: boolean | undefined
}

/** Stores other factor keys of a bound activation. False when its secret is no longer `from`: every write of it seals it anew. */
export async function storeFactorKeys(db: Db, { activationId, from, to, isBiometryEnabled }: FactorKeyChange): Promise<boolean> {
  const { rows } = await sql`
    update activation set master_secret = ${to}, is_biometry_enabled = coalesce(${isBiometryEnabled ?? null}, is_biometry_enabled),
      row_version = row_version + 1
    where activation_id = ${activationId} and master_secret = ${from} and state in ('ACTIVE', 'BLOCKED')
    returning activation_id`.execute(db)
  return rows.length === 1
}
