// Declares the interface between pawl and a generation of the device protocol. Code outside src/protocol holds a Protocol and never asks which one it
// is. Only the versions.ts of a generation compares version text.
import type { KeyObject } from 'node:crypto'

/** The owner of the keys of an envelope: the application, whose keys every installation of the app has, or one activation (v3 §6, v4 §5). */
export type Scope = 'APPLICATION_SCOPE' | 'ACTIVATION_SCOPE'

/** Combinations of factors, as headers name them (v3 §10.2). No endpoint allows the last one, KNOWLEDGE alone or BIOMETRY alone. */
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
  /** Base64 text as sent, because associated data cover the text. */
  readonly applicationKey: string
  /** 16 bytes. */
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
  /** 16 bytes. */
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

/** The values of header and endpoint that an envelope is bound to: they enter its derivations (v3 §5.3). */
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
 * The keys of one activation for codes, envelopes and status. The caller derives them once and caches them. Only the generation that derived
 * them looks inside.
 */
export type ActivationKeys = object

/**
 * A key that opens envelopes. In v3 it is a private key on P-256: a master, server or temporary key, as the version demands (v3 §6, table). In
 * v4 it is the secret KEY_TEMPORARY_SHARED_SECRET (v4 §5.5). Only its generation looks inside.
 */
export type EnvelopeKey = object

/** The keys with which the server opens an envelope. */
interface EnvelopeKeys<Keys extends ActivationKeys = ActivationKeys, Key extends EnvelopeKey = EnvelopeKey> {
  /** Base64 text (v3 §3.1). */
  readonly applicationSecret: string
  readonly envelopeKey: Key
  /** Present in activation scope. */
  readonly activationKeys: Keys | undefined
}

/** A well-formed request envelope, not yet opened. */
export interface Envelope<Keys extends ActivationKeys = ActivationKeys, Key extends EnvelopeKey = EnvelopeKey> {
  /** Present if the version demands a temporary key. */
  readonly temporaryKeyId: string | undefined
  /** Milliseconds; present if the version has replay protection. */
  readonly timestamp: number | undefined
  /**
   * The value that may be used only once: ephemeral key and nonce (v3 §14), or key id and nonce (v4 §5.6). Undefined if the version has no replay
   * protection.
   */
  readonly uniqueValue: Uint8Array | undefined
  /**
   * The ephemeral key. The envelope's keys depend on it and on a key of pawl. Undefined without replay protection, and in v4, where the unique value
   * contains all such values.
   */
  readonly keyValue: Uint8Array | undefined
  /**
   * Identifies this envelope among all others: key id or ephemeral key, nonce, and MAC or tag, each with its length in front. Unlike the unique
   * value, every version has it.
   */
  readonly identity: Uint8Array
  /** Checks the MAC in constant time, then decrypts. Undefined when the MAC or the padding is wrong. */
  // Functions that take keys are declared as methods, here and below. Method parameters are bivariant, so a caller may pass keys on without
  // naming the generation that made them.
  open(keys: EnvelopeKeys<Keys, Key>): OpenedEnvelope | undefined
}

/** An opened request envelope. Its key also seals the answer (v3 §6.4, v4 §5.5). */
export interface OpenedEnvelope {
  readonly plaintext: Uint8Array
  /**
   * Seals the answer, and returns its envelope as a JSON value. `nonce` has 16 fresh bytes, used only in v3; `timestamp` is the server's time
   * in milliseconds.
   */
  readonly seal: SealAnswer
  /** The keys of `seal` as bytes, for an answer that is sealed later. They open this request and its answer, and no other. */
  readonly exportAnswerKeys: () => Uint8Array
}

export type SealAnswer = (
  plaintext: Uint8Array,
  answer: { readonly nonce: Uint8Array; readonly timestamp: number },
) => Record<string, string | number>

/** The change of an activation when a code matched (v3 §9.1, v4 §7.4). */
export interface CounterMove {
  /** The number that is added to the numeric counter: i + 1 when the i-th value matched, counted from 0. */
  readonly steps: number
  /** The counter value after the one that matched: 16 bytes in v3, 32 in v4. */
  readonly ctrData: Uint8Array
  /**
   * The new stored secret of the activation, when the match has shown which of two factor keys the phone has (v4 §7.5); absent when the secret
   * stays.
   */
  readonly activationSecret?: Uint8Array
}

