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
  readonly rowVersion: number
  /** sealed */
  readonly masterSecret: Uint8Array
  readonly isBiometryEnabled: boolean
}

/** Stores other factor keys of a bound activation. False when it is no longer the one that was read. */
export async function storeFactorKeys(db: Db, change: FactorKeyChange): Promise<boolean> {
  const { rows } = await sql`
    update activation set master_secret = ${change.masterSecret}, is_biometry_enabled = ${change.isBiometryEnabled},
      row_version = row_version + 1
    where activation_id = ${change.activationId} and row_version = ${change.rowVersion} and state in ('ACTIVE', 'BLOCKED')
    returning activation_id`.execute(db)
  return rows.length === 1
}
