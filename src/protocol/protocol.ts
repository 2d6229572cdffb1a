// The seam between pawl and a generation of the device protocol. Outside src/protocol, code holds a Protocol and never
// asks which one it is; version text is compared in versions.ts only.
import type { KeyObject } from 'node:crypto'

/** Who an encrypted request is bound to: every installation of the app, or one activation (v3 §6, v4 §5). */
export type Scope = 'APPLICATION_SCOPE' | 'ACTIVATION_SCOPE'

/** Factor combinations as headers name them (v3 §10.2). The last and the single KNOWLEDGE, BIOMETRY are allowed by no endpoint. */
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

/** What the server needs to open an envelope. */
export interface EnvelopeKeys {
  /** Base64 text, as the protocol uses it (v3 §3.1). */
  readonly applicationSecret: string
  /** P-256: master, server or temporary key, as the version demands (v3 §6, table). */
  readonly privateKey: KeyObject
  /** KEY_TRANSPORT, 16 bytes; activation scope only. */
  readonly keyTransport: Uint8Array | undefined
}

/** A well-formed request envelope, not yet opened. */
export interface Envelope {
  /** Present where the version demands a temporary key. */
  readonly temporaryKeyId: string | undefined
  /** Milliseconds; present where the version has replay protection. */
  readonly timestamp: number | undefined
  /** Ephemeral key and nonce, the value that may be used once; undefined where the version has no replay protection (v3 §14). */
  readonly uniqueValue: Uint8Array | undefined
  /** Checks the MAC in constant time, then decrypts. Undefined when the MAC or the padding is wrong. */
  readonly open: (keys: EnvelopeKeys) => OpenedEnvelope | undefined
}

/** An opened request envelope; one key serves the request and its answer (v3 §6.4). */
export interface OpenedEnvelope {
  readonly plaintext: Uint8Array
  /** The answer's envelope as a JSON value. `nonce`: 16 fresh bytes; `timestamp`: server time in ms. */
  readonly seal: (plaintext: Uint8Array, answer: { nonce: Uint8Array; timestamp: number }) => Record<string, string | number>
}

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

/** Keys of one activation that verification, encryption and status need; derived once and cached by the caller. */
export interface ActivationKeys {
  /** HMAC keys, 16 bytes each. */
  readonly possession: KeyObject
  readonly knowledge: KeyObject
  readonly biometry: KeyObject
  /** KEY_TRANSPORT, KEY_TRANSPORT_IV, KEY_TRANSPORT_CTR, KEY_ENCRYPTION_VAULT: 16 bytes each (v3 §3.2). */
  readonly keyTransport: Uint8Array
  readonly keyTransportIv: Uint8Array
  readonly keyTransportCtr: Uint8Array
  readonly keyEncryptionVault: Uint8Array
}

/** How far the hash-based counter moves when a code matched (v3 §9.1). */
export interface CounterMove {
  /** i + 1 when the i-th value matched: what the numeric counter gains. */
  readonly steps: number
  /** 16 bytes: the value after the one that matched. */
  readonly ctrData: Uint8Array
}

/** A code to verify. */
export interface CodeToVerify {
  readonly version: string
  readonly factors: Factors
  readonly code: string
}

/** Fields of the status blob (v3 §9.3). */
export interface ActivationStatus {
  readonly state: 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'
  readonly counter: number
  /** 16 bytes. */
  readonly ctrData: Uint8Array
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly lookAhead: number
  readonly upgradeVersion: number
}

/** Claims of a temporary key request (v3 §7.1), its MAC not yet checked. */
export interface TemporaryKeyRequest {
  readonly applicationKey: string
  readonly activationId: string | undefined
  readonly challenge: string
  /** Checks the MAC in constant time. `keyTransport` (16 bytes) in activation scope. */
  readonly verify: (applicationSecret: string, keyTransport: Uint8Array | undefined) => boolean
}

/** What the answer to a temporary key request says (v3 §7.2). */
export interface TemporaryKeyAnswer {
  readonly temporaryKeyId: string
  readonly applicationKey: string
  readonly activationId: string | undefined
  readonly challenge: string
  /** Uncompressed point, 65 bytes. */
  readonly publicKey: Uint8Array
  /** Milliseconds. */
  readonly issuedAt: number
  readonly expiresAt: number
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
  readonly operationId: string
  readonly operationData: string
  /** Base64 text as in the payload. */
  readonly nonceBase64: string
  /** Digits of a component, 4 to 8. */
  readonly componentLength: number
  readonly isBiometryAllowed: boolean
  /** Candidates of the proximity check; undefined without it. An empty list matches nothing. */
  readonly totps: readonly string[] | undefined
}

