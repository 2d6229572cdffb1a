// Implements the phone's half of ECIES: seals a request and opens the answer to it (v3 §6).
import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto'
import type { PhoneKeyPair, PhoneVersion } from './crypto.ts'
import {
  b64,
  bigEndian,
  bytesOf,
  dh32,
  hasNonce,
  hasTemporaryKeys,
  hasTimestamp,
  hmac,
  join,
  kdfInternal,
  newKeyPair,
  random,
  sha256,
  sized,
  unb64,
  x963,
} from './crypto.ts'

/** A key of the server to encrypt for, as keystore/create returns it (v3 §7.2). */
export interface TemporaryKey {
  readonly id: string
  readonly publicKey: Uint8Array
  /** Milliseconds. */
  readonly expiresAt: number
}

export interface EnvelopeContext {
  readonly version: PhoneVersion
  readonly label: string
  readonly applicationKey: string
  readonly applicationSecret: string
  /** Both present in activation scope, both absent in application scope. */
  readonly activationId?: string | undefined
  readonly keyTransport?: Uint8Array | undefined
  /** The server's public key: a master, activation or temporary key, depending on version and scope. */
  readonly publicKey: Uint8Array
  readonly temporaryKeyId?: string | undefined
}

export interface SealInput {
  /** Milliseconds since 1970; ignored in versions without a timestamp. */
  readonly timestamp: number
  readonly compressed: boolean
  readonly ephemeral?: PhoneKeyPair
  readonly nonce?: Uint8Array
}

export type EnvelopeJson = Record<string, string | number>

export interface SealedRequest {
  readonly envelope: EnvelopeJson
  /** Opens the answer; throws when its members, MAC or padding are wrong. */
  readonly open: (answer: unknown) => Uint8Array
}

export function sealEnvelope(context: EnvelopeContext, plaintext: Uint8Array, input: SealInput): SealedRequest {
  const ephemeral = input.ephemeral ?? newKeyPair()
  const ephemeralPublicKey = input.compressed ? ephemeral.compressed : ephemeral.uncompressed
  const nonce = input.nonce ?? random(16)
  const keys = deriveEnvelopeKeys(context, dh32(ephemeral.privateKey, context.publicKey), ephemeralPublicKey)
  const cipher = createCipheriv('aes-128-cbc', keys.encryption, initializationVector(context.version, keys.iv, nonce))
  const encryptedData = join(cipher.update(plaintext), cipher.final())
  const mac = hmac(keys.mac, join(encryptedData, sharedInfo2(context, nonce, input.timestamp, ephemeralPublicKey)))
  const envelope: EnvelopeJson = {
    ...(hasTemporaryKeys(context.version) && { temporaryKeyId: context.temporaryKeyId ?? '' }),
    ephemeralPublicKey: b64(ephemeralPublicKey),
    encryptedData: b64(encryptedData),
    mac: b64(mac),
    ...(hasNonce(context.version) && { nonce: b64(nonce) }),
    ...(hasTimestamp(context.version) && { timestamp: input.timestamp }),
  }
  return { envelope, open: (answer) => openAnswer(context, keys, nonce, answer) }
}

interface EnvelopeKeys {
  readonly encryption: Uint8Array
  readonly mac: Uint8Array
  readonly iv: Uint8Array
}

function deriveEnvelopeKeys(context: EnvelopeContext, secret: Uint8Array, ephemeralPublicKey: Uint8Array): EnvelopeKeys {
  const sharedInfo1 = bytesOf(hasTimestamp(context.version) ? context.version + context.label : context.label)
  const derived = x963(secret, join(sharedInfo1, ephemeralPublicKey), 48)
  return { encryption: derived.subarray(0, 16), mac: derived.subarray(16, 32), iv: derived.subarray(32) }
}

const initializationVector = (version: PhoneVersion, keyIv: Uint8Array, nonce: Uint8Array): Uint8Array =>
  hasNonce(version) ? kdfInternal(keyIv, nonce) : new Uint8Array(16)

/** sharedInfo2 of a request, or of an answer when there is no ephemeral key (v3 §6.3). */
function sharedInfo2(context: EnvelopeContext, nonce: Uint8Array, timestamp: number, ephemeral: Uint8Array | null): Uint8Array {
  const { version, applicationKey, activationId, temporaryKeyId } = context
  const secret = bytesOf(context.applicationSecret)
  const base = context.keyTransport ? hmac(context.keyTransport, secret) : sha256(secret)
  if (!hasTimestamp(version)) return base
  const texts = [version, applicationKey, activationId, hasTemporaryKeys(version) ? temporaryKeyId : undefined]
  const associatedData = sized(...texts.filter((text) => text !== undefined).map(bytesOf))
  return sized(base, nonce, bigEndian(timestamp, 8), ephemeral, associatedData)
}

function openAnswer(context: EnvelopeContext, keys: EnvelopeKeys, requestNonce: Uint8Array, answer: unknown): Uint8Array {
  const { encryptedData, mac, nonce, timestamp, ...rest } = answer as Partial<EnvelopeJson>
  const stamped = hasTimestamp(context.version)
  if (typeof encryptedData !== 'string' || typeof mac !== 'string') throw new Error('the answer is not an envelope')
  if (Object.keys(rest).length > 0) throw new Error(`undefined members in the answer: ${Object.keys(rest).join(', ')}`)
  if (stamped !== (typeof nonce === 'string') || stamped !== Number.isInteger(timestamp)) {
    throw new Error('nonce and timestamp of the answer do not fit the version')
  }
  if (stamped && nonce === b64(requestNonce)) throw new Error('the answer reuses the nonce of the request')
  const answerNonce = stamped ? unb64(String(nonce)) : requestNonce
  const data = unb64(encryptedData)
  const expected = hmac(keys.mac, join(data, sharedInfo2(context, answerNonce, Number(timestamp ?? 0), null)))
  const received = unb64(mac)
  if (received.length !== 32 || !timingSafeEqual(expected, received)) throw new Error('the MAC of the answer is wrong')
  const decipher = createDecipheriv('aes-128-cbc', keys.encryption, initializationVector(context.version, keys.iv, answerNonce))
  return join(decipher.update(data), decipher.final())
}
