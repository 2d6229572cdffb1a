// What password/change and biometry/add have in common: a new key is agreed on for an authenticated activation. Spec: v4 §9.12, §9.13.
import type { Static } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import { type ChangeFactorKeys, changeFactorKeys } from '../../../domain/factor-keys.ts'
import { type ErrorCode, PawlError } from '../../../lib/errors.ts'
import type { ActivationRow } from '../../../storage/activations.ts'
import type { DeviceParts } from '../parts.ts'

/** The request is read by the protocol, which knows how many keys an algorithm has. */
export const SharedSecretRequest = Type.Object({ algorithm: Type.Unknown(), encapsulationKeys: Type.Unknown() })
export const SharedSecretResponse = Type.Object({ salt: Type.String(), encapsulatedKeys: Type.Array(Type.String()) })

/** Agrees on a key with the algorithm of the activation and stores what `replace` makes of it. Throws `refusal`. */
export async function replaceFactorKey(
  parts: DeviceParts,
  activation: ActivationRow,
  json: unknown,
  replace: (stored: Uint8Array, key: Uint8Array) => Uint8Array,
  { refusal, isBiometryEnabled }: { readonly refusal: ErrorCode; readonly isBiometryEnabled?: true },
): Promise<Static<typeof SharedSecretResponse>> {
  const { v4 } = parts.protocols
  const request = v4.parseSharedSecretRequest(json)
  if (request?.algorithm !== activation.algorithm) throw new PawlError(refusal, { detail: 'not the algorithm of the activation' })
  const shared = request && (await v4.encapsulateSharedSecret(request, parts.platform.randomBytes(32)))
  if (shared === undefined) throw new PawlError(refusal, { detail: 'the keys of the request are not valid' })
  const change: ChangeFactorKeys = (stored) => replace(stored, shared.secret)
  if (!(await changeFactorKeys(parts, activation, change, isBiometryEnabled)))
    throw new PawlError(refusal, { detail: 'removed, or its keys were changed by a later request' })
  const { salt, encapsulatedKeys } = shared.response
  return { salt, encapsulatedKeys: [...encapsulatedKeys] }
}

/** How these endpoints refuse what comes after a right code. */
export const refusalsOf = (code: ErrorCode) =>
  ({ envelope: 'AUTHENTICATION_REQUEST_INVALID', open: code, plaintext: code, request: code }) as const
