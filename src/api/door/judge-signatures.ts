// Judges what a phone signed with its device keys, and leaves a row of the audit log and a count behind. Nothing of the activation changes.
import { composeSignedData } from '../../domain/audit/audit.ts'
import { createDecoyDeviceKeys, importDeviceKeys, type SignatureForm, verifyByDeviceKey } from '../../protocol/device-key.ts'
import type { DeviceKey, SignatureAlgorithm } from '../../protocol/protocol.ts'
import { type DeviceKeysRow, findDeviceKeys, insertSignatureAudit } from '../../storage/activation/device-keys.ts'
import type { Db } from '../../storage/database/database.ts'
import type { ActivationState } from '../../storage/database/schema.ts'
import { applicationOf } from '../cloud/application-of.ts'
import type { CloudCall } from '../cloud/endpoint.ts'
import type { SignatureRefusal } from './members.ts'

/** A signature as it came. */
export interface SentSignature {
  /** Whether this key is the one to verify it with. */
  readonly fits: (key: DeviceKey) => boolean
  readonly covered: Uint8Array
  readonly signature: Uint8Array
  /** Of ECDSA. */
  readonly form?: SignatureForm
  /** Which algorithm it seems to be of: that of the decoy which it is verified with where there is no activation. */
  readonly looksLike: SignatureAlgorithm
}

/** What came with the name of an activation. */
export interface SentSignatures {
  /** How it was written down: the first word of the audit row. */
  readonly form: 'JWS' | 'DER' | 'JOSE' | 'RAW' | 'PKCS10'
  /** What the audit row has the hash of. */
  readonly data: Uint8Array
  readonly signatures: readonly SentSignature[]
  /** In which a signature is good. */
  readonly states: readonly ActivationState[]
  /** Whether it is enough that these keys have signed, of all that the activation has. */
  readonly isEnough: (verified: readonly SignatureAlgorithm[], all: readonly SignatureAlgorithm[]) => boolean
}

/** Which door it came through. */
export interface Door {
  /** In the log. */
  readonly path: string
  /** In metrics. */
  readonly type: 'device_signature' | 'certificate_request'
}

export interface JudgedSignatures {
  readonly isValid: boolean
  readonly reason?: SignatureRefusal
  /** Absent where it is not one of this application. */
  readonly activation?: Pick<DeviceKeysRow, 'activationId' | 'userId' | 'state'>
  /** Keys whose signature is right. */
  readonly verified: readonly SignatureAlgorithm[]
}

/**
 * Judges by the activation of this name; a verdict about one has its audit row before it is given. Where the application of the credential has
 * none, signatures are verified with decoys, and the statement that writes the row writes none. `sent` is undefined where it could not be read: then
 * nothing is looked up. Throws REGISTRATION_NOT_FOUND for a credential without application.
 */
export async function judgeSignatures(
  call: Pick<CloudCall, 'parts' | 'caller'>,
  door: Door,
  activationId: string,
  sent: SentSignatures | undefined,
): Promise<JudgedSignatures> {
  const { db, platform, events } = call.parts
  const applicationId = await applicationOf(call)
  const at = new Date(platform.now())
  const row = sent && (await findDeviceKeys(db, { applicationId, activationId, at }))
  const asked = { applicationId, activationId, at, verifiedBy: call.caller.username }
  const judged = sent === undefined ? FORM : await judgeAudited(db, asked, row, sent)
  const result = judged.reason?.toLowerCase() ?? 'accepted'
  events.authenticationChecked({ version: String(row?.protocolVersion ?? 'unknown'), type: door.type, result })
  if (!judged.isValid) events.authenticationFailed({ activationId, resourceId: door.path, reason: result })
  return judged
}

const FORM: JudgedSignatures = { isValid: false, reason: 'FORM', verified: [] }
const UNKNOWN: JudgedSignatures = { isValid: false, reason: 'UNKNOWN', verified: [] }

async function judgeAudited(
  db: Db,
  asked: { readonly applicationId: string; readonly activationId: string; readonly at: Date; readonly verifiedBy: string },
  row: DeviceKeysRow | undefined,
  sent: SentSignatures,
): Promise<JudgedSignatures> {
  const judged = row === undefined ? await judgeByDecoys(sent) : await judgeByKeys(row, sent)
  const isWritten = await insertSignatureAudit(db, {
    applicationId: asked.applicationId,
    userId: row?.userId ?? null,
    activationId: asked.activationId,
    eventType: judged.isValid ? 'device_signature_ok' : 'device_signature_invalid',
    eventData: composeSignedData([sent.form, ...judged.verified].join(' '), sent.data, judged.reason),
    occurredAt: asked.at,
    verifiedBy: asked.verifiedBy,
  })
  // It was deleted meanwhile.
  return isWritten ? judged : UNKNOWN
}

async function judgeByKeys(row: DeviceKeysRow, sent: SentSignatures): Promise<JudgedSignatures> {
  const { activationId, userId, state, algorithm, devicePublicKey } = row
  const keys = devicePublicKey === null ? [] : importDeviceKeys(algorithm ?? 'EC_P256', devicePublicKey)
  const outcomes = await Promise.all(sent.signatures.map((signature) => verifyByOneOf(keys, signature)))
  const verified = keys.filter((key) => outcomes.includes(key)).map((key) => key.algorithm)
  const all = keys.map((key) => key.algorithm)
  const isComplete = !outcomes.includes('NO_KEY') && sent.isEnough(verified, all)
  const refusals: readonly (readonly [boolean, SignatureRefusal])[] = [
    [outcomes.includes('WRONG'), 'SIGNATURE_WRONG'],
    [!sent.states.includes(state), 'STATE'],
    [!isComplete, 'KEYS_MISSING'],
  ]
  const [, reason] = refusals.find(([isRefused]) => isRefused) ?? []
  return { isValid: reason === undefined, ...(reason && { reason }), activation: { activationId, userId, state }, verified }
}

/** The key that made the signature. */
async function verifyByOneOf(
  keys: readonly DeviceKey[],
  { fits, covered, signature, form }: SentSignature,
): Promise<DeviceKey | 'WRONG' | 'NO_KEY'> {
  const key = keys.find(fits)
  if (key === undefined) return 'NO_KEY'
  return (await verifyByDeviceKey(key, covered, signature, form)) ? key : 'WRONG'
}

/** Of this process; made when they are first needed. */
let decoys: ReturnType<typeof createDecoyDeviceKeys> | undefined

async function judgeByDecoys({ signatures }: SentSignatures): Promise<JudgedSignatures> {
  const keys = (decoys ??= createDecoyDeviceKeys())
  await Promise.all(
    signatures.map(({ looksLike, covered, signature, form }) => verifyByDeviceKey(keys[looksLike], covered, signature, form)),
  )
  return UNKNOWN
}
