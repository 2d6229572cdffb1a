// Exchanges the keys of an activation with its phone, and removes an activation when its phone asks for that (v3 §8, §10.7).
import type { KeyObject } from 'node:crypto'
import { generateKeyPair, importPrivateKey } from '../../crypto/key.ts'
import { PawlError } from '../../lib/errors.ts'
import { untilSettled } from '../../lib/until-settled.ts'
import { changeState } from '../../storage/activation/change.ts'
import { findActivation, type ActivationRow } from '../../storage/activation/find.ts'
import {
  type DeviceDescription,
  type ExchangeBasis,
  storeKeyExchange,
  storeKeyExchangeOfChild,
  type WaitingActivationRow,
} from '../../storage/activation/keys.ts'
import { toList } from '../../storage/database/columns.ts'
import type { Db } from '../../storage/database/database.ts'
import type { ActivationAlgorithm } from '../../storage/database/schema.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import { countWrongOtp, createOtpJudge } from './otp.ts'
import { composeEventData, createAuditEvent } from '../audit/audit.ts'
import { parseActivationCode } from './code.ts'
import type { ActivationParts, CreatedActivation } from './created.ts'
import { isExpired } from './registration.ts'
import { places, unlessAltered } from '../secrets/secrets.ts'
import { endBlockIfOver } from './authentication.ts'
import { findTransfer, isUnverified } from './transfer.ts'

/** The key agreement of one generation of the protocol. `Answer` is its part of the answer to the phone. */
export interface KeyAgreement<Answer> {
  readonly activationVersion: number
  /** The protocol version of the request. */
  readonly version: string
  readonly ctrDataLength: number
  /** Whether the phone confirms the activation. It then also says whether it has biometry (v4 §9.6). */
  readonly isConfirmedByPhone: boolean
  /**
   * Agrees on keys. After INVALID_DEVICE_KEY, which only protocol 3 has, the caller removes the activation (v3 §8.4). After UNUSABLE it refuses the
   * request, and the activation stays.
   */
  readonly agree: (activation: OwnKeys) => Promise<AgreedKeys<Answer> | 'INVALID_DEVICE_KEY' | 'UNUSABLE'>
}

/** The keys that an activation was created with. */
interface OwnKeys {
  readonly activationId: string
  readonly serverPublicKey: Uint8Array
  readonly openServerPrivateKey: () => KeyObject
}

interface AgreedKeys<Answer> {
  /** Null in protocol 3. */
  readonly algorithm: ActivationAlgorithm | null
  /** The secret of the activation; it is stored sealed. */
  readonly activationSecret: Uint8Array
  readonly activationFingerprint: string
  readonly devicePublicKey: Uint8Array
  /** The new server keys in stored form; the private key is not sealed yet. Null when the activation keeps the keys of its creation. */
  readonly serverKeys: { readonly publicKey: Uint8Array; readonly privateKey: Uint8Array } | null
  readonly answer: Answer
}

export interface ExchangedKeys<Answer> {
  readonly activationId: string
  readonly userId: string
  readonly ctrData: Uint8Array
  readonly answer: Answer
  /** The claims that the bank stored about the user, sealed. Null when there are none, undefined when they were not read. */
  readonly storedClaims?: Uint8Array | null
}

/** The request of a phone to be bound to an activation. */
export interface ExchangeRequest {
  readonly code: string
  readonly otp: string | null
  /** Values that only one request may use. The statement that changes the activation stores them; an earlier statement checks them, too. */
  readonly values: readonly UniqueValue[]
  /**
   * Stores the values in a statement of their own, unless that was done. Called before a step that may happen only once. Throws the refusal of the
   * request when a value was used before.
   */
  readonly useUp: () => Promise<void>
  /**
   * Reads the activation that waits for the code. Throws the same refusal when one of `left`, the values that are not stored yet, was used before.
   */
  readonly findBasis: (left: readonly UniqueValue[]) => Promise<ExchangeBasis>
}

/**
 * Binds a device to the activation that waits for `code` (v3 §8.4): from CREATED to PENDING_COMMIT, or to ACTIVE when this phase commits it.
 * Throws ACTIVATION_FAILED for an unknown, used or expired code, and for a wrong OTP. An invalid device key of protocol 3 and too many wrong
 * OTPs also remove the activation.
 */
