// The interface between pawl and a generation of the device protocol. Code outside src/protocol holds a Protocol and never asks which one it
// is. Only the versions.ts of a generation compares version text.
import type { KeyObject } from 'node:crypto'

/** Who an encrypted request is bound to: every installation of the app, or one activation (v3 §6, v4 §5). */
export type Scope = 'APPLICATION_SCOPE' | 'ACTIVATION_SCOPE'

/** Factor combinations as headers name them (v3 §10.2). No endpoint allows the last one, nor KNOWLEDGE or BIOMETRY alone. */
export const FACTOR_COMBINATIONS = [
  'POSSESSION',
  'KNOWLEDGE',
  'BIOMETRY',
  'POSSESSION_KNOWLEDGE',
  'POSSESSION_BIOMETRY',
  'POSSESSION_KNOWLEDGE_BIOMETRY',
] as const
export type Factors = (typeof FACTOR_COMBINATIONS)[number]

/** A parsed authorization header (v3 §5.2). */
export interface AuthorizationHeader {
  readonly version: string
  readonly activationId: string
  /** Base64 text as sent: it enters associated data. */
  readonly applicationKey: string
  /** 16 bytes in v3. */
  readonly nonce: Uint8Array
  readonly factors: Factors
  /** The authentication code as sent: decimal groups, or Base64. */
  readonly code: string
}

/** A parsed token header (v3 §5.2). */
export interface TokenHeader {
  readonly version: string
  readonly tokenId: string
  /** 32 bytes. */
  readonly digest: Uint8Array
  /** 16 bytes in v3. */
  readonly nonce: Uint8Array
  /** Milliseconds since 1970-01-01 UTC. */
  readonly timestamp: number
}

/** A parsed encryption header (v3 §5.2). */
export interface EncryptionHeader {
  readonly version: string
  readonly applicationKey: string
  readonly activationId: string | undefined
}

/** Where an envelope belongs: the values of the header and the endpoint that enter its derivations (v3 §5.3). */
export interface EnvelopeContext {
  readonly version: string
  readonly scope: Scope
  /** The label of the endpoint without version, for example /pa/token/create (v3 §6.1). */
  readonly sharedInfo1: string
  readonly applicationKey: string
  /** Present in activation scope. */
  readonly activationId: string | undefined
}

/**
 * Keys of one activation that codes, envelopes and status need; derived once and cached by the caller. Only the generation that
 * derived them looks inside.
 */
export type ActivationKeys = object

/**
 * A key that opens envelopes. v3: a P-256 private key, master, server or temporary as the version demands (v3 §6, table). v4: the secret
 * KEY_TEMPORARY_SHARED_SECRET (v4 §5.5). Only its generation looks inside.
 */
export type EnvelopeKey = object

/** What the server needs to open an envelope. */
interface EnvelopeKeys<Keys extends ActivationKeys = ActivationKeys, Key extends EnvelopeKey = EnvelopeKey> {
  /** Base64 text (v3 §3.1). */
  readonly applicationSecret: string
  readonly envelopeKey: Key
  /** Activation scope only. */
  readonly activationKeys: Keys | undefined
}

/** A well-formed request envelope, not yet opened. */
export interface Envelope<Keys extends ActivationKeys = ActivationKeys, Key extends EnvelopeKey = EnvelopeKey> {
  /** Present where the version demands a temporary key. */
  readonly temporaryKeyId: string | undefined
  /** Milliseconds; present where the version has replay protection. */
  readonly timestamp: number | undefined
  /**
   * The value that may be used once: ephemeral key and nonce (v3 §14), key id and nonce (v4 §5.6). Undefined where the version has
   * no replay protection.
   */
  readonly uniqueValue: Uint8Array | undefined
  /**
   * What its keys depend on beside those of pawl: the ephemeral key. Undefined without replay protection, and in v4, where the unique value is
   * all of it.
   */
  readonly keyValue: Uint8Array | undefined
  /**
   * What no other envelope has: key id or ephemeral key, nonce, and MAC or tag, each with its length in front. Unlike the unique value every
   * version has it.
   */
  readonly identity: Uint8Array
  /** Checks the MAC in constant time, then decrypts. Undefined when the MAC or the padding is wrong. */
  // What takes keys, here and below, is a method: its keys must be of the generation that made them, which callers that only pass keys on
  // cannot say in their type.
  open(keys: EnvelopeKeys<Keys, Key>): OpenedEnvelope | undefined
}

