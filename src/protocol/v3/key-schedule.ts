// Derives every key of an activation (v3 §2.2, §3.2).
import type { KeyObject } from 'node:crypto'
import { aesCbcEncrypt, aesEncryptBlocks } from '../../crypto/aes.ts'
import { ecdh, generateKeyPair, importPrivateKey, publicKeyFromPoint } from '../../crypto/key.ts'
import { hmac, sha256 } from '../../crypto/hash.ts'
import { concat } from '../../lib/bytes.ts'
import type { Algorithm, DecoyKeys, Named, SigningKeys } from '../protocol.ts'

/** Keys of one activation (v3 §3.2). */
export interface ActivationKeys {
  /** HMAC keys, 16 bytes each. */
  readonly possession: Named<Uint8Array, 'possession'>
  readonly knowledge: Named<Uint8Array, 'knowledge'>
  readonly biometry: Named<Uint8Array, 'biometry'>
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
type KeyMasterSecret = Named<Uint8Array, 'KEY_MASTER_SECRET'>

/** KEY_MASTER_SECRET = DH16(KEY_SERVER_PRIVATE, KEY_DEVICE_PUBLIC), 16 bytes; undefined for an invalid point (v3 §3.2). */
export function agreeMasterSecret(serverPrivateKey: KeyObject, devicePublicKey: Uint8Array): KeyMasterSecret | undefined {
  const publicKey = publicKeyFromPoint('P-256', devicePublicKey)
  return publicKey && reduce(ecdh(serverPrivateKey, publicKey))
}

/** The keys of an activation from KEY_MASTER_SECRET (16 bytes), in the order of v3 §3.2. */
export const deriveActivationKeys = (keyMasterSecret: KeyMasterSecret): ActivationKeys =>
  parseActivationKeys(deriveActivationKeyBytes(keyMasterSecret))

/** The same keys as 112 bytes, which parseActivationKeys reads. */
function deriveActivationKeyBytes(keyMasterSecret: KeyMasterSecret): Uint8Array {
  const keys = kdfBlocks(keyMasterSecret, [1, 2, 3, 1000, 2000])
  return concat(keys, kdfBlocks(blockOf(keys, KEY_TRANSPORT), [3000, 4000]))
}

/** The keys share memory with `bytes`. */
const parseActivationKeys = (bytes: Uint8Array): ActivationKeys => ({
  possession: blockOf(bytes, 0),
  knowledge: blockOf(bytes, 1),
  biometry: blockOf(bytes, 2),
  keyTransport: blockOf(bytes, KEY_TRANSPORT),
  keyEncryptionVault: blockOf(bytes, 4),
  keyTransportIv: blockOf(bytes, 5),
  keyTransportCtr: blockOf(bytes, 6),
})

/** Derives the keys as 112 bytes, and parses these. */
export const activationKeyBytes = { derive: deriveActivationKeyBytes, parse: parseActivationKeys }

/** Keys that open nothing and verify nothing. */
export const createDecoyKeys = (randomBytes: (length: number) => Uint8Array): DecoyKeys<ActivationKeys> => ({
  activationKeys: deriveActivationKeys(randomBytes(16)),
  envelopeKey: generateKeyPair('P-256').privateKey,
})

/** Imports a stored temporary private key, PKCS#8 in DER. Undefined for anything else; the secrets of v4 are shorter and no SEQUENCE. */
export const importEnvelopeKey = (stored: Uint8Array): KeyObject | undefined =>
  stored[0] === 0x30 && stored.length > 32 ? importPrivateKey(stored) : undefined

/** Imports the stored KEY_SERVER_PRIVATE, PKCS#8 in DER. */
export const importSigningKeys = (_algorithm: Algorithm, stored: Uint8Array): SigningKeys => ({ ecdsa: importPrivateKey(stored) })

/**
 * AES-CBC(KEY_TRANSPORT, zero IV, KEY_ENCRYPTION_VAULT), 32 bytes (v3 §12). A fixed IV is safe: KEY_TRANSPORT encrypts only this one plaintext
 * and the status blob, whose first block differs by its magic value.
 */
export const encryptVaultKey = (keys: ActivationKeys): Uint8Array =>
  aesCbcEncrypt(keys.keyTransport, ZERO_IV, keys.keyEncryptionVault)

/** next(c) = reduce(H(c)), 16 bytes (v3 §9.1). */
export const advanceCounter = (ctrData: Uint8Array): Uint8Array => reduce(sha256(ctrData))

/** KDF: one AES block of eight zero bytes and u64(index) under `key` (16 bytes); 16 bytes (v3 §2.2). */
export const kdf = (key: Uint8Array, index: number | bigint): Uint8Array => kdfBlocks(key, [index])

/** KDF for several indices by one call of AES, 16 bytes for each. One block takes 2.4 µs, five take 2.6. */
function kdfBlocks(key: Uint8Array, indices: readonly (number | bigint)[]): Uint8Array {
  const blocks = Buffer.alloc(BLOCK_LENGTH * indices.length)
  for (const [i, index] of indices.entries()) blocks.writeBigUInt64BE(BigInt(index), BLOCK_LENGTH * i + 8)
  return aesEncryptBlocks(key, blocks)
}

const blockOf = (blocks: Uint8Array, i: number): Uint8Array => blocks.subarray(BLOCK_LENGTH * i, BLOCK_LENGTH * (i + 1))

/** KDF_INTERNAL = reduce(HMAC(key, data)), 16 bytes (v3 §2.2). */
export const kdfInternal = (key: Uint8Array, data: Uint8Array): Uint8Array => reduce(hmac(key, data))

/** XOR of the halves of 32 bytes, 16 bytes (v3 §2.1). */
export function reduce(bytes: Uint8Array): Uint8Array {
  const half = Buffer.allocUnsafe(16)
  for (let i = 0; i < 16; i += 1) half[i] = (bytes[i] ?? 0) ^ (bytes[i + 16] ?? 0)
  return half
}

const BLOCK_LENGTH = 16
// The index of KEY_TRANSPORT among the keys of an activation.
const KEY_TRANSPORT = 3
const ZERO_IV = new Uint8Array(16)
