// Replacing the keys of knowledge and biometry of an activation (v4 §9.12, §9.13).
import { storeFactorKeys } from '../storage/activation-keys.ts'
import type { ActivationRow } from '../storage/activations.ts'
import type { Db } from '../storage/database.ts'
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
  { db, recordKeys }: { readonly db: Db; readonly recordKeys: RecordKeys },
  { activationId, masterSecret: from }: ActivationRow,
  change: ChangeFactorKeys,
  isBiometryEnabled?: boolean,
): Promise<boolean> {
  if (from === null) return false
  const place = places.masterSecret(activationId)
  const to = recordKeys.seal(place, change(recordKeys.open(place, from)))
  return storeFactorKeys(db, { activationId, from, to, isBiometryEnabled })
}