/** An opened request envelope; one key serves the request and its answer (v3 §6.4, v4 §5.5). */
export interface OpenedEnvelope {
  readonly plaintext: Uint8Array
  /** The answer's envelope as a JSON value. `nonce`: 16 fresh bytes, of use in v3 only; `timestamp`: server time in ms. */
  readonly seal: SealAnswer
  /** What `seal` needs, as bytes, for an answer that is sealed later. Whoever has them opens the request and its answer, and nothing else. */
  readonly exportAnswerKeys: () => Uint8Array
}

export type SealAnswer = (
  plaintext: Uint8Array,
  answer: { readonly nonce: Uint8Array; readonly timestamp: number },
) => Record<string, string | number>

/** What the code of a request covers (v3 §10.1). */
export interface SignedRequest {
  /** Upper case. */
  readonly method: string
  readonly resourceId: string
  /** The nonce of the authorization header. */
  readonly nonce: Uint8Array
  /** Raw body, decrypted body, or canonical query, as the endpoint's order says (v3 §5.4, §10.4). */
  readonly body: Uint8Array
  /** Base64 text, or the literal `offline` (v3 §15.2). */
  readonly applicationSecret: string
}

/** What changes when a code matched (v3 §9.1, v4 §7.4). */
export interface CounterMove {
  /** i + 1 when the i-th value matched: what the numeric counter gains. */
  readonly steps: number
  /** The value after the one that matched: 16 bytes in v3, 32 in v4. */
  readonly ctrData: Uint8Array
  /**
   * The secret of the activation as it is to be stored from now on, when the match settled which of two factor keys is good
   * (v4 §7.5); absent when it stays.
   */
  readonly activationSecret?: Uint8Array
}

/** What a code was found to be. */
export interface CodeMatch<Move extends CounterMove = CounterMove> {
  /** What changes when it is accepted; undefined for a wrong code. */
  readonly move: Move | undefined
  /** Its first component is right at a counter value that was tried: the holder of the possession key made it (v3 §10.5). */
  readonly isPossessionRight: boolean
}

/** A code to verify. */
export interface CodeToVerify {
  readonly version: string
  readonly factors: Factors
  readonly code: string
}

/** What a code of an HTTP request may cover. */
export interface CoveredRequest {
  /** Upper case. */
  readonly method: string
  /** Raw bytes, empty when there is no body. */
  readonly body: Uint8Array
  /** Raw query string without its question mark. */
  readonly query: string | undefined
}

/** Names of key agreements: EC_P256 is version 3, the others version 4 (v4 §2.1). */
export type Algorithm = 'EC_P256' | 'EC_P384' | 'EC_P384_ML_L3' | 'EC_P384_ML_L5'

/** How a device key signs, by its name in a JWS (RFC 7518 §3.1, v4 §4.3). */
export type SignatureAlgorithm = 'ES256' | 'ES384' | 'ML-DSA-65' | 'ML-DSA-87'

/** A public key of a phone, made for one activation (v3 §8.3, v4 §3.2). */
export interface DeviceKey {
  readonly algorithm: SignatureAlgorithm
  readonly key: KeyObject
}

/** Private keys that sign for an application or an activation. */
export interface SigningKeys {
  /** P-256 in v3, P-384 in v4. */
  readonly ecdsa: KeyObject
  /** ML-DSA-65 or ML-DSA-87, as the algorithm demands; only in the hybrid algorithms of v4 (v4 §3.2). */
  readonly mldsa?: KeyObject
}

