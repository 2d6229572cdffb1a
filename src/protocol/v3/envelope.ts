// Opens and seals ECIES envelopes of requests and answers (v3 §6).
import type { KeyObject } from 'node:crypto'
import { aesCbcDecrypt, aesCbcEncrypt } from '../../crypto/aes.ts'
import { ecdh, hasPointForm, publicKeyFromPoint } from '../../crypto/key.ts'
import { hmac, sha256 } from '../../crypto/hash.ts'
import { deriveX963 } from '../../crypto/kdf.ts'
import { toBase64 } from '../../lib/base64.ts'
import { asBuffer, concat, concatWithSizes, equalConstantTime, splitBySizes, u64, utf8 } from '../../lib/bytes.ts'
import { isJsonObject } from '../../lib/json.ts'
import type { Envelope, EnvelopeContext, OpenedEnvelope, SealAnswer } from '../protocol.ts'
import { parseBytes, parseTimestamp, parseUuid } from '../wire/members.ts'
import { type ActivationKeys, type KeyTransport, kdfInternal } from './key-schedule.ts'
import { type Capabilities, capabilitiesOf } from './versions.ts'

/** The decoded members of a request envelope, without ciphertext and MAC. */
interface KeyMembers {
  /** 33 or 65 bytes, exactly as received, because they enter derivations and the MAC (v3 §2.3). */
  readonly ephemeralPublicKey: Uint8Array
  /** 16 bytes. */
  readonly nonce: Uint8Array | undefined
  readonly timestamp: number | undefined
  readonly temporaryKeyId: string | undefined
}

/** Members of a request envelope, decoded. */
interface RequestMembers extends KeyMembers {
  readonly encryptedData: Uint8Array
  /** 32 bytes. */
  readonly mac: Uint8Array
}

/** The secrets that enter sharedInfo2 (v3 §6.3). */
export interface EnvelopeSecrets {
  /** Base64 text, as the protocol uses it (v3 §3.1). */
  readonly applicationSecret: string
  /** KEY_TRANSPORT, 16 bytes; activation scope only. */
  readonly keyTransport: KeyTransport | undefined
}

type RequestEnvelope = Envelope<Pick<ActivationKeys, 'keyTransport'>, KeyObject>

/** Parses a request envelope. Undefined when a member is missing, malformed, or not defined by the version (v3 §6.5). */
export function parseEnvelope(context: EnvelopeContext, json: unknown): RequestEnvelope | undefined {
  const capabilities = capabilitiesOf(context.version)
  const members = capabilities && parseMembers(capabilities, json)
  return (
    members &&
    envelopeOf(
      context,
      members,
      concatWithSizes(members.ephemeralPublicKey, members.nonce, members.mac),
      (secrets, envelopeKey) => openEnvelope(context, members, secrets, envelopeKey),
    )
  )
}

/**
 * Parses an envelope whose ciphertext and MAC the caller keeps, because the caller only wants its keys (cloud §15.3). It opens to an empty plaintext,
 * unchecked. readRequestKeys reads its exported keys. Undefined as in parseEnvelope.
 */
export function parseKeyRequest(context: EnvelopeContext, json: unknown): RequestEnvelope | undefined {
  const capabilities = capabilitiesOf(context.version)
  const members = capabilities && parseKeyMembers(capabilities, json)
  return (
    members &&
    envelopeOf(context, members, concatWithSizes(members.ephemeralPublicKey, members.nonce), (secrets, envelopeKey) => {
      const base = deriveSharedInfo2Base(context, secrets)
      const associatedData = deriveAssociatedData(context, members.temporaryKeyId)
      return openedWith(new Uint8Array(0), { envelopeKey, base, associatedData, nonce: members.nonce })
    })
  )
}

/** The envelope of parseEnvelope or parseKeyRequest. `open` gets the derived values. */
const envelopeOf = (
  context: EnvelopeContext,
  { temporaryKeyId, timestamp, ephemeralPublicKey, nonce }: KeyMembers,
  identity: Uint8Array,
  open: (secrets: EnvelopeSecrets, envelopeKey: Uint8Array) => OpenedEnvelope | undefined,
): RequestEnvelope => ({
  temporaryKeyId,
  timestamp,
  uniqueValue: timestamp !== undefined && nonce ? concat(ephemeralPublicKey, nonce) : undefined,
  keyValue: timestamp === undefined ? undefined : ephemeralPublicKey,
  identity,
  open: ({ applicationSecret, envelopeKey: privateKey, activationKeys }) => {
    const envelopeKey = deriveEnvelopeKey(privateKey, deriveSharedInfo1(context), ephemeralPublicKey)
    return envelopeKey && open({ applicationSecret, keyTransport: activationKeys?.keyTransport }, envelopeKey)
  },
})

