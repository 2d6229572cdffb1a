// Derives every key of an activation (v4 §1.3, §3.1).
import type { KeyObject } from 'node:crypto'
import { importHmacKey, sha3 } from '../../crypto/hash.ts'
import { createKmac, type KmacKey } from '../../crypto/kmac.ts'
import { concatWithSizes, utf8 } from '../../lib/bytes.ts'
import type { DecoyKeys, Named } from '../protocol.ts'
import {
  createActivationSecret,
  type FactorKey,
  type FactorKeys,
  type KeyActivationSecret,
  parseActivationSecret,
  type ReplaceableFactor,
} from './factor-keys.ts'

/** A key from which other keys are derived. */
export type KdfKey = KmacKey
type ActivationKdk = Named<KdfKey, 'KEY_ACTIVATION_SECRET'>
type KdkAuthenticationCode = Named<KdfKey, 'KDK_AUTHENTICATION_CODE'>
type KdkVault = Named<KdfKey, 'KDK_VAULT'>
type KdkUtility = Named<KdfKey, 'KDK_UTILITY'>
export type TemporarySharedSecret = Named<KdfKey, 'KEY_TEMPORARY_SHARED_SECRET'>

/** The keys of one activation (v4 §3.1). Each is derived when it is first needed: a code needs two of them, a status two others. */
export interface ActivationKeys {
  /** The stored secret from which the keys are derived. */
  readonly activationSecret: Uint8Array
  /**
   * The keys of authentication codes: that of possession, and of each other factor the current one and, while it is being replaced, the next
   * one.
   */
  readonly possession: () => Named<KmacKey, 'possession'>
  readonly knowledge: () => readonly Named<KmacKey, 'knowledge'>[]
  readonly biometry: () => readonly Named<KmacKey, 'biometry'>[]
  readonly kdkVault: () => KdkVault
  readonly keyMacCtrData: () => Named<KmacKey, 'KEY_MAC_CTR_DATA'>
  readonly keyMacStatus: () => Named<KmacKey, 'KEY_MAC_STATUS'>
  /** HS384 key. */
  readonly keyMacGetActTempKey: () => Named<KeyObject, 'KEY_MAC_GET_ACT_TEMP_KEY'>
  readonly keyMacPersonalizedData: () => Named<KmacKey, 'KEY_MAC_PERSONALIZED_DATA'>
  readonly keyE2eeSharedInfo2: () => Named<KmacKey, 'KEY_E2EE_SHARED_INFO2'>
}

/** The keys of an activation from its stored secret (see factor-keys.ts), in the order of v4 §3.1. */
export function deriveActivationKeys(activationSecret: Uint8Array): ActivationKeys {
  const { keyActivationSecret, knowledge, biometry } = parseActivationSecret(activationSecret)
  const root = once(() => importKdfKey(keyActivationSecret))
  const kdkUtility = once(() => deriveKdkUtility(root()))
  return {
    activationSecret,
    possession: once(() => importCodeKey(derivePossessionKey(deriveKdkAuthenticationCode(root())))),
    knowledge: once(() => importCodeKeys(knowledge)),
    biometry: once(() => importCodeKeys(biometry)),
    kdkVault: once(() => deriveKdkVault(root())),
    keyMacCtrData: once(() => importCtrDataKey(kdf(kdkUtility(), 'util/mac/ctr-data'))),
    keyMacStatus: once(() => importStatusKey(kdf(kdkUtility(), 'util/mac/status'))),
    keyMacGetActTempKey: once(() => importHmacKey(kdf(kdkUtility(), 'util/mac/get-act-temp-key'))),
    keyMacPersonalizedData: once(() => importPersonalizedDataKey(kdf(kdkUtility(), 'util/mac/personalized-data'))),
    keyE2eeSharedInfo2: once(() => importSharedInfo2Key(kdf(kdkUtility(), 'util/key-e2ee-sh2'))),
  }
}

/** Keys that open nothing and verify nothing. */
export const createDecoyKeys = (randomBytes: (length: number) => Uint8Array): DecoyKeys<ActivationKeys> => ({
  activationKeys: deriveActivationKeys(createInitialActivationSecret(randomBytes(32))),
  envelopeKey: importKdfKey(randomBytes(32)),
})

/** Imports the stored KEY_TEMPORARY_SHARED_SECRET, 32 bytes. Undefined for anything else. */
export const importEnvelopeKey = (stored: Uint8Array): TemporarySharedSecret | undefined =>
  stored.length === 32 ? importKdfKey(stored) : undefined