/** Claims of a temporary key request (v3 §7.1, v4 §4.1), its MAC not yet checked. */
export interface TemporaryKeyRequest<Keys extends ActivationKeys = ActivationKeys> {
  readonly applicationKey: string
  readonly activationId: string | undefined
  readonly challenge: string
  /** What the request wants; it must be allowed for the application and be the one of the activation (v4 §4.2). */
  readonly algorithm: Algorithm
  /** Seconds since 1970-01-01 UTC; absent where the protocol knows no end of a request (v3 §7.1), or the request names none. */
  readonly expiresAt?: number | undefined
  /** Checks the MAC in constant time. `activationKeys` in activation scope. */
  verify(applicationSecret: string, activationKeys: Keys | undefined): boolean
  /** Makes the key and its answer, to be called for a genuine request only. Undefined when the client's keys are not valid. */
  readonly issue: (terms: TemporaryKeyTerms, signingKeys: SigningKeys) => Promise<TemporaryKey | undefined>
}

/** What a temporary key is issued under. */
export interface TemporaryKeyTerms {
  readonly temporaryKeyId: string
  /** Milliseconds. */
  readonly issuedAt: number
  readonly expiresAt: number
  /** 32 fresh bytes, the salt of the shared secret (v4 §2.4). */
  readonly salt: Uint8Array
}

/** A temporary key (v3 §7, v4 §4). */
interface TemporaryKey {
  /** To be stored sealed; importEnvelopeKey reads it. */
  readonly envelopeKey: Uint8Array
  /** What the client gets: a compact JWS in v3, a JSON document in v4. */
  readonly jwt: string
}

/** Keys that open nothing and verify nothing. */
export interface DecoyKeys<Keys extends ActivationKeys = ActivationKeys> {
  readonly activationKeys: Keys
  readonly envelopeKey: EnvelopeKey
}

/** What the QR code of an offline approval shows and carries (v3 §15.1). */
export interface PersonalizedPayload {
  /** Lines of the operation, joined by line feeds. */
  readonly data: string
  /** Only with proximity check. */
  readonly totp?: string
  /** Base64 of 16 bytes. */
  readonly nonceBase64: string
}

/** What an offline one-time password covers, and how it may have been made (v3 §15.2). */
export interface OfflineOtp {
  /** Groups of decimal digits joined by `-`, normalised. */
  readonly otp: string
  readonly resourceId: string
  /** Without the one-time password of a proximity check. */
  readonly body: Uint8Array
  /** Base64 text as in the payload. */
  readonly nonceBase64: string
  /** Digits of a component, 4 to 8. */
  readonly componentLength: number
  /** By the bank and, in v4, by the activation, whose keys alone do not tell that biometry is off (v4 §11.1). */
  readonly isBiometryAllowed: boolean
  /** Candidates of the proximity check; undefined without it. An empty list matches nothing. */
  readonly totps: readonly string[] | undefined
}

/** Where an offline one-time password matched. */
export interface OfflineMatch extends CounterMove {
  readonly factors: Factors
  readonly signedData: Uint8Array
}

