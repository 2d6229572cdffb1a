// Every key an activation has, and the functions they are derived with (v3 §2.2, §3.2).
import type { KeyObject } from 'node:crypto'
import { aesCbcEncrypt, aesEncryptBlock } from '../../crypto/aes.ts'
import { ecdh } from '../../crypto/ecdh.ts'
import { sha256 } from '../../crypto/hash.ts'
import { hmac, importHmacKey } from '../../crypto/hmac.ts'
import { generateKeyPair, importPrivateKey, publicKeyFromPoint } from '../../crypto/key.ts'
import type { Named } from '../../lib/named.ts'
import type { Algorithm, DecoyKeys, SigningKeys } from '../protocol.ts'

/** Keys of one activation (v3 §3.2). */
export interface ActivationKeys {
  /** HMAC keys, 16 bytes each. */
  readonly possession: Named<KeyObject, 'possession'>
  readonly knowledge: Named<KeyObject, 'knowledge'>
  readonly biometry: Named<KeyObject, 'biometry'>
  readonly keyTransport: KeyTransport
  readonly keyTransportIv: KeyTransportIv
  readonly keyTransportCtr: KeyTransportCtr
  readonly keyEncryptionVault: Named<Uint8Array, 'KEY_ENCRYPTION_VAULT'>
}

/** 16 bytes each. */
export type KeyTransport = Named<Uint8Array, 'KEY_TRANSPORT'>
export type KeyTransportIv = Named<Uint8Array, 'KEY_TRANSPORT_IV'>
export type KeyTransportCtr = Named<Uint8Array, 'KEY_TRANSPORT_CTR'>
/** 16 bytes. */
export type KeyMasterSecret = Named<Uint8Array, 'KEY_MASTER_SECRET'>

/** KEY_MASTER_SECRET = DH16(KEY_SERVER_PRIVATE, KEY_DEVICE_PUBLIC), 16 bytes; undefined for an invalid point (v3 §3.2). */
export function agreeMasterSecret(serverPrivateKey: KeyObject, devicePublicKey: Uint8Array): KeyMasterSecret | undefined {
  const publicKey = publicKeyFromPoint('P-256', devicePublicKey)
  return publicKey && reduce(ecdh(serverPrivateKey, publicKey))
}

/** The keys of an activation from KEY_MASTER_SECRET (16 bytes), in the order of v3 §3.2. */
export function deriveActivationKeys(keyMasterSecret: KeyMasterSecret): ActivationKeys {
  const keyTransport = kdf(keyMasterSecret, 1000)
  return {
    possession: importHmacKey(kdf(keyMasterSecret, 1)),
    knowledge: importHmacKey(kdf(keyMasterSecret, 2)),
    biometry: importHmacKey(kdf(keyMasterSecret, 3)),
    keyTransport,
    keyEncryptionVault: kdf(keyMasterSecret, 2000),
    keyTransportIv: kdf(keyTransport, 3000),
    keyTransportCtr: kdf(keyTransport, 4000),
  }
}

/** Keys that open nothing and verify nothing. */
export const createDecoyKeys = (randomBytes: (length: number) => Uint8Array): DecoyKeys<ActivationKeys> => ({
  activationKeys: deriveActivationKeys(randomBytes(16)),
  envelopeKey: generateKeyPair('P-256').privateKey,
})

/** A temporary private key as it was stored, PKCS#8: a SEQUENCE, longer than a bare secret. Undefined for anything else. */
export const importEnvelopeKey = (stored: Uint8Array): KeyObject | undefined =>
  stored[0] === 0x30 && stored.length > 32 ? importPrivateKey(stored) : undefined

/** KEY_SERVER_PRIVATE as it was stored, PKCS#8. */
export const importSigningKeys = (_algorithm: Algorithm, stored: Uint8Array): SigningKeys => ({ ecdsa: importPrivateKey(stored) })

/**
 * AES-CBC(KEY_TRANSPORT, zero IV, KEY_ENCRYPTION_VAULT), 32 bytes (v3 §12). The IV is fixed because KEY_TRANSPORT encrypts
 * this one plaintext only, apart from the status blob, whose first block differs by its magic value.
 */
export const encryptVaultKey = (keys: ActivationKeys): Uint8Array =>
  aesCbcEncrypt(keys.keyTransport, ZERO_IV, keys.keyEncryptionVault)

/** next(c) = reduce(H(c)), 16 bytes (v3 §9.1). */
export const advanceCounter = (ctrData: Uint8Array): Uint8Array => reduce(sha256(ctrData))

/** KDF: one AES block of eight zero bytes and u64(index) under `key` (16 bytes); 16 bytes (v3 §2.2). */
export function kdf(key: Uint8Array, index: number | bigint): Uint8Array {
  const block = Buffer.alloc(16)
  block.writeBigUInt64BE(BigInt(index), 8)
  return aesEncryptBlock(key, block)
}

/** KDF_INTERNAL = reduce(HMAC(key, data)), 16 bytes (v3 §2.2). */
export const kdfInternal = (key: Uint8Array, data: Uint8Array): Uint8Array => reduce(hmac(key, data))

/** XOR of the halves of 32 bytes, 16 bytes (v3 §2.1). */
export function reduce(bytes: Uint8Array): Uint8Array {
  const half = Buffer.allocUnsafe(16)
  for (let i = 0; i < 16; i += 1) half[i] = (bytes[i] ?? 0) ^ (bytes[i + 16] ?? 0)
  return half
}

const ZERO_IV = new Uint8Array(16)
