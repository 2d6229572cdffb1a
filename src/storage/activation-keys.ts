// What changes in the keys of an activation after its key exchange (v4 §9.6, §9.12, §9.13).
import { sql } from 'kysely'
import type { Db, Tx } from './database.ts'

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
