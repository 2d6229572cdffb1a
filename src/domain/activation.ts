// What the phone does to its activation besides proving itself: exchange keys, remove itself (v3 §8, §10.7).
import type { KeyObject } from 'node:crypto'
import { PawlError } from '../lib/errors.ts'
import type { Events } from '../lib/events.ts'
import type { Platform } from '../lib/platform.ts'
import {
  changeState,
  findActivation,
  findActivationByCode,
  type ActivationRow,
  storeKeyExchange,
} from '../storage/activations.ts'
import type { Db } from '../storage/database.ts'
import { createAuditEvent } from './audit.ts'
import { parseActivationCode } from './activation-code.ts'
import type { RecordKeys } from './record-keys.ts'
import { isExpired } from './registration.ts'
import { hashActivationCode, openPrivateKey, places } from './secrets.ts'

export interface ActivationParts {
  readonly db: Db
  readonly platform: Platform
  readonly recordKeys: RecordKeys
  readonly events: Events
  readonly installationKeys: { readonly codeLookup: KeyObject }
}

/** What the device says of itself. */
export interface DeviceDescription {
  readonly devicePublicKey: Uint8Array
  readonly name: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  readonly extras: string | null
  readonly externalId: string | null
}

/** The parts of the protocol that the exchange needs. */
export interface KeyAgreement {
  readonly activationVersion: number
  readonly agreeMasterSecret: (serverPrivateKey: KeyObject, devicePublicKey: Uint8Array) => Uint8Array | undefined
  readonly activationFingerprint: (devicePublicKey: Uint8Array, activationId: string, serverPublicKey: Uint8Array) => string
}

export interface ExchangedKeys {
  readonly activationId: string
  readonly userId: string
  /** Uncompressed point, 65 bytes. */
  readonly serverPublicKey: Uint8Array
  /** 16 bytes. */
  readonly ctrData: Uint8Array
}

/**
 * Binds a device to the activation that waits for `code` (v3 §8.4): CREATED to PENDING_COMMIT. Throws ACTIVATION_FAILED for an
 * unknown, used or expired code alike; an invalid device key removes the activation.
 */
export async function exchangeKeys(
  parts: ActivationParts,
  agreement: KeyAgreement,
  applicationId: string,
  code: string,
  device: DeviceDescription,
): Promise<ExchangedKeys> {
  const { db, platform, recordKeys } = parts
  const refuse = (reason: string): PawlError => {
    parts.events.activationRefused({ reason })
    return new PawlError('ACTIVATION_FAILED', { detail: reason })
  }
  const activation = await findActivationByCode(db, applicationId, hashActivationCode(parts.installationKeys.codeLookup, code))
  if (parseActivationCode(code) === undefined || activation === undefined) throw refuse('no activation waits for this code')
  const at = new Date(platform.now())
  if (isExpired(activation, at.getTime())) throw refuse('the code has expired')
  const { activationId, serverPublicKey, userId } = activation
  const serverPrivateKey = openPrivateKey(recordKeys, places.serverPrivateKey(activationId), activation.serverPrivateKey)
  const masterSecret = agreement.agreeMasterSecret(serverPrivateKey, device.devicePublicKey)
  if (masterSecret === undefined) {
    await remove(parts, activation, 'INVALID_DEVICE_KEY')
    throw refuse('the device key is not a point of the curve')
  }
  const ctrData = platform.randomBytes(16)
  const isStored = await storeKeyExchange(db, {
    activationId,
    rowVersion: activation.rowVersion,
    protocolVersion: agreement.activationVersion,
    devicePublicKey: device.devicePublicKey,
    activationFingerprint: agreement.activationFingerprint(device.devicePublicKey, activationId, serverPublicKey),
    masterSecret: recordKeys.seal(places.masterSecret(activationId), masterSecret),
    ctrData: recordKeys.seal(places.ctrData(activationId), ctrData),
    name: device.name,
    platform: device.platform?.toLowerCase() || 'unknown',
    deviceInfo: device.deviceInfo,
    extras: device.extras,
    externalId: device.externalId,
    at,
  })
  if (!isStored) throw refuse('another device was faster')
  parts.events.registrationChanged({ activationId, from: 'CREATED', to: 'PENDING_COMMIT', reason: null })
  return { activationId, userId, serverPublicKey, ctrData }
}

/** Removes an activation on its phone's request, whatever state it has reached meanwhile. */
export async function removeActivation(parts: ActivationParts, activationId: string): Promise<void> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const activation = await findActivation(parts.db, activationId)
    if (activation === undefined || activation.state === 'REMOVED') return
    if (await remove(parts, activation, null)) return
  }
  throw new PawlError('UNAVAILABLE', { detail: 'lost too many races for one activation', retryAfterSeconds: 1 })
}

async function remove(parts: ActivationParts, activation: ActivationRow, reason: string | null): Promise<boolean> {
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

const ROUNDS_MAX = 32