export async function exchangeKeys<Answer>(
  parts: ActivationParts,
  agreement: KeyAgreement<Answer>,
  request: ExchangeRequest,
  device: DeviceDescription,
): Promise<ExchangedKeys<Answer>> {
  let left = request.values
  const useUp = () => {
    left = []
    return request.useUp()
  }
  const judgeOtp = createOtpJudge(parts.activationOtps, 'ON_KEY_EXCHANGE', request.otp)
  // A request with a wrong OTP may change the row meanwhile. That happens at most as often as attempts are allowed.
  return untilSettled('activation', async () => {
    const { activation, userClaims: storedClaims } = await findWaiting(parts, request, left)
    const verdict = await judgeOtp(activation)
    if (verdict === 'MISSING' || verdict === 'UNEXPECTED') throw refuseActivation(parts, `the OTP is ${verdict.toLowerCase()}`)
    if (verdict === 'WRONG') {
      // This comes first, so that only one of several copies of a request is counted.
      await useUp()
      if (await countWrongOtp(parts, activation)) throw refuseActivation(parts, 'the OTP is wrong')
      return undefined
    }
    const { parentActivationId: parent, replacesParent } = activation
    if (parent !== null && !(await mayHandOver(parts, parent, activation.applicationId)))
      throw refuseActivation(parts, 'the activation that asked for the code is not active, or may not hand over any more')
    const to = activation.commitPhase === 'ON_KEY_EXCHANGE' ? 'ACTIVE' : 'PENDING_COMMIT'
    const agreed = await agreeOnKeys(parts, agreement, activation, device, to)
    if (agreed === 'INVALID_DEVICE_KEY') {
      await useUp()
      if (await remove(parts, activation, agreed)) throw refuseActivation(parts, 'the device key is not valid')
      return undefined
    }
    if (agreed === 'UNUSABLE') throw refuseActivation(parts, 'the keys of the request are not valid')
    const bound = await agreed.store(parts.db, left)
    if (bound === 'MOVED') return undefined
    const { registrationChanged } = parts.events
    registrationChanged({ activationId: bound.activationId, from: 'CREATED', to, reason: null })
    if (parent !== null && replacesParent)
      registrationChanged({ activationId: parent, from: 'ACTIVE', to: 'REMOVED', reason: 'MOVED' })
    return { ...bound, storedClaims }
  })
}

/** Logs the reason, and returns the error ACTIVATION_FAILED. */
export function refuseActivation({ events }: Pick<ActivationParts, 'events'>, reason: string): PawlError {
  events.activationRefused({ reason })
  return new PawlError('ACTIVATION_FAILED', { detail: reason })
}

/**
 * The agreed keys of an activation. One statement of `store` moves the activation to its next state and stores the used values. It returns MOVED,
 * and stores nothing, when the activation has changed since it was read.
 */
interface KeysToStore<Answer> {
  readonly store: (db: Db, values?: readonly UniqueValue[]) => Promise<ExchangedKeys<Answer> | 'MOVED'>
}

/** Throws ACTIVATION_FAILED for invalid keys of a phone. Tries an agreement with throw-away server keys, before a step that cannot be undone. */
export async function requireDeviceKeys<Answer>(parts: ActivationParts, agreement: KeyAgreement<Answer>): Promise<void> {
  const { privateKey, publicKey: serverPublicKey } = generateKeyPair('P-256')
  const activationId = parts.platform.uuid()
  const agreed = await agreement.agree({ activationId, serverPublicKey, openServerPrivateKey: () => privateKey })
  if (typeof agreed === 'string') throw refuseActivation(parts, 'the keys of the request are not valid')
}