/** Derives KDK_AUTHENTICATION_CODE. */
export const deriveKdkAuthenticationCode = (keyActivationSecret: ActivationKdk): KdkAuthenticationCode =>
  importKdfKey(kdf(keyActivationSecret, 'auth'))

/** KEY_AUTHENTICATION_CODE_POSSESSION, 32 bytes. */
export const derivePossessionKey = (kdkAuthenticationCode: KdkAuthenticationCode): Named<Uint8Array, 'possession'> =>
  kdf(kdkAuthenticationCode, 'auth/possession')

/** The initial KEY_AUTHENTICATION_CODE_KNOWLEDGE, 32 bytes. */
export const deriveKnowledgeKey = (kdkAuthenticationCode: KdkAuthenticationCode): FactorKey<'knowledge'> =>
  kdf(kdkAuthenticationCode, 'auth/knowledge')

/** The initial KEY_AUTHENTICATION_CODE_BIOMETRY, 32 bytes. */
export const deriveBiometryKey = (kdkAuthenticationCode: KdkAuthenticationCode): FactorKey<'biometry'> =>
  kdf(kdkAuthenticationCode, 'auth/biometry')

/** Derives KDK_VAULT. */
export const deriveKdkVault = (keyActivationSecret: ActivationKdk): KdkVault => importKdfKey(kdf(keyActivationSecret, 'vault'))

/** Derives KDK_UTILITY. */
export const deriveKdkUtility = (keyActivationSecret: ActivationKdk): KdkUtility => importKdfKey(kdf(keyActivationSecret, 'util'))

/** KEY_MAC_GET_APP_TEMP_KEY from the decoded application secret (16 bytes), 32 bytes. */
export const deriveKeyMacGetAppTempKey = (applicationSecret: Uint8Array): Uint8Array =>
  kdf(importKdfKey(applicationSecret), 'util/mac/get-app-temp-key')

/** The stored secret of a new activation: KEY_ACTIVATION_SECRET (32 bytes) with its initial factor keys (v4 §8.5, step 4). */
export function createInitialActivationSecret(keyActivationSecret: KeyActivationSecret): Uint8Array {
  const kdkAuthenticationCode = deriveKdkAuthenticationCode(importKdfKey(keyActivationSecret))
  return createActivationSecret({
    keyActivationSecret,
    knowledge: { current: deriveKnowledgeKey(kdkAuthenticationCode) },
    biometry: { current: deriveBiometryKey(kdkAuthenticationCode) },
  })
}

/** Keys that vault/unlock hands out, by the identifiers of requests (v4 §9.10). */
export const VAULT_KEYS = {
  KEK_DEVICE_PRIVATE: 'vault/kek-device-private',
  KDK_APP_VAULT_KNOWLEDGE: 'vault/kdk-app-vault-knowledge',
  KDK_APP_VAULT_2FA: 'vault/kdk-app-vault-2fa',
} as const
export type VaultKeyIdentifier = keyof typeof VAULT_KEYS

/** The vault key with an identifier, 32 bytes (v4 §9.10). */
export const deriveVaultKey = (keys: ActivationKeys, identifier: VaultKeyIdentifier): Uint8Array =>
  kdf(keys.kdkVault(), VAULT_KEYS[identifier])

/** next(CTR_DATA) = SHA3-256(CTR_DATA), 32 bytes (v4 §7.2). */
export const advanceCounter = (ctrData: Uint8Array): Uint8Array => sha3(ctrData)

/** Imports a parent key, from which keys of 32 bytes are derived (v4 §1.3). */
export const importKdfKey = createKmac('PA4KDF')

/** KDF: KMAC over label and diversifier, both with their length; a missing diversifier is an empty one (v4 §1.3). */
export const kdf = (key: KdfKey, label: string, diversifier?: Uint8Array): Uint8Array =>
  key.compute(concatWithSizes(utf8(label), diversifier))

/** Imports a factor key of authentication codes (v4 §7.3). */
export const importCodeKey = createKmac('PA4CODE')

/** Imports KEY_E2EE_SHARED_INFO2 (v4 §5.4). */
export const importSharedInfo2Key = createKmac('PA4SH2')

const importCtrDataKey = createKmac('PA4MAC-CTR')
const importStatusKey = createKmac('PA4MAC-STATUS')
const importPersonalizedDataKey = createKmac('PA4MAC-QR')

const importCodeKeys = <F extends ReplaceableFactor>({ current, next }: FactorKeys<F>): readonly Named<KmacKey, F>[] =>
  [current, next].filter((key) => key !== undefined).map(importCodeKey)

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
