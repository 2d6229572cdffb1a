// Defines the parts of a phone of protocol 4.0: its settings, its memory, and the options of a request.
import { NO_BODY } from '../http.ts'
import { b64 } from '../v3/crypto.ts'
import type { PhoneToken } from '../v3/state.ts'
import type { Dialect } from '../header.ts'
import { newSigningPair, type PhoneAlgorithm, type PhonePair, type PhoneV4Keys, type V4PublicKeys } from './crypto.ts'
import type { V4TemporaryKey } from './envelope.ts'

/** The values that are compiled into an app (v4 §3.3). */
export interface V4AppConfiguration {
  readonly applicationKey: string
  /** Base64. */
  readonly applicationSecret: string
  /** Public master keys: points of P-256 and P-384, SubjectPublicKeyInfo of ML-DSA. */
  readonly p256?: Uint8Array
  readonly p384: Uint8Array
  readonly mlDsa65?: Uint8Array
  readonly mlDsa87?: Uint8Array
}

export interface V4PhoneOptions {
  readonly url: string
  readonly app: V4AppConfiguration
  readonly algorithm: PhoneAlgorithm
  /** Header names; the SDKs in the field use PowerAuth. */
  readonly dialect?: Dialect
  /** Scheme word of header values; the dialect's own when absent. */
  readonly scheme?: string
}

/** The phone's memory. Every code moves its counter. */
export interface V4PhoneState {
  activationId: string
  serverKeys: V4PublicKeys
  /** 32 bytes. */
  ctrData: Uint8Array
  /** The number of codes that the phone has made, those before an upgrade from 3.3 included. */
  counter: number
  /** The keys; undefined before the activation. */
  keys: PhoneV4Keys | undefined
  readonly device: PhonePair
  readonly tokens: PhoneToken[]
}

/** The settings and the memory of a phone, for the functions that work on it. */
export interface V4PhoneContext {
  readonly options: V4PhoneOptions
  readonly state: V4PhoneState
}

export interface V4EnvelopeOptions {
  /** Milliseconds; the server's time when absent. */
  readonly timestamp?: number
  /** A fresh one when absent. */
  readonly temporaryKey?: V4TemporaryKey
  /** 24 bytes; fresh ones when absent. */
  readonly nonce?: Uint8Array
  /** Changes the envelope before it is signed. */
  readonly alterEnvelope?: (envelope: Record<string, string | number>) => unknown
}

/** Plaintext of an encrypted request in place of the usual one. */
export interface V4PlaintextOption {
  readonly plaintext?: string | Uint8Array
}

/** State of a phone that was never activated. */
export const newV4State = (algorithm: PhoneAlgorithm): V4PhoneState => ({
  activationId: '',
  serverKeys: { ecdsa: NO_BODY },
  ctrData: NO_BODY,
  counter: 0,
  keys: undefined,
  device: newSigningPair(algorithm),
  tokens: [],
})

/** Keys of the activation; throws when there is none. */
export function v4KeysOf({ keys }: V4PhoneState): PhoneV4Keys {
  if (!keys) throw new Error('the phone is not activated')
  return keys
}

/** Reads `mobileSdkConfig` (v4 §3.3); throws when it has another form. */
export function readSdkConfiguration(text: string): V4AppConfiguration {
  const bytes = Buffer.from(text, 'base64')
  let position = 0
  const take = (length: number): Buffer => {
    position += length
    if (position > bytes.length) throw new Error('the configuration is cut off')
    return bytes.subarray(position - length, position)
  }
  const count = (): number => {
    const first = take(1).readUInt8(0)
    if (first < 0x80) return first
    const size = first < 0xc0 ? 2 : 4
    const rest = take(size - 1)
    return Buffer.concat([Buffer.of(first & (size === 2 ? 0x7f : 0x3f)), rest]).readUIntBE(0, size)
  }
  const data = (): Uint8Array => take(count())
  if (take(1)[0] !== 1) throw new Error('the configuration has another version')
  const [applicationKey, applicationSecret] = [b64(data()), b64(data())]
  const keys = new Map(Array.from({ length: count() }, () => [take(1).readUInt8(0), data()] as const))
  const [p256, p384, mlDsa65, mlDsa87] = [keys.get(1), keys.get(2), keys.get(3), keys.get(4)]
  if (position !== bytes.length || !p384) throw new Error('the configuration has no P-384 key, or more than it says')
  return {
    applicationKey,
    applicationSecret,
    p384,
    ...(p256 && { p256 }),
    ...(mlDsa65 && { mlDsa65 }),
    ...(mlDsa87 && { mlDsa87 }),
  }
}
