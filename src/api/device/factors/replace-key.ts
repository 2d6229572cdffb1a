// Replaces factor keys of an authenticated activation, for password/change, biometry/add and biometry/remove. Spec: v4 §9.12, §9.13.
import type { Static } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import { places } from '../../../domain/secrets/secrets.ts'
import { equalConstantTime } from '../../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../../lib/errors.ts'
import { untilSettled } from '../../../lib/until-settled.ts'
import { findFactorKeys, storeFactorKeys } from '../../../storage/activation/keys.ts'
import type { ActivationRow } from '../../../storage/activation/find.ts'
import type { UniqueValue } from '../../../storage/activation/unique-values.ts'
import type { DeviceParts } from '../parts.ts'

/** The schema checks only the types. The protocol checks the rest, for example the number of keys for the algorithm. */
export const SharedSecretRequest = Type.Object({
  algorithm: Type.String(),
  encapsulationKeys: Type.Array(Type.String(), { minItems: 1 }),
})
export const SharedSecretResponse = Type.Object({ salt: Type.String(), encapsulatedKeys: Type.Array(Type.String()) })

/**
 * Agrees on a key with the algorithm of the activation, and stores the factor keys that `replace` makes of the stored ones and the new key. Throws
 * `refusal` for another algorithm and for invalid keys, and the errors of changeFactorKeys.
 */
export async function replaceFactorKey(
  parts: DeviceParts,
  activation: ActivationRow,
  json: unknown,
  replace: (stored: Uint8Array, key: Uint8Array) => Uint8Array,
  terms: KeyChangeTerms,
): Promise<Static<typeof SharedSecretResponse>> {
  const { v4 } = parts.protocols
  const { refusal } = terms
  const request = v4.parseSharedSecretRequest(json)
  if (request?.algorithm !== activation.algorithm) throw new PawlError(refusal, { detail: 'not the algorithm of the activation' })
  const shared = request && (await v4.encapsulateSharedSecret(request, parts.platform.randomBytes(32)))
  if (shared === undefined) throw new PawlError(refusal, { detail: 'the keys of the request are not valid' })
  await changeFactorKeys(parts, activation, (stored) => replace(stored, shared.secret), terms)
  const { salt, encapsulatedKeys } = shared.response
  return { salt, encapsulatedKeys: [...encapsulatedKeys] }
}

/**
 * Changes the factor keys of `activation`, which has the values after the code of this request. Later writes do not prevent the change: neither a
 * block, because the code came before it, nor a change of the master key, which seals the same keys anew. Throws `refusal` when the activation was
 * removed, and when a later request has changed the keys.
 */
export async function changeFactorKeys(
  { db, recordKeys }: DeviceParts,
  activation: ActivationRow,
  change: (stored: Uint8Array) => Uint8Array,
  { refusal, isBiometryEnabled, use }: KeyChangeTerms,
): Promise<void> {
  const { activationId, masterSecret } = activation
  const place = places.masterSecret(activation)
  const refused = () => new PawlError(refusal, { detail: 'removed, or its keys were changed by a later request' })
  if (masterSecret === null) throw refused()
  const before = recordKeys.open(place, masterSecret)
  const after = change(before)
  await untilSettled(`activation ${activationId}`, async (round) => {
    const from = round === 0 ? masterSecret : await findFactorKeys(db, activationId)
    if (from === undefined || !equalConstantTime(recordKeys.open(place, from), before)) throw refused()
    const isStored = await storeFactorKeys(db, { activationId, from, to: recordKeys.seal(place, after), isBiometryEnabled, use })
    return isStored || undefined
  })
}

export interface KeyChangeTerms {
  readonly refusal: ErrorCode
  /** Whether biometry is enabled after the change. If absent, it stays as it was. */
  readonly isBiometryEnabled?: boolean
  /** The nonce of the request. The statement of the change stores it as used. */
  readonly use?: UniqueValue | undefined
}