/** Where an offline one-time password matched. */
export interface OfflineMatch extends CounterMove {
  readonly factors: Factors
  readonly signedData: Uint8Array
}

/** One generation of the protocol. */
export interface Protocol {
  /** Path element: /pa/v3, /pa/v4. */
  readonly path: 'v3'
  /** What an activation of this generation records as its version. */
  readonly activationVersion: number
  readonly parseAuthorizationHeader: (value: string, schemes: readonly string[]) => AuthorizationHeader | undefined
  readonly parseTokenHeader: (value: string, schemes: readonly string[]) => TokenHeader | undefined
  readonly parseEncryptionHeader: (value: string, schemes: readonly string[]) => EncryptionHeader | undefined
  /** Undefined when a member is missing, malformed, or not defined by the version (v3 §6.5). */
  readonly parseEnvelope: (context: EnvelopeContext, json: unknown) => Envelope | undefined
  /** What a code of a GET request may cover, in the order to try: the query, decoded, sorted and encoded again (v3 §10.4). */
  readonly canonicalQueryReadings: (rawQuery: string | undefined) => readonly Uint8Array[]
  /** The bytes a code covers, up to and including the application secret (v3 §10.1). */
  readonly signedData: (request: SignedRequest) => Uint8Array
  /** Tries `lookAhead` counter values; undefined when none matches or the code has the wrong form (v3 §9.1, §10.3). */
  readonly verifyAuthenticationCode: (
    keys: ActivationKeys,
    ctrData: Uint8Array,
    signedData: Uint8Array,
    code: CodeToVerify,
    lookAhead: number,
  ) => CounterMove | undefined
  readonly verifyTokenDigest: (tokenSecret: Uint8Array, header: TokenHeader) => boolean
  /** Version has replay protection and the short time window for tokens (v3 §14: 3.2 and newer). */
  readonly hasShortTokenWindow: (version: string) => boolean
  /** KEY_MASTER_SECRET from the key exchange, 16 bytes (v3 §3.2). Undefined when the device's point is not valid. */
  readonly agreeMasterSecret: (serverPrivateKey: KeyObject, devicePublicKey: Uint8Array) => Uint8Array | undefined
  readonly deriveActivationKeys: (keyMasterSecret: Uint8Array) => ActivationKeys
  /** Eight digits shown on both sides (v3 §4.3). Points of 33 or 65 bytes. */
  readonly activationFingerprint: (devicePublicKey: Uint8Array, activationId: string, serverPublicKey: Uint8Array) => string
  /**
   * The encrypted status blob, 32 bytes (v3 §9.3, §9.4). With `challenge` and `nonce` (16 bytes each) the 3.1 form, without
   * them the 3.0 form. `filler`: 32 random bytes, of which the form uses what it needs.
   */
  readonly encryptStatusBlob: (
    keys: ActivationKeys,
    status: ActivationStatus,
    iv: { challenge: Uint8Array; nonce: Uint8Array } | undefined,
    filler: Uint8Array,
  ) => Uint8Array
  /** Undefined when the JWT does not parse or lacks a claim. */
  readonly parseTemporaryKeyRequest: (jwt: string) => TemporaryKeyRequest | undefined
  /** ES256, signed with the master key or KEY_SERVER_PRIVATE (v3 §7.2). */
  readonly createTemporaryKeyAnswer: (answer: TemporaryKeyAnswer, signingKey: KeyObject) => Promise<string>
  /** The text of the QR code for one activation, which proves itself by a key of that activation (v3 §15.1). */
  readonly createPersonalizedPayload: (
    payload: PersonalizedPayload,
    own: { readonly keys: ActivationKeys; readonly serverPrivateKey: KeyObject },
  ) => string
  /** Tries every candidate TOTP, counter value and allowed factor combination: one attempt (v3 §15.2). */
  readonly verifyOfflineOtp: (
    keys: ActivationKeys,
    ctrData: Uint8Array,
    otp: OfflineOtp,
    lookAhead: number,
  ) => OfflineMatch | undefined
  /** AES-CBC(KEY_TRANSPORT, zero IV, KEY_ENCRYPTION_VAULT), 32 bytes (v3 §12). */
  readonly encryptVaultKey: (keys: ActivationKeys) => Uint8Array
}
