// Opens the keys of a device request. They are derived once, and kept in memory while the record in the database stays the same.
//
// The activation or version in a request may not exist, belong to somebody else, or be in the wrong state. The request is then checked against a
// decoy, keys that nobody knows. So it takes the same steps and the same time, and ends in the same refusal.
import { findSigningMasterKeys } from '../domain/application/master-keys.ts'
import { type KeyParts, openApplicationSecret, places, undefinedIfAltered, unlessAltered } from '../domain/secrets/secrets.ts'
import type { Place, RecordKeys } from '../domain/secrets/record-keys.ts'
import { toBase64 } from '../lib/base64.ts'
import type { Platform } from '../lib/platform.ts'
import type { ActivationKeys, Algorithm, DecoyKeys, Protocol, SigningKeys } from '../protocol/protocol.ts'
import type { ReadActivationRow, StatusRow } from '../storage/activation/find.ts'
import type { VersionRow } from '../storage/application/version.ts'

/** Keys of the process that open nothing. */
export interface Decoy<Keys extends ActivationKeys = ActivationKeys> extends DecoyKeys<Keys> {
  readonly applicationSecret: string
  /** Opens sealed counter data, as for a real activation. */
  readonly openCtrData: () => Uint8Array
}

/** A decoy for each generation. */
export type Decoys = Readonly<Record<Protocol['path'], Decoy>>

/** Makes the decoy of this process. */
export function createDecoy<Keys extends ActivationKeys>(
  protocol: Protocol<Keys>,
  recordKeys: RecordKeys,
  platform: Platform,
): Decoy<Keys> {
  const place = places.ctrData('decoy')
  const sealed = recordKeys.seal(place, platform.randomBytes(protocol.ctrDataLength))
  return {
    applicationSecret: toBase64(platform.randomBytes(16)),
    ...protocol.createDecoyKeys((length) => platform.randomBytes(length)),
    openCtrData: () => recordKeys.open(place, sealed),
  }
}

/** The application secret of a version; the decoy's without a version, and when the secret was altered in the database. */
export const applicationSecretOf = (keys: RecordKeys, decoy: Decoy, version: VersionRow | undefined): string =>
  (version && unlessAltered(() => openApplicationSecret(keys, version))) ?? decoy.applicationSecret

/** The keys with which an application signs. Undefined when they were altered in the database. */
export const masterKeysOf = (parts: KeyParts, applicationId: string, algorithm: Algorithm): Promise<SigningKeys | undefined> =>
  findSigningMasterKeys(parts, applicationId, algorithm).catch(undefinedIfAltered)

/**
 * Reads a value that was sealed at a place. If it opens, pawl has sealed it. If it then cannot be read, the row names another generation or algorithm
 * than at the sealing, and the value counts as altered.
 */
const readingAt =
  <T extends object>(keys: RecordKeys, place: Place, read: (stored: Uint8Array) => T) =>
  (stored: Uint8Array): T => {
    try {
      return read(stored)
    } catch {
      throw keys.reportAltered(place)
    }
  }

/**
 * The derived keys of an activation. Undefined unless it has exchanged keys under this protocol, and when its row was moved to another user,
 * application or protocol version in the database.
 */
export function activationKeysOf<Keys extends ActivationKeys>(
  keys: RecordKeys,
  protocol: Protocol<Keys>,
  activation: StatusRow | undefined,
): Keys | undefined {
  if (activation?.masterSecret == null || activation.protocolVersion !== protocol.activationVersion) return undefined
  const { activationKeyBytes, deriveActivationKeys } = protocol
  const { masterSecret } = activation
  const place = places.masterSecret(activation)
  return unlessAltered(() =>
    activationKeyBytes === undefined
      ? keys.openCached(place, masterSecret, readingAt(keys, place, deriveActivationKeys))
      : activationKeyBytes.parse(
          keys.openCached(place, masterSecret, readingAt(keys, place, activationKeyBytes.derive), { areBytes: true }),
        ),
  )
}

/**
 * The derived keys of an activation and its hash-based counter. Undefined as for activationKeysOf, and when the counter was altered in the database.
 */
export function codeKeysOf<Keys extends ActivationKeys>(
  recordKeys: RecordKeys,
  protocol: Protocol<Keys>,
  activation: StatusRow | undefined,
): { readonly keys: Keys; readonly ctrData: Uint8Array } | undefined {
  const keys = activationKeysOf(recordKeys, protocol, activation)
  if (keys === undefined || activation?.ctrData == null) return undefined
  const { activationId, ctrData: sealed } = activation
  const ctrData = unlessAltered(() => recordKeys.open(places.ctrData(activationId), sealed))
  return ctrData && { keys, ctrData }
}

/**
 * The private keys of an activation: KEY_SERVER_PRIVATE of protocol 3, or the signing keys of 4.0. Undefined if they, or the algorithm in the row,
 * were altered in the database.
 */
export function serverKeysOf(keys: RecordKeys, protocol: Protocol, activation: ReadActivationRow): SigningKeys | undefined {
  const place = places.serverPrivateKey(activation)
  const { algorithm, serverPrivateKey } = activation
  const form = algorithm ?? 'EC_P256'
  const read = readingAt(keys, place, (stored) => protocol.importSigningKeys(form, stored))
  return unlessAltered(() => keys.openCached(place, serverPrivateKey, read, { form }))
}
