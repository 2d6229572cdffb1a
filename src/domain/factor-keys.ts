// Replacing the keys of knowledge and biometry of an activation (v4 §9.12, §9.13).
import { lostTooManyRaces } from '../lib/errors.ts'
import { type ActivationRow, findActivation } from '../storage/activations.ts'
import { storeFactorKeys } from '../storage/activation-keys.ts'
import type { Db } from '../storage/database.ts'
import type { Platform } from '../lib/platform.ts'
import type { RecordKeys } from './record-keys.ts'
import { places } from './secrets.ts'

/** Makes the stored secret of an activation another one. */
export type ChangeFactorKeys = (stored: Uint8Array) => Uint8Array

/**
 * Changes the factor keys of `authenticated`, an activation as the code of this request left it. Other writes since then are no obstacle, a
 * block included: the code came before. False when it was removed, or when its keys have changed, by a later code whose answer must stay
 * true. `isBiometryEnabled` undefined: stays.
 */
export async function changeFactorKeys(
  { db, recordKeys, platform }: { readonly db: Db; readonly recordKeys: RecordKeys; readonly platform: Platform },
  authenticated: ActivationRow,
  change: ChangeFactorKeys,
  isBiometryEnabled?: boolean,
): Promise<boolean> {
  const { activationId, masterSecret: sealed } = authenticated
  if (sealed === null) return false
  const place = places.masterSecret(activationId)
  const masterSecret = recordKeys.seal(place, change(recordKeys.open(place, sealed)))
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const activation = await findActivation(db, activationId, new Date(platform.now()))
    // Every write of the secret seals it anew.
    if (activation?.masterSecret == null || !activation.masterSecret.equals(sealed)) return false
    const { rowVersion, state } = activation
    if (state !== 'ACTIVE' && state !== 'BLOCKED') return false
    const enabled = isBiometryEnabled ?? activation.isBiometryEnabled === true
    if (await storeFactorKeys(db, { activationId, rowVersion, masterSecret, isBiometryEnabled: enabled })) return true
  }
  throw lostTooManyRaces('activation')
}

const ROUNDS_MAX = 128
