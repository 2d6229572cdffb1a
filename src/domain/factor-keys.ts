// Replacing the keys of knowledge and biometry of an activation (v4 §9.12, §9.13).
import { lostTooManyRaces } from '../lib/errors.ts'
import { findActivation } from '../storage/activations.ts'
import { storeFactorKeys } from '../storage/activation-keys.ts'
import type { Db } from '../storage/database.ts'
import type { Platform } from '../lib/platform.ts'
import type { RecordKeys } from './record-keys.ts'
import { places } from './secrets.ts'

/** Makes the stored secret of an activation another one. */
export type ChangeFactorKeys = (stored: Uint8Array) => Uint8Array

/**
 * Changes the factor keys of an ACTIVE activation as it is now, whatever other request changed it since its code was checked. False when
 * it is no longer ACTIVE or was blocked meanwhile. `isBiometryEnabled` undefined: stays.
 */
export async function changeFactorKeys(
  { db, recordKeys, platform }: { readonly db: Db; readonly recordKeys: RecordKeys; readonly platform: Platform },
  activationId: string,
  change: ChangeFactorKeys,
  isBiometryEnabled?: boolean,
): Promise<boolean> {
  const place = places.masterSecret(activationId)
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const activation = await findActivation(db, activationId, new Date(platform.now()))
    if (activation?.state !== 'ACTIVE' || activation.isBlockOver || activation.masterSecret === null) return false
    const isStored = await storeFactorKeys(db, {
      activationId,
      rowVersion: activation.rowVersion,
      masterSecret: recordKeys.seal(place, change(recordKeys.open(place, activation.masterSecret))),
      isBiometryEnabled: isBiometryEnabled ?? activation.isBiometryEnabled === true,
    })
    if (isStored) return true
  }
  throw lostTooManyRaces('activation')
}

const ROUNDS_MAX = 128
