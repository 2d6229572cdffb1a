// Defines the parts of a phone: its settings, its memory, and the requests that it prepares.
import type { HttpReply, HttpRequest } from '../http.ts'
import { NO_BODY } from '../http.ts'
import type { PhoneKeyPair, PhoneKeys, PhoneVersion } from './crypto.ts'
import { newKeyPair, textOf } from './crypto.ts'
import type { EnvelopeJson, TemporaryKey } from './envelope.ts'
import type { Dialect } from '../header.ts'

/** The three values compiled into an app. */
export interface AppConfiguration {
  readonly applicationKey: string
  readonly applicationSecret: string
  /** 65 bytes. */
  readonly masterPublicKey: Uint8Array
}

export interface PhoneOptions {
  readonly url: string
  readonly app: AppConfiguration
  readonly version: PhoneVersion
  /** Header names; the SDKs in the field use PowerAuth. */
  readonly dialect?: Dialect
  /** Scheme word of header values; the dialect's own when absent. */
  readonly scheme?: string
  /** Form of ephemeral and device keys; mobile SDKs send the compressed one. */
  readonly compressed?: boolean
}

export type PhoneFactors =
  | 'possession'
  | 'knowledge'
  | 'biometry'
  | 'possession_knowledge'
  | 'possession_biometry'
  | 'possession_knowledge_biometry'

export type PhoneScope = 'application' | 'activation'

export interface PhoneToken {
  readonly id: string
  /** 16 bytes in 3.x, 32 bytes in 4.0. */
  readonly secret: Uint8Array
  readonly factors: PhoneFactors
}

/** The phone's memory. Every signature moves its counter. */
export interface PhoneState {
  activationId: string
  /** 65 bytes. */
  serverPublicKey: Uint8Array
  /** 16 bytes. */
  ctrData: Uint8Array
  /** The number of codes that the phone has made; an upgrade to 4.0 takes it over. */
  counter: number
  /** The keys; undefined before the activation. */
  keys: PhoneKeys | undefined
  readonly device: PhoneKeyPair
  readonly tokens: PhoneToken[]
}

/** The settings and the memory of a phone, for the functions that work on it. */
export interface PhoneContext {
  readonly options: PhoneOptions
  readonly state: PhoneState
}

/** A request ready to be sent; `open` reads the answer and throws when it is a refusal or not well-formed. */
export interface Prepared<T> extends HttpRequest {
  readonly open: (reply: HttpReply) => T
}

export interface EnvelopeOptions {
  /** Milliseconds; the server's time when absent. */
  readonly timestamp?: number
  /** A fresh one when absent. */
  readonly temporaryKey?: TemporaryKey | undefined
  /** A key to seal for, in place of the server's key. */
  readonly publicKey?: Uint8Array
  /** Changes the envelope before it is signed. */
  readonly alterEnvelope?: (envelope: EnvelopeJson) => unknown
}

/** Plaintext of an encrypted request in place of the usual one. */
export interface PlaintextOption {
  readonly plaintext?: string
}

export interface SignOptions {
  /** POSSESSION and KNOWLEDGE when absent. */
  readonly factors?: PhoneFactors
  /** Keys to sign with, in place of the phone's own keys. */
  readonly wrongKeys?: Partial<Record<'possession' | 'knowledge' | 'biometry', Uint8Array>>
}

/** State of a phone that was never activated. */
export const newState = (): PhoneState => ({
  activationId: '',
  serverPublicKey: NO_BODY,
  ctrData: NO_BODY,
  counter: 0,
  keys: undefined,
  device: newKeyPair(),
  tokens: [],
})

/** Keys of the activation; throws when there is none. */
export function keysOf(state: PhoneState): PhoneKeys {
  if (!state.keys) throw new Error('the phone is not activated')
  return state.keys
}

/** The JSON of an accepted answer; throws with the refusal otherwise. */
export function accepted(reply: HttpReply): unknown {
  if (reply.status !== 200) throw new Error(`HTTP ${reply.status} ${reply.text}`)
  return reply.json
}

/** A JSON object in UTF-8 bytes. */
export const parseObject = (plaintext: Uint8Array): Record<string, unknown> =>
  JSON.parse(textOf(plaintext)) as Record<string, unknown>
