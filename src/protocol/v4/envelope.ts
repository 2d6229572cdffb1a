// Opens and seals AEAD envelopes of requests and answers (v4 §5).
import { sha3 } from '../../crypto/hash.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { asBuffer, concat, concatWithSizes, equalPublic, splitBySizes, u64, utf8 } from '../../lib/bytes.ts'
import { isJsonObject } from '../../lib/json.ts'
import type { Envelope, EnvelopeContext, OpenedEnvelope, SealAnswer } from '../protocol.ts'
import { AEAD_LENGTH_MIN, AEAD_NONCE_LENGTH, type AeadKeys, deriveAeadKeys, importAeadKeys, openAead, sealAead } from './aead.ts'
import { parseBytes, parseTimestamp, parseUuid } from '../wire/members.ts'
import type { ActivationKeys, TemporarySharedSecret } from './key-schedule.ts'
import { VERSION } from './versions.ts'

/** Members of a request envelope, decoded. */
interface RequestMembers {
  readonly temporaryKeyId: string
  /** At least 44 bytes. They begin with the first half of the nonce. */
  readonly encryptedData: Uint8Array
  /** N_req ‖ N_res, 24 bytes, its halves different. */
  readonly nonce: Uint8Array
  /** Milliseconds. */
  readonly timestamp: number
}

/** The secrets that enter sharedInfo2 (v4 §5.4). */
interface EnvelopeSecrets {
  /** Base64 text; its decoded bytes enter. */
  readonly applicationSecret: string
  /** Present in activation scope. */
  readonly activationKeys: Pick<ActivationKeys, 'keyE2eeSharedInfo2'> | undefined
}

/** Parses a request envelope. Undefined when a member is missing or malformed, or a half of the nonce is wrong (v4 §5.1, §5.2). */
export function parseEnvelope(
  context: EnvelopeContext,
  json: unknown,
): Envelope<Pick<ActivationKeys, 'keyE2eeSharedInfo2'>, TemporarySharedSecret> | undefined {
  const members = context.version === VERSION ? parseMembers(json) : undefined
  if (!members) return undefined
  const { temporaryKeyId, timestamp, nonce } = members
  return {
    temporaryKeyId,
    timestamp,
    uniqueValue: concat(utf8(temporaryKeyId), nonce),
    keyValue: undefined,
    identity: concatWithSizes(utf8(temporaryKeyId), nonce, members.encryptedData.subarray(AEAD_NONCE_LENGTH, AEAD_LENGTH_MIN)),
    open: ({ envelopeKey, ...secrets }) => {
      const keys = deriveAeadKeys(envelopeKey, deriveKeyContext(context, nonce))
      return openEnvelope(context, members, secrets, keys)
    },
  }
}

/** Opens a request with the keys of its context; undefined when the tag is wrong (v4 §5.5). */
export function openEnvelope(
  context: EnvelopeContext,
  members: RequestMembers,
  secrets: EnvelopeSecrets,
  keys: AeadKeys,
): OpenedEnvelope | undefined {
  const { encryptedData, nonce, timestamp, temporaryKeyId } = members
  const sharedInfo2 = deriveSharedInfo2(context, secrets)
  const parties = bindParties(context, temporaryKeyId)
  const plaintext = openAead(keys, bindRequest(parties, { timestamp, nonce, sharedInfo2 }), encryptedData)
  return (
    plaintext && {
      plaintext,
      seal: sealUnder({ keys, parties, nonce, sharedInfo2 }),
      exportAnswerKeys: () => concatWithSizes(keys.exported, parties, nonce, sharedInfo2),
    }
  )
}

/** The keys and values that seal an answer. */
interface AnswerKeys {
  readonly keys: AeadKeys
  /** The result of bindParties. */
  readonly parties: Uint8Array
  /** The nonce of the request, 24 bytes. */
  readonly nonce: Uint8Array
  readonly sharedInfo2: Uint8Array
}