/** Reads ENV (48 bytes) and the base of sharedInfo2 (32 bytes) from exported answer keys. */
export function readRequestKeys(exported: Uint8Array): Pick<AnswerKeys, 'envelopeKey' | 'base'> {
  const [envelopeKey, base] = splitBySizes(asBuffer(exported))
  if (envelopeKey?.length !== 48 || base === undefined) throw new TypeError('these are no keys of an envelope')
  return { envelopeKey, base }
}

/** ENV: KEY_ENC ‖ KEY_MAC ‖ KEY_IV, 48 bytes; undefined when the ephemeral key is not a point of the curve (v3 §6.2). */
export function deriveEnvelopeKey(
  privateKey: KeyObject,
  sharedInfo1: Uint8Array,
  ephemeralPublicKey: Uint8Array,
): Uint8Array | undefined {
  const publicKey = publicKeyFromPoint('P-256', ephemeralPublicKey)
  return publicKey && deriveX963(ecdh(privateKey, publicKey), concat(sharedInfo1, ephemeralPublicKey), 48)
}

/** Opens a request with its envelope key (48 bytes); undefined when the MAC or the padding is wrong (v3 §6.4). */
export function openEnvelope(
  context: EnvelopeContext,
  members: RequestMembers,
  secrets: EnvelopeSecrets,
  envelopeKey: Uint8Array,
): OpenedEnvelope | undefined {
  const { ephemeralPublicKey, encryptedData, nonce, timestamp, temporaryKeyId } = members
  const base = deriveSharedInfo2Base(context, secrets)
  const associatedData = deriveAssociatedData(context, temporaryKeyId)
  const sharedInfo2 = deriveSharedInfo2(base, associatedData, { nonce, timestamp, ephemeralKey: ephemeralPublicKey })
  const expected = computeMac(envelopeKey, encryptedData, sharedInfo2)
  if (!equalConstantTime(members.mac, expected)) return undefined
  const plaintext = aesCbcDecrypt(keyEnc(envelopeKey), deriveIv(envelopeKey, nonce), encryptedData)
  return plaintext && openedWith(plaintext, { envelopeKey, base, associatedData, nonce })
}

const openedWith = (plaintext: Uint8Array, keys: AnswerKeys): OpenedEnvelope => ({
  plaintext,
  seal: sealUnder(keys),
  exportAnswerKeys: () => concatWithSizes(keys.envelopeKey, keys.base, keys.associatedData, keys.nonce),
})

/** The keys and values that seal an answer. */
interface AnswerKeys {
  /** 48 bytes. */
  readonly envelopeKey: Uint8Array
  /** The base of sharedInfo2, 32 bytes. */
  readonly base: Uint8Array
  readonly associatedData: Uint8Array | undefined
  /** The nonce of the request. */
  readonly nonce: Uint8Array | undefined
}

/**
 * Reads the bytes of OpenedEnvelope.exportAnswerKeys. An absent value was exported as an empty one: neither nonce nor associated data is ever
 * empty.
 */
export function importAnswerKeys(exported: Uint8Array): SealAnswer {
  const [envelopeKey, base, associatedData, nonce] = splitBySizes(asBuffer(exported))
  if (envelopeKey?.length !== 48 || base === undefined || associatedData === undefined || nonce === undefined)
    throw new TypeError('these are no keys of an answer')
  const unlessEmpty = (bytes: Uint8Array): Uint8Array | undefined => (bytes.length === 0 ? undefined : bytes)
  return sealUnder({ envelopeKey, base, associatedData: unlessEmpty(associatedData), nonce: unlessEmpty(nonce) })
}

const sealUnder =
  ({ envelopeKey, base, associatedData, nonce }: AnswerKeys): SealAnswer =>
  (plaintext, answer) => {
    // Versions without a nonce of the answer reuse the IV of the request, as v3 §6.4 prescribes. Key and IV then
    // serve exactly two plaintexts, so an observer learns at most how many leading blocks of the two are equal.
    const answerNonce = associatedData ? answer.nonce : nonce
    const ciphertext = aesCbcEncrypt(keyEnc(envelopeKey), deriveIv(envelopeKey, answerNonce), plaintext)
    const sharedInfo2 = deriveSharedInfo2(base, associatedData, { ...answer, ephemeralKey: undefined })
    const sealed = { encryptedData: toBase64(ciphertext), mac: toBase64(computeMac(envelopeKey, ciphertext, sharedInfo2)) }
    return associatedData ? { ...sealed, nonce: toBase64(answer.nonce), timestamp: answer.timestamp } : sealed
  }

