// Every secret column by its place: how it is sealed when written and opened when read.
import type { KeyObject } from 'node:crypto'
import { exportKeyPair, generateKeyPair, importPrivateKey, type KeyPair } from '../../crypto/key.ts'
import { hmac } from '../../crypto/hmac.ts'
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import type { Place, RecordKeys } from './record-keys.ts'

const place =
  (table: string, column: string) =>
  (row: string): Place => ({ table, column, row })

/** The places of all sealed columns. */
export const places = {
  applicationSecret: place('application_version', 'application_secret'),
  masterPrivateKey: place('master_key_pair', 'private_key'),
  pinningPrivateKey: place('pinning_key_pair', 'private_key'),
  activationQrCode: place('activation', 'activation_qr_code'),
  serverPrivateKey: place('activation', 'server_private_key'),
  masterSecret: place('activation', 'master_secret'),
  ctrData: place('activation', 'ctr_data'),
  tokenSecret: place('token', 'token_secret'),
  temporaryPrivateKey: place('temporary_key', 'private_key'),
  proximitySeed: place('operation', 'proximity_seed'),
  webhookSecret: place('webhook', 'secret'),
  webhookPreviousSecret: place('webhook', 'previous_secret'),
  webhookBasicCredentials: place('webhook', 'basic_credentials'),
  pushToken: place('push_registration', 'push_token'),
  userClaims: (applicationId: string, userId: string) => place('user_claims', 'claims')(JSON.stringify([applicationId, userId])),
} as const

/** The Base64 text of an application secret, as the protocol uses it (v3 §3.1). */
export const openApplicationSecret = (
  keys: RecordKeys,
  version: { applicationKey: string; applicationSecret: Uint8Array },
): string =>
  keys.openCached(places.applicationSecret(version.applicationKey), version.applicationSecret, (text) => ({
    text: fromUtf8(text),
  })).text

/** An elliptic curve private key that stands at `at`. */
export const openPrivateKey = (keys: RecordKeys, at: Place, sealed: Uint8Array): KeyObject =>
  keys.openCached(at, sealed, (pkcs8) => ({ key: importPrivateKey(pkcs8) }), { form: PRIVATE_KEY }).key

/** A fresh P-256 key pair. */
export const createKeyPair = () => generateKeyPair('P-256')

/** Seals the private half of a pair of createKeyPair for its place, as PKCS#8, and remembers it for openPrivateKey. */
export const sealPrivateKey = (keys: RecordKeys, at: Place, pair: KeyPair): Uint8Array =>
  keys.sealBuilt(at, exportKeyPair('P-256', pair), { key: pair.privateKey }, { form: PRIVATE_KEY })

/** Apart from what a protocol makes of the server key of an activation. */
const PRIVATE_KEY = 'private key'

/** What an activation code is looked up by: HMAC-SHA-256 of its text, 32 bytes, so that the database holds no usable code. */
export const hashActivationCode = (codeLookup: KeyObject, code: string): Uint8Array => hmac(codeLookup, utf8(code))

/** What a push token is looked up by: 32 bytes. No activation code begins with the word, so the key may serve both. */
export const hashPushToken = (codeLookup: KeyObject, platform: string, token: string): Uint8Array =>
  hmac(codeLookup, utf8(`push token\0${platform}\0${token}`))