/** Agrees on keys for a CREATED activation, which moves to `to` when they are stored. */
export async function agreeOnKeys<Answer>(
  { platform, recordKeys }: Pick<ActivationParts, 'platform' | 'recordKeys'>,
  agreement: KeyAgreement<Answer>,
  activation: CreatedActivation & Partial<Pick<WaitingActivationRow, 'parentActivationId' | 'replacesParent'>>,
  device: DeviceDescription,
  to: 'PENDING_COMMIT' | 'ACTIVE',
): Promise<KeysToStore<Answer> | 'INVALID_DEVICE_KEY' | 'UNUSABLE'> {
  const { activationId, serverPublicKey, userId } = activation
  const waiting = places.waitingServerKey(activation)
  const ownKey = unlessAltered(() => recordKeys.open(waiting, activation.serverPrivateKey))
  if (ownKey === undefined) return 'UNUSABLE'
  const agreed = await agreement.agree({ activationId, serverPublicKey, openServerPrivateKey: () => importPrivateKey(ownKey) })
  if (agreed === 'INVALID_DEVICE_KEY' || agreed === 'UNUSABLE') return agreed
  const { algorithm, devicePublicKey, activationFingerprint, serverKeys, answer } = agreed
  const ctrData = platform.randomBytes(agreement.ctrDataLength)
  const at = new Date(platform.now())
  const exchange = {
    activationId,
    rowVersion: activation.rowVersion,
    to,
    protocolVersion: agreement.activationVersion,
    highestVersion: agreement.version,
    algorithm,
    isConfirmationPending: agreement.isConfirmedByPhone,
    isBiometryEnabled: agreement.isConfirmedByPhone ? false : null,
    devicePublicKey,
    activationFingerprint,
    serverPublicKey: serverKeys?.publicKey ?? serverPublicKey,
    serverPrivateKey: recordKeys.seal(places.serverPrivateKey(activation), serverKeys?.privateKey ?? ownKey),
    masterSecret: recordKeys.seal(places.masterSecret(activation), agreed.activationSecret),
    ctrData: recordKeys.seal(places.ctrData(activationId), ctrData),
    name: device.name,
    platform: device.platform?.toLowerCase() || 'unknown',
    deviceInfo: device.deviceInfo,
    extras: device.extras,
    externalId: device.externalId,
    at,
  }
  const version = { protocolVersion: String(agreement.activationVersion), algorithm, platform: exchange.platform }
  const exchanged = createAuditEvent(activation, 'registration_keys_exchanged', version, at.getTime())
  const committed = createAuditEvent(activation, 'registration_committed', {}, at.getTime())
  const audits = to === 'ACTIVE' ? ([exchanged, committed] as const) : ([exchanged] as const)
  const { parentActivationId = null, replacesParent: isReplaced = false } = activation
  const eventData = composeEventData({ reason: 'MOVED', childActivationId: activationId })
  const storeIn = (db: Db, values: readonly UniqueValue[] = []): Promise<boolean> =>
    parentActivationId === null
      ? storeKeyExchange(db, { exchange, audits, values })
      : storeKeyExchangeOfChild(db, { exchange, audits, values }, { parentActivationId, isReplaced, eventData })
  return {
    store: async (db, values) => ((await storeIn(db, values)) ? { activationId, userId, ctrData, answer } : 'MOVED'),
  }
}

/**
 * Whether the activation that asked for the code is ACTIVE, its owner is verified, and its application still hands over to `target`. First stores the
 * end of a temporary block that is over.
 */
async function mayHandOver(parts: ActivationParts, parentActivationId: string, target: string): Promise<boolean> {
  const parent = await findActivation(parts.db, parentActivationId, new Date(parts.platform.now()))
  if (parent === undefined || isUnverified(toList(parent.flags))) return false
  if (await endBlockIfOver(parts, parent)) return mayHandOver(parts, parentActivationId, target)
  return parent.state === 'ACTIVE' && (await findTransfer(parts.db, parent.applicationId, target)) !== undefined
}

async function findWaiting(
  parts: ActivationParts,
  { code, findBasis }: ExchangeRequest,
  left: readonly UniqueValue[],
): Promise<WaitingBasis> {
  const basis = await findBasis(left)
  const { activation } = basis
  if (parseActivationCode(code) === undefined || activation === undefined)
    throw refuseActivation(parts, 'no activation waits for this code')
  if (isExpired(activation, parts.platform.now())) throw refuseActivation(parts, 'the code has expired')
  return { ...basis, activation }
}

type WaitingBasis = ExchangeBasis & { readonly activation: WaitingActivationRow }

/** Removes an activation at its phone's request, even if its state has changed since it was `read`. */
export async function removeActivation(parts: ActivationParts, read: ActivationRow): Promise<void> {
  await untilSettled('activation', async (round) => {
    const activation = round === 0 ? read : await findActivation(parts.db, read.activationId, new Date(parts.platform.now()))
    const isGone = activation === undefined || activation.state === 'REMOVED' || (await remove(parts, activation, null))
    return isGone ? 'REMOVED' : undefined
  })
}

async function remove(parts: ActivationParts, activation: ActivationRow, reason: string | null): Promise<boolean> {
  if (await endBlockIfOver(parts, activation)) return false
  const { activationId, rowVersion, state: from } = activation
  const at = new Date(parts.platform.now())
  const isStored = await changeState(
    parts.db,
    { activationId, rowVersion, from, to: 'REMOVED', reason, externalUserId: null, at },
    createAuditEvent(activation, 'registration_removed', { reason }, at.getTime()),
  )
  if (isStored) parts.events.registrationChanged({ activationId, from, to: 'REMOVED', reason })
  return isStored
}
