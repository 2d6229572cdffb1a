// Seals and opens every secret column. The seal covers the place of a value: table, column, row and owner. Values that are only looked up, or only
// must not occur twice, are hashed.
import type { KeyObject } from 'node:crypto'
import { exportPrivateKey, importPrivateKey, type KeyPair } from '../../crypto/key.ts'
import { hmac, sha256 } from '../../crypto/hash.ts'
import { concatWithSizes, fromUtf8, toHex, utf8 } from '../../lib/bytes.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Events } from '../../log/events.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import type { Db } from '../../storage/database/database.ts'
import { type Place, type RecordKeys, SealedRecordError } from './record-keys.ts'

/** The parts for reading and writing sealed records. */
export interface KeyParts {
  readonly db: Db
  readonly platform: Platform
  readonly recordKeys: RecordKeys
}

/** The same with events, for code that logs. */
export interface DomainParts extends KeyParts {
  readonly events: Events
}

/** An activation that waits for its phone. */
interface WaitingActivation extends OwnedActivation {
  /** The hash of the activation code, under the key `codeLookup`. */
  readonly codeHash: Uint8Array
}

/** A token with the owner of its activation. */
export interface OwnedToken extends OwnedActivation {
  readonly tokenId: string
  readonly factors: string
}

const place =
  (table: string, column: string) =>
  (row: string): Place => ({ table, column, row })

/** The place of a value of an activation, which opens only for its owner. */
const owned =
  (table: string, column: string) =>
  ({ activationId, applicationId, userId }: OwnedActivation): Place => ({
    table,
    column,
    row: activationId,
    bound: [applicationId, userId],
  })

/** The places of all sealed columns. Counters are not bound to an owner, because they prove nothing without the master secret in the same row. */
export const places = {
  applicationSecret: place('application_version', 'application_secret'),
  masterPrivateKey: place('master_key_pair', 'private_key'),
  pinningPrivateKey: place('pinning_key_pair', 'private_key'),
  activationQrCode: owned('activation', 'activation_qr_code'),
  /**
   * The place of the server key until the key exchange. The key does not open when somebody changes the code in the row, or sets the state of an
   * activation back after its key exchange.
   */
  waitingServerKey: ({ codeHash, ...activation }: WaitingActivation): Place => {
    const { bound = [], ...at } = places.serverPrivateKey(activation)
    return { ...at, bound: [...bound, toHex(codeHash)] }
  },
  serverPrivateKey: owned('activation', 'server_private_key'),
  masterSecret: owned('activation', 'master_secret'),
  ctrData: place('activation', 'ctr_data'),
  tokenSecret: ({ tokenId, activationId, applicationId, userId, factors }: OwnedToken): Place => ({
    table: 'token',
    column: 'token_secret',
    row: tokenId,
    bound: [applicationId, userId, activationId, factors],
  }),
  temporaryPrivateKey: place('temporary_key', 'private_key'),
  proximitySeed: place('operation', 'proximity_seed'),
  /** The sealed value itself contains application and activation. */
  challengeTerms: place('offline_challenge', 'terms'),
  webhookSecret: place('webhook', 'secret'),
  webhookPreviousSecret: place('webhook', 'previous_secret'),
  webhookBasicCredentials: place('webhook', 'basic_credentials'),
  /** Credentials open only with the same settings, which decide whose logins bind a phone and where the credentials are sent. */
  oidcCredentials: (applicationId: string, providerId: string, settings: string) =>
    place('oidc_provider', 'credentials')(JSON.stringify([applicationId, providerId, toHex(sha256(utf8(settings)))])),
  pushToken: owned('push_registration', 'push_token'),
  userClaims: (applicationId: string, userId: string) => place('user_claims', 'claims')(JSON.stringify([applicationId, userId])),
} as const

/** Returns the result of `open`; undefined for a record that was altered or moved to another owner. */
export function unlessAltered<T>(open: () => T): T | undefined {
  try {
    return open()
  } catch (error) {
    return undefinedIfAltered(error)
  }
}

/**
 * Returns undefined for the error of a record that was altered or moved, and throws every other error. It also serves as the `catch` of a promise.
 */
export function undefinedIfAltered(error: unknown): undefined {
  if (error instanceof SealedRecordError && error.isAltered) return undefined
  throw error
}

/**
 * Returns the result of `open`; undefined also for a record that names a master key which is not given. It is for work that continues without the
 * record, and for lists, which show the other rows. A request that needs the record must fail instead: a phone that is refused may forget its keys.
 */
export function ifOpens<T>(open: () => T): T | undefined {
  try {
    return open()
  } catch (error) {
    if (error instanceof SealedRecordError) return undefined
    throw error
  }
}

/** Opens an application secret: the Base64 text that the protocol uses (v3 §3.1). */
export const openApplicationSecret = (
  keys: RecordKeys,
  version: { applicationKey: string; applicationSecret: Uint8Array },
): string =>
  keys.openCached(places.applicationSecret(version.applicationKey), version.applicationSecret, (text) => ({
    text: fromUtf8(text),
  })).text

/** Opens the elliptic curve private key at the place `at`. */
export const openPrivateKey = (keys: RecordKeys, at: Place, sealed: Uint8Array): KeyObject =>
  keys.openCached(at, sealed, (pkcs8) => ({ key: importPrivateKey(pkcs8) }), { form: PRIVATE_KEY }).key

/** Seals the private half of a pair on an elliptic curve for its place, as PKCS#8. */
export const sealPrivateKey = (keys: RecordKeys, at: Place, pair: KeyPair): Uint8Array =>
  keys.seal(at, exportPrivateKey(pair.privateKey))

/** The `form` of this result: a protocol may remember another result of the same server key. */
const PRIVATE_KEY = 'private key'

/** The hash by which an activation code is looked up: HMAC-SHA-256 of its text, 32 bytes. So the database has no code in the clear. */
export const hashActivationCode = (codeLookup: KeyObject, code: string): Uint8Array => hmac(codeLookup, utf8(code))

/** The hash by which a push token is looked up, 32 bytes. No activation code begins with this prefix, so one key may serve both. */
export const hashPushToken = (codeLookup: KeyObject, platform: string, token: string): Uint8Array =>
  hmac(codeLookup, utf8(`push token\0${platform}\0${token}`))

/** The hash of a value that may be used once (v3 §14): SHA-256 over kind, identifier and value with their lengths, 32 bytes. */
export const hashUniqueValue = (kind: string, identifier: string, value: Uint8Array): Uint8Array =>
  sha256(concatWithSizes(utf8(kind), utf8(identifier), value))