/** sharedInfo1: the label, with the version in front where the version binds itself (v3 §6.1). */
export const deriveSharedInfo1 = ({ version, sharedInfo1 }: EnvelopeContext): Uint8Array =>
  utf8(capabilitiesOf(version)?.versionBinding ? `${version}${sharedInfo1}` : sharedInfo1)

/** The base of sharedInfo2, 32 bytes. In both scopes it covers the Base64 text of the application secret (v3 §3.1, §6.3). */
export const deriveSharedInfo2Base = (
  { scope }: EnvelopeContext,
  { applicationSecret, keyTransport }: EnvelopeSecrets,
): Uint8Array => {
  if (scope === 'APPLICATION_SCOPE') return sha256(utf8(applicationSecret))
  if (!keyTransport) throw new TypeError('an envelope in activation scope needs KEY_TRANSPORT')
  return hmac(keyTransport, utf8(applicationSecret))
}

/** AD, the texts to which an envelope is bound; undefined if the version binds none (v3 §6.3). */
export function deriveAssociatedData(context: EnvelopeContext, temporaryKeyId: string | undefined): Uint8Array | undefined {
  const { version, applicationKey, scope, activationId } = context
  if (!capabilitiesOf(version)?.versionBinding) return undefined
  const parts = [
    version,
    applicationKey,
    ...(scope === 'ACTIVATION_SCOPE' ? [activationId ?? ''] : []),
    ...(temporaryKeyId === undefined ? [] : [temporaryKeyId]),
  ]
  return concatWithSizes(...parts.map(utf8))
}

/** sharedInfo2. In that of an answer, the part for the ephemeral key is there, with length zero (v3 §6.3). */
export const deriveSharedInfo2 = (
  base: Uint8Array,
  associatedData: Uint8Array | undefined,
  parts: { nonce: Uint8Array | undefined; timestamp: number | undefined; ephemeralKey: Uint8Array | undefined },
): Uint8Array => {
  if (!associatedData) return base
  const timestamp = parts.timestamp === undefined ? undefined : u64(parts.timestamp)
  return concatWithSizes(base, parts.nonce, timestamp, parts.ephemeralKey, associatedData)
}

/** IV(n), 16 bytes. Without a nonce it is zero: the key comes from a fresh ephemeral key, so it is new each time (v3 §6.2). */
export const deriveIv = (envelopeKey: Uint8Array, nonce: Uint8Array | undefined): Uint8Array =>
  nonce ? kdfInternal(keyIv(envelopeKey), nonce) : ZERO_IV

/** Parses the members of a request; undefined as in parseEnvelope. Null counts as absent. Members that no version defines are ignored. */
export function parseMembers(capabilities: Capabilities, json: unknown): RequestMembers | undefined {
  if (!isJsonObject(json)) return undefined
  const encryptedData = parseBytes(json['encryptedData'])
  const mac = parseBytes(json['mac'], 32)
  const members = parseKeyMembers(capabilities, json)
  return members && encryptedData && mac ? { ...members, encryptedData, mac } : undefined
}

function parseKeyMembers(capabilities: Capabilities, json: unknown): KeyMembers | undefined {
  if (!isJsonObject(json)) return undefined
  const ephemeralPublicKey = parseBytes(json['ephemeralPublicKey'])
  const nonce = parseBytes(json['nonce'], 16)
  const timestamp = parseTimestamp(json['timestamp'])
  const temporaryKeyId = parseUuid(json['temporaryKeyId'])
  if (!ephemeralPublicKey || !hasPointForm('P-256', ephemeralPublicKey)) return undefined
  // A member must be there exactly when the version defines it. A malformed member was parsed to undefined.
  const isComplete =
    isAsDefined(capabilities.nonce, json['nonce'], nonce) &&
    isAsDefined(capabilities.timestamp, json['timestamp'], timestamp) &&
    isAsDefined(capabilities.temporaryKeys, json['temporaryKeyId'], temporaryKeyId)
  return isComplete ? { ephemeralPublicKey, nonce, timestamp, temporaryKeyId } : undefined
}

const isAsDefined = (isDefined: boolean, given: unknown, parsed: unknown): boolean =>
  isDefined ? parsed !== undefined : given === undefined || given === null

const computeMac = (envelopeKey: Uint8Array, ciphertext: Uint8Array, sharedInfo2: Uint8Array): Uint8Array =>
  hmac(keyMac(envelopeKey), concat(ciphertext, sharedInfo2))

const keyEnc = (envelopeKey: Uint8Array): Uint8Array => envelopeKey.subarray(0, 16)
const keyMac = (envelopeKey: Uint8Array): Uint8Array => envelopeKey.subarray(16, 32)
const keyIv = (envelopeKey: Uint8Array): Uint8Array => envelopeKey.subarray(32, 48)

const ZERO_IV = new Uint8Array(16)