/** The result of comparing a code. */
export interface CodeMatch<Move extends CounterMove = CounterMove> {
  /** The change of the counter when the code is accepted; undefined for a wrong code. */
  readonly move: Move | undefined
  /** Whether the first component is right at one of the counter values tried: then a holder of the possession key made the code (v3 §10.5). */
  readonly isPossessionRight: boolean
}

/** A code to verify. */
export type CodeToVerify = Pick<AuthorizationHeader, 'version' | 'factors' | 'code'>

/** The parts of an HTTP request that a code may cover. */
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

/** Signature algorithms of device keys, by their names in a JWS (RFC 7518 §3.1, v4 §4.3). */
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
  /** The requested algorithm. It must be allowed for the application, and be that of the activation (v4 §4.2). */
  readonly algorithm: Algorithm
  /**
   * The end of the request in seconds since 1970-01-01 UTC; absent if the protocol has no such claim (v3 §7.1), or the request does not name
   * one.
   */
  readonly expiresAt?: number | undefined
  /** Checks the MAC in constant time. Pass `activationKeys` in activation scope. */
  verify(applicationSecret: string, activationKeys: Keys | undefined): boolean
  /** Makes the key and its answer. Call it only for a genuine request. Undefined when the client's keys are not valid. */
  readonly issue: (terms: TemporaryKeyTerms, signingKeys: SigningKeys) => Promise<TemporaryKey | undefined>
}

/** The terms of a new temporary key. */
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
  /** The key as bytes, to be stored sealed. importEnvelopeKey reads it. */
  readonly envelopeKey: Uint8Array
  /** The answer to the client: a compact JWS in v3, a JSON document in v4. */
  readonly jwt: string
}

/** Keys that open nothing and verify nothing. */
export interface DecoyKeys<Keys extends ActivationKeys = ActivationKeys> {
  readonly activationKeys: Keys
  readonly envelopeKey: EnvelopeKey
}

/** The contents of the QR code of an offline approval (v3 §15.1). */
export interface PersonalizedPayload {
  /** Lines of the operation, joined by line feeds. */
  readonly data: string
  /** Present only with a proximity check. */
  readonly totp?: string | undefined
  /** Base64 of 16 bytes. */
  readonly nonceBase64: string
}

/** The values that an offline one-time password covers, and the ways in which it may have been made (v3 §15.2). */
export interface OfflineOtp {
  /** Groups of decimal digits joined by `-`, normalised. */
  readonly otp: string
  readonly resourceId: string
  /** The body without the one-time password of a proximity check. */
  readonly body: Uint8Array
  /** Base64 text as in the payload. */
  readonly nonceBase64: string
  /** Digits of a component, 4 to 8. */
  readonly componentLength: number
  /** Whether the bank allows biometry. In v4 the activation must also have it switched on, which its keys alone do not show (v4 §11.1). */
  readonly isBiometryAllowed: boolean
  /** The one-time passwords that the proximity check accepts; undefined without that check. An empty list matches nothing. */
  readonly totps: readonly string[] | undefined
}

/** The counter value and the factors at which an offline one-time password matched. */
export interface OfflineMatch extends CounterMove {
  readonly factors: Factors
}

/** Reads one header value; undefined when its scheme is not one of `schemes`, or a member is missing or malformed. */
type Parse<Header> = (value: string, schemes: readonly string[]) => Header | undefined

/** The parsers of a generation. */
export interface HeaderParsers {
  readonly parseAuthorizationHeader: Parse<AuthorizationHeader>
  readonly parseTokenHeader: Parse<TokenHeader>
  /**
   * Takes an absent activation_id as well, because only the endpoint knows the scope, which decides whether it is required. A malformed one is
   * refused.
   */
  readonly parseEncryptionHeader: Parse<EncryptionHeader>
}