/** Reads the bytes of OpenedEnvelope.exportAnswerKeys. */
export function importAnswerKeys(exported: Uint8Array): SealAnswer {
  const [keys, parties, nonce, sharedInfo2] = splitBySizes(asBuffer(exported))
  if (keys?.length !== 64 || parties === undefined || nonce === undefined || sharedInfo2 === undefined)
    throw new TypeError('these are no keys of an answer')
  return sealUnder({ keys: importAeadKeys(keys), parties, nonce, sharedInfo2 })
}

/** Seals the answer under the keys of the request, with the second half of the nonce. parseMembers has made sure that the halves differ. */
const sealUnder =
  ({ keys, parties, nonce, sharedInfo2 }: AnswerKeys): SealAnswer =>
  (plaintext, { timestamp }) => {
    const associatedData = bindRequest(parties, { timestamp, nonce, sharedInfo2 })
    const sealed = sealAead(keys, nonce.subarray(AEAD_NONCE_LENGTH), associatedData, plaintext)
    return { encryptedData: toBase64(sealed), timestamp }
  }

/** KC: version, label and nonce, without lengths (v4 §5.5). */
export const deriveKeyContext = ({ sharedInfo1 }: EnvelopeContext, nonce: Uint8Array): Uint8Array =>
  concat(utf8(`${VERSION}${sharedInfo1}`), nonce)

/** sharedInfo2, 32 bytes. In both scopes it covers the decoded application secret (v4 §5.4). */
export function deriveSharedInfo2(
  { scope }: Pick<EnvelopeContext, 'scope'>,
  { applicationSecret, activationKeys }: EnvelopeSecrets,
): Uint8Array {
  const secret = parseBase64(applicationSecret)
  if (!secret) throw new TypeError('the application secret is not Base64')
  if (scope === 'APPLICATION_SCOPE') return sha3(secret)
  if (!activationKeys) throw new TypeError('an envelope in activation scope needs KEY_E2EE_SHARED_INFO2')
  return activationKeys.keyE2eeSharedInfo2().compute(secret)
}

/** AD, the values to which an envelope is bound; texts as they were sent (v4 §5.5). */
export const deriveAssociatedData = (context: EnvelopeContext, temporaryKeyId: string, bound: BoundValues): Uint8Array =>
  bindRequest(bindParties(context, temporaryKeyId), bound)

interface BoundValues {
  readonly timestamp: number
  readonly nonce: Uint8Array
  readonly sharedInfo2: Uint8Array
}

/** The beginning of AD, which request and answer share. */
function bindParties({ applicationKey, scope, activationId }: EnvelopeContext, temporaryKeyId: string): Uint8Array {
  const parts = [VERSION, applicationKey, ...(scope === 'ACTIVATION_SCOPE' ? [activationId ?? ''] : []), temporaryKeyId]
  return concatWithSizes(...parts.map(utf8))
}

const bindRequest = (parties: Uint8Array, { timestamp, nonce, sharedInfo2 }: BoundValues): Uint8Array =>
  concat(parties, concatWithSizes(u64(timestamp), nonce, sharedInfo2))

/** Parses the members of a request; undefined as in parseEnvelope. Other members are ignored. */
export function parseMembers(json: unknown): RequestMembers | undefined {
  if (!isJsonObject(json)) return undefined
  const temporaryKeyId = parseUuid(json['temporaryKeyId'])
  const encryptedData = parseBytes(json['encryptedData'])
  const nonce = parseBytes(json['nonce'], 2 * AEAD_NONCE_LENGTH)
  const timestamp = parseTimestamp(json['timestamp'])
  if (!temporaryKeyId || !encryptedData || encryptedData.length < AEAD_LENGTH_MIN || !nonce || timestamp === undefined)
    return undefined
  const [ofRequest, ofAnswer] = [nonce.subarray(0, AEAD_NONCE_LENGTH), nonce.subarray(AEAD_NONCE_LENGTH)]
  // Equal halves would let the answer be sealed with key and IV of the request.
  if (equalPublic(ofRequest, ofAnswer) || !equalPublic(encryptedData.subarray(0, AEAD_NONCE_LENGTH), ofRequest)) return undefined
  return { temporaryKeyId, encryptedData, nonce, timestamp }
}
