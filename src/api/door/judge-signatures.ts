// Judges signatures that a phone made with its device keys. Each verdict about an activation has an audit row. The activation itself does not change.
import { describeCovered } from '../../domain/activation/door-key.ts'
import { createDecoyDeviceKeys, importDeviceKeys, type SignatureForm, verifyByDeviceKey } from '../../protocol/device-key.ts'
import type { DeviceKey, SignatureAlgorithm } from '../../protocol/protocol.ts'
import { type DeviceKeysRow, findDeviceKeys } from '../../storage/activation/find.ts'
import { heldActivation, insertAuditEvent } from '../../storage/audit/audit.ts'
import type { ActivationState } from '../../storage/database/schema.ts'
import type { CloudCall } from '../cloud/endpoint.ts'
import type { CloudParts } from '../cloud/parts.ts'
import type { SignatureRefusal } from './members.ts'

export interface SentSignature {
  /** Whether the signature is to be verified with this key. */
  readonly fits: (key: DeviceKey) => boolean
  readonly covered: Uint8Array
  readonly signature: Uint8Array
  /** The encoding of an ECDSA signature. */
  readonly form?: SignatureForm
  /** The algorithm that the signature seems to have. If there is no activation, the signature is verified with the decoy of this algorithm. */
  readonly looksLike: SignatureAlgorithm
}

/** The signatures of one request, and the conditions that they must fulfil. */
export interface SentSignatures {
  /** The form of the signatures in the request. The audit row begins with it. */
  readonly form: 'JWS' | 'DER' | 'JOSE' | 'RAW' | 'PKCS10'
  /** The signed data; the audit row has its hash. */
  readonly data: Uint8Array
  readonly signatures: readonly SentSignature[]
  /** The states of an activation in which its signatures are valid. */
  readonly states: readonly ActivationState[]
  /** Whether right signatures by the keys `verified` are enough. `all` are the keys of the activation. */
  readonly isEnough: (verified: readonly SignatureAlgorithm[], all: readonly SignatureAlgorithm[]) => boolean
}

export interface Door {
  /** The name in the log. */
  readonly path: string
  /** The name in metrics. */
  readonly type: 'device_signature' | 'certificate_request'
}

export interface JudgedSignatures {
  readonly isValid: boolean
  readonly reason?: SignatureRefusal
  /** Absent when the application has no such activation. */
  readonly activation?: Pick<DeviceKeysRow, 'activationId' | 'userId' | 'state'>
  /** The keys whose signature is right. */
  readonly verified: readonly SignatureAlgorithm[]
}

/**
 * Judges signatures by the device keys of an activation of the application, and stores the audit row before it returns. Without such an activation
 * the signatures are verified with decoys, and the same statement stores no row. `sent` is undefined if the request could not be read; nothing is
 * then looked up. Credentials take turns. Throws UNAVAILABLE when too many requests wait.
 */
export async function judgeSignatures(
  { parts, caller, applicationId }: Pick<CloudCall, 'parts' | 'caller'> & { readonly applicationId: string },
  door: Door,
  activationId: string,
  sent: SentSignatures | undefined,
): Promise<JudgedSignatures> {
  const { events } = parts
  const asked = { applicationId, activationId, verifiedBy: caller.username }
  const { row, judged } = sent === undefined ? { row: undefined, judged: FORM } : await judgeAudited(parts, asked, sent)
  const result = judged.reason?.toLowerCase() ?? 'accepted'
  events.authenticationChecked({ version: String(row?.protocolVersion ?? 'unknown'), type: door.type, result })
  if (!judged.isValid) events.authenticationFailed({ activationId, resourceId: door.path, reason: result })
  return judged
}

const FORM: JudgedSignatures = { isValid: false, reason: 'FORM', verified: [] }
const UNKNOWN: JudgedSignatures = { isValid: false, reason: 'UNKNOWN', verified: [] }

async function judgeAudited(
  { db, platform, deviceSignatureTurns }: Pick<CloudParts, 'db' | 'platform' | 'deviceSignatureTurns'>,
  asked: { readonly applicationId: string; readonly activationId: string; readonly verifiedBy: string },
  sent: SentSignatures,
): Promise<{ readonly row: DeviceKeysRow | undefined; readonly judged: JudgedSignatures }> {
  const { applicationId, activationId, verifiedBy } = asked
  // The keys are read in the turn, because the phone may be blocked while the request waits for it.
  const judge = async () => {
    const at = new Date(platform.now())
    const row = await findDeviceKeys(db, { applicationId, activationId, at })
    return { at, row, judged: await (row === undefined ? judgeByDecoys(sent) : judgeByKeys(row, sent)) }
  }
  // One back end that asks for hundreds at once must not have the others wait for all of them.
  const { at, row, judged } = await deviceSignatureTurns.run(judge, { key: verifiedBy })
  const event = {
    applicationId,
    userId: row?.userId ?? null,
    activationId,
    eventType: judged.isValid ? 'device_signature_ok' : 'device_signature_invalid',
    eventData: `${[sent.form, ...judged.verified].join(' ')}\n${describeCovered(sent.data, judged.reason)}`,
    occurredAt: at,
    verifiedBy,
  }
  const isWritten = await insertAuditEvent(db, event, heldActivation(activationId, applicationId))
  // Nothing is written for an activation that was deleted since the read.
  return { row, judged: isWritten ? judged : UNKNOWN }
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

/** Finds the key that made the signature. WRONG: the key that fits did not make it. NO_KEY: no key of the activation fits. */
async function verifyByOneOf(
  keys: readonly DeviceKey[],
  { fits, covered, signature, form }: SentSignature,
): Promise<DeviceKey | 'WRONG' | 'NO_KEY'> {
  const key = keys.find(fits)
  if (key === undefined) return 'NO_KEY'
  return (await verifyByDeviceKey(key, covered, signature, form)) ? key : 'WRONG'
}

/** The decoys of this process. They are made when first needed. */
let decoys: ReturnType<typeof createDecoyDeviceKeys> | undefined

async function judgeByDecoys({ signatures }: SentSignatures): Promise<JudgedSignatures> {
  const keys = (decoys ??= createDecoyDeviceKeys())
  await Promise.all(
    signatures.map(({ looksLike, covered, signature, form }) => verifyByDeviceKey(keys[looksLike], covered, signature, form)),
  )
  return UNKNOWN
}