/** The functions and values of a generation that all other code uses. Members that only one generation has are in its own type. */
export interface Protocol<Keys extends ActivationKeys = ActivationKeys> extends HeaderParsers {
  /** The element of the path: /pa/v3, /pa/v4. */
  readonly path: 'v3' | 'v4'
  /** The version that an activation of this generation stores. */
  readonly activationVersion: number
  /** Bytes of the hash-based counter: 16 (v3 §9.1), 32 (v4 §7.2). */
  readonly ctrDataLength: number
  /** Bytes of the secret of a new token: 16 (v3 §11.1), 32 (v4 §9.9). */
  readonly tokenSecretLength: number
  /** Undefined when a member is missing, malformed, or not defined by the version (v3 §6.5, v4 §5.2). */
  parseEnvelope(context: EnvelopeContext, json: unknown): Envelope<Keys> | undefined
  /** Makes the `seal` of an envelope that was opened earlier, from the bytes of its exportAnswerKeys. */
  readonly importAnswerKeys: (exported: Uint8Array) => SealAnswer
  /** Imports a stored key that opens envelopes. Undefined for a key of the other generation, because a request may name one. */
  readonly importEnvelopeKey: (stored: Uint8Array) => EnvelopeKey | undefined
  /** Imports the stored private keys of an activation. Throws for other bytes, because they come only from pawl's own storage. */
  importSigningKeys(algorithm: Algorithm, stored: Uint8Array): SigningKeys
  /**
   * The byte strings that a code may cover, in the order to try: the body, or the query, decoded, sorted and encoded again (v3 §10.4, v4 §7.1).
   */
  readonly coveredBodies: (request: CoveredRequest) => readonly Uint8Array[]
  /**
   * Compares a code with `lookAhead` counter values. A code of the wrong form matches none, not even in part (v3 §9.1, v4 §7.4). The caller has
   * already checked that biometry is switched on (v4 §7.4, step 5).
   */
  verifyAuthenticationCode(
    keys: Keys,
    ctrData: Uint8Array,
    signedData: Uint8Array,
    code: CodeToVerify,
    lookAhead: number,
  ): CodeMatch
  /** The counter value that follows another (v3 §9.1, v4 §7.2). */
  readonly advanceCounter: (ctrData: Uint8Array) => Uint8Array
  readonly verifyTokenDigest: (tokenSecret: Uint8Array, header: TokenHeader) => boolean
  /** Whether a version has replay protection, and so the short time window for tokens (v3 §14: 3.2 and newer). */
  readonly hasShortTokenWindow: (version: string) => boolean
  /**
   * Derives the keys from the stored secret of an activation: KEY_MASTER_SECRET (v3 §3.2), or KEY_ACTIVATION_SECRET and factor keys (v4 §3.1).
   */
  readonly deriveActivationKeys: (activationSecret: Uint8Array) => Keys
  /** Derives the same keys in two steps. The bytes between the steps take less memory in a cache. Undefined in 4.0, whose keys are not all bytes. */
  readonly activationKeyBytes:
    | { readonly derive: (activationSecret: Uint8Array) => Uint8Array; readonly parse: (bytes: Uint8Array) => Keys }
    | undefined
  readonly createDecoyKeys: (randomBytes: (length: number) => Uint8Array) => DecoyKeys<Keys>
  /** Undefined when the JWT does not parse or lacks a claim. */
  parseTemporaryKeyRequest(jwt: string): TemporaryKeyRequest<Keys> | undefined
  /**
   * The text of the QR code for one activation, with a proof by a key of that activation (v3 §15.1, v4 §11.2); undefined without the server keys,
   * where they are needed.
   */
  createPersonalizedPayload(
    payload: PersonalizedPayload,
    own: { readonly keys: Keys; readonly openServerKeys: () => SigningKeys | undefined },
  ): string | undefined
  /** Tries every accepted TOTP, counter value and allowed combination of factors. All tries together count as one attempt (v3 §15.2, v4 §11.1). */
  verifyOfflineOtp(keys: Keys, ctrData: Uint8Array, otp: OfflineOtp, lookAhead: number): CodeMatch<OfflineMatch>
}

declare const name: unique symbol

/**
 * `T` with a name that only the type checker sees, for values of one shape that must not be swapped, above all keys. A value without a name,
 * such as bytes that were read, fits every name; a value with a name fits no other.
 */
export type Named<T, N extends string> = T & { readonly [name]?: N }