/** What the rest of pawl needs of a generation of the protocol, whichever it is. What only one has is imported from its folder. */
export interface Protocol<Keys extends ActivationKeys = ActivationKeys> {
  /** Path element: /pa/v3, /pa/v4. */
  readonly path: 'v3' | 'v4'
  /** What an activation of this generation records as its version. */
  readonly activationVersion: number
  /** Bytes of the hash-based counter: 16 (v3 §9.1), 32 (v4 §7.2). */
  readonly ctrDataLength: number
  /** Bytes of the secret of a new token: 16 (v3 §11.1), 32 (v4 §9.9). */
  readonly tokenSecretLength: number
  readonly parseAuthorizationHeader: (value: string, schemes: readonly string[]) => AuthorizationHeader | undefined
  readonly parseTokenHeader: (value: string, schemes: readonly string[]) => TokenHeader | undefined
  readonly parseEncryptionHeader: (value: string, schemes: readonly string[]) => EncryptionHeader | undefined
  /** Undefined when a member is missing, malformed, or not defined by the version (v3 §6.5, v4 §5.2). */
  parseEnvelope(context: EnvelopeContext, json: unknown): Envelope<Keys> | undefined
  /** The `seal` of an envelope that was opened before, of the bytes that it exported. */
  readonly importAnswerKeys: (exported: Uint8Array) => SealAnswer
  /** The key that opens envelopes, as it was stored; undefined for bytes of another generation, because a request may name such a key. */
  readonly importEnvelopeKey: (stored: Uint8Array) => EnvelopeKey | undefined
  /**
   * Private keys of an activation as they were stored; throws when the bytes are not such keys, because they come from our own storage
   * only.
   */
  importSigningKeys(algorithm: Algorithm, stored: Uint8Array): SigningKeys
  /** What a code may cover, in the order to try: the body, or the query, decoded, sorted and encoded again (v3 §10.4, v4 §7.1). */
  readonly coveredBodies: (request: CoveredRequest) => readonly Uint8Array[]
  /** The bytes a code covers, up to and including the application secret (v3 §10.1, v4 §7.1). */
  readonly signedData: (request: SignedRequest) => Uint8Array
  /**
   * Tries `lookAhead` counter values; a code of the wrong form matches none, not even in part (v3 §9.1, v4 §7.4). Whether biometry is on
   * for the activation is asked before (v4 §7.4, step 5).
   */
  verifyAuthenticationCode(
    keys: Keys,
    ctrData: Uint8Array,
    signedData: Uint8Array,
    code: CodeToVerify,
    lookAhead: number,
  ): CodeMatch
  /** The counter value after one (v3 §9.1, v4 §7.2). */
  readonly advanceCounter: (ctrData: Uint8Array) => Uint8Array
  readonly verifyTokenDigest: (tokenSecret: Uint8Array, header: TokenHeader) => boolean
  /** Version has replay protection and the short time window for tokens (v3 §14: 3.2 and newer). */
  readonly hasShortTokenWindow: (version: string) => boolean
  /** From the stored secret of an activation: KEY_MASTER_SECRET (v3 §3.2), or KEY_ACTIVATION_SECRET and factor keys (v4 §3.1). */
  readonly deriveActivationKeys: (activationSecret: Uint8Array) => Keys
  /** The same in two steps, where all keys of an activation are bytes, which takes less memory to remember; undefined in 4.0, where they are not. */
  readonly activationKeyBytes:
    | { readonly derive: (activationSecret: Uint8Array) => Uint8Array; readonly parse: (bytes: Uint8Array) => Keys }
    | undefined
  readonly createDecoyKeys: (randomBytes: (length: number) => Uint8Array) => DecoyKeys<Keys>
  /** Undefined when the JWT does not parse or lacks a claim. */
  parseTemporaryKeyRequest(jwt: string): TemporaryKeyRequest<Keys> | undefined
  /** The text of the QR code for one activation, which proves itself by a key of that activation (v3 §15.1, v4 §11.2). */
  createPersonalizedPayload(
    payload: PersonalizedPayload,
    own: { readonly keys: Keys; readonly openServerKeys: () => SigningKeys },
  ): string
  /** Tries every candidate TOTP, counter value and allowed factor combination: one attempt (v3 §15.2, v4 §11.1). */
  verifyOfflineOtp(keys: Keys, ctrData: Uint8Array, otp: OfflineOtp, lookAhead: number): CodeMatch<OfflineMatch>
}

declare const name: unique symbol

/**
 * `T` under a name, in types only, for values of one shape that must not be swapped: keys, above all. What has no name, such as bytes that were read, may be taken for any; what has one is never taken for
 * another.
 */
export type Named<T, N extends string> = T & { readonly [name]?: N }
