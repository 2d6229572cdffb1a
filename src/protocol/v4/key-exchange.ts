// Agrees on keys for activation/create and upgrade/start: server keys, the activation's secret, the fingerprint (v4 §8.5, §10.2).
import { activationFingerprint } from './fingerprint.ts'
import { describePublicKeys, generateSigningKeyPairs, type PublicKeys, type SigningKeyPairs } from './key-pairs.ts'
import { createInitialActivationSecret } from './key-schedule.ts'
import { encapsulateSharedSecret, type SharedSecretRequest, type SharedSecretResponse } from './shared-secret.ts'

export interface ExchangedKeys {
  /** KEY_ACTIVATION_SECRET with the initial factor keys, to be stored sealed; deriveActivationKeys reads it. */
  readonly activationSecret: Uint8Array
  readonly serverKeys: SigningKeyPairs
  readonly activationFingerprint: string
  /** Members of the answer. The caller adds `ctrData` and, at an activation, `activationId`. */
  readonly answer: {
    readonly sharedSecretResponse: SharedSecretResponse
    readonly serverPublicKeys: { readonly ecdsa: string; readonly mldsa?: string }
  }
}

/** Agrees with the phone on the secret of an activation. `salt` has 32 fresh bytes. Undefined when an encapsulation key is not valid. */
export async function exchangeKeys(
  request: SharedSecretRequest,
  deviceKeys: PublicKeys,
  activationId: string,
  salt: Uint8Array,
): Promise<ExchangedKeys | undefined> {
  // Both run at the same time, in two threads if there are two.
  const [shared, serverKeys] = await Promise.all([
    encapsulateSharedSecret(request, salt),
    generateSigningKeyPairs(request.algorithm),
  ])
  if (!shared) return undefined
  return {
    activationSecret: createInitialActivationSecret(shared.secret),
    serverKeys,
    activationFingerprint: activationFingerprint(request.algorithm, deviceKeys, activationId, serverKeys.publicKeys),
    answer: { sharedSecretResponse: shared.response, serverPublicKeys: describePublicKeys(serverKeys.publicKeys) },
  }
}
