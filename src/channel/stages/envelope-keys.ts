// Selects the keys that open an envelope. They depend on the version of the protocol (v3 §6, table; v4 §5.5).
import { places, unlessAltered } from '../../domain/secrets/secrets.ts'
import type { ActivationKeys, Envelope, EnvelopeContext, EnvelopeKey, Protocol } from '../../protocol/protocol.ts'
import type { RequestParties } from '../../storage/request/lookup.ts'
import type { StatusProofs } from '../../storage/request/upgrade.ts'
import type { TemporaryKeyRow } from '../../storage/application/temporary-keys.ts'
import type { ChannelParts } from '../parts.ts'
import { activationKeysOf, masterKeysOf, serverKeysOf } from '../secrets.ts'

/**
 * The activations for which an envelope opens. ACTIVE: only ACTIVE ones, under a supported version. ANY_STATE: activations in any state. ANY: also
 * under versions that are switched off. UPGRADING: as ANY, also with the keys of a pending upgrade (v4 §10.3). When such an envelope opens, the next
 * check of the endpoint refuses the request.
 */
export type EnvelopePolicy = 'ACTIVE' | 'ANY_STATE' | 'ANY' | 'UPGRADING'

/** An envelope to open, with the rows that it names. */
export interface EnvelopeToOpen {
  readonly context: EnvelopeContext
  readonly envelope: Envelope
  readonly parties: RequestParties
  /** The temporary key of the envelope, which may have expired. */
  readonly temporaryKey: TemporaryKeyRow | undefined
  /** Whether its value was used before; false if that was not looked up. */
  readonly isUsed: boolean
  /** The custom object of the application, read only for an upgrade; null without one. */
  readonly customObject?: StatusProofs['customObject']
}

/** The selected keys; undefined when there are none, and `missing` then gives the log the reason. */
export interface EnvelopeKeySelection {
  readonly envelopeKey: EnvelopeKey | undefined
  readonly activationKeys: ActivationKeys | undefined
  readonly missing: string
}

/** Selects the key that the version demands: temporary, server or master (v3 §6, table). */
export async function selectEnvelopeKeys(
  parts: ChannelParts,
  protocol: Protocol,
  { context, envelope, parties, temporaryKey }: EnvelopeToOpen,
): Promise<EnvelopeKeySelection> {
  const activation = isOwn(parties) ? parties.activation : undefined
  const activationKeys = activationKeysOf(parts.recordKeys, protocol, activation)
  if (envelope.temporaryKeyId !== undefined) {
    return {
      envelopeKey: temporaryKey && openTemporaryKey(parts, protocol, context, temporaryKey),
      activationKeys,
      missing: 'temporary key missing',
    }
  }
  if (context.scope === 'ACTIVATION_SCOPE') {
    const { serverPrivateKey } = activation ?? {}
    // Server keys of another generation do not open this envelope.
    const serverKeys =
      activation &&
      serverPrivateKey &&
      activationKeys &&
      serverKeysOf(parts.recordKeys, protocol, { ...activation, serverPrivateKey })
    return { envelopeKey: serverKeys?.ecdsa, activationKeys, missing: 'activation unknown or foreign' }
  }
  const masterKeys = parties.version && (await masterKeysOf(parts, parties.version.applicationId, 'EC_P256'))
  return { envelopeKey: masterKeys?.ecdsa, activationKeys: undefined, missing: 'application unknown' }
}

/**
 * Opens a temporary key, which serves only the application key and the activation for which it was made, until it expires (v3 §7.4). A key that was
 * altered in the database serves nobody.
 */
function openTemporaryKey(
  parts: ChannelParts,
  protocol: Protocol,
  context: EnvelopeContext,
  row: TemporaryKeyRow,
): EnvelopeKey | undefined {
  if (row.expiresAt.getTime() <= parts.platform.now()) return undefined
  if (row.applicationKey !== context.applicationKey || row.activationId !== (context.activationId ?? null)) return undefined
  const place = places.temporaryPrivateKey(row.temporaryKeyId)
  // Keys of both generations are in one table, and a phone may name a key of one in an envelope of the other.
  const build = (stored: Uint8Array) => ({ key: protocol.importEnvelopeKey(stored) })
  const kept = { form: protocol.path, until: row.expiresAt.getTime() }
  return unlessAltered(() => parts.recordKeys.openCached(place, row.privateKey, build, kept))?.key
}

/** Whether the activation belongs to the application that the request names. */
export const isOwn = ({ version, activation }: RequestParties): boolean =>
  version !== undefined && version.applicationId === activation?.applicationId
