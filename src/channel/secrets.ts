// The keys of a device request: opened records, derived once and kept in memory while the record in the database is the same.
//
// What a request names may not exist, belong to somebody else, or be in the wrong state. It is then checked against a decoy, keys that
// nobody knows, so that a request with an unknown, a foreign or a wrong name takes the same steps and the same time and ends in the same
// refusal.
import { openApplicationSecret, places, unlessAltered } from '../domain/secrets/secrets.ts'
import type { RecordKeys } from '../domain/secrets/record-keys.ts'
import { toBase64 } from '../lib/base64.ts'
import type { Platform } from '../lib/platform.ts'
import type { ActivationKeys, DecoyKeys, Protocol, SigningKeys } from '../protocol/protocol.ts'
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

/** The application secret of a version, or the decoy's. */
export const applicationSecretOf = (keys: RecordKeys, decoy: Decoy, version: VersionRow | undefined): string =>
  version === undefined ? decoy.applicationSecret : openApplicationSecret(keys, version)

/**
 * The derived keys of an activation. Undefined unless it has exchanged keys under this protocol, and when its row was moved to another user or
 * application in the database.
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
      ? keys.openCached(place, masterSecret, deriveActivationKeys)
      : activationKeyBytes.parse(keys.openCached(place, masterSecret, activationKeyBytes.derive, { areBytes: true })),
  )
}

/** The same with the hash-based counter; undefined as well when that was altered in the database. */
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
 * The private keys of an activation: KEY_SERVER_PRIVATE of protocol 3, or those that sign for it in 4.0. Undefined when they were altered in the
 * database.
 */
export const serverKeysOf = (keys: RecordKeys, protocol: Protocol, activation: ReadActivationRow): SigningKeys | undefined =>
  unlessAltered(() =>
    keys.openCached(places.serverPrivateKey(activation), activation.serverPrivateKey, (stored) =>
      protocol.importSigningKeys(activation.algorithm ?? 'EC_P256', stored),
    ),
  )
