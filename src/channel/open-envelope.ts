// Opening an encrypted request (v3 §6.6, §7.4): version and scope, keys, window, MAC, decryption. Nothing is used up here.
import type { KeyObject } from 'node:crypto'
import { findSigningMasterKeys } from '../domain/master-keys.ts'
import { places } from '../domain/secrets.ts'
import type { ActivationKeys, Envelope, EnvelopeContext, OpenedEnvelope, Protocol } from '../protocol/protocol.ts'
import { findUpgradedParties } from '../storage/activation-upgrades.ts'
import { type ActivationRow, findRequestParties, type RequestParties } from '../storage/activations.ts'
import { findTemporaryKey } from '../storage/temporary-keys.ts'
import { anyUniqueValueUsed, type UniqueValue } from '../storage/unique-values.ts'
import type { ChannelParts } from './parts.ts'
import { envelopeValue, isInWindow } from './replay.ts'
import { activationKeysOf, applicationSecretOf, serverKeysOf } from './secrets.ts'

export interface OpenRequest {
  readonly context: EnvelopeContext
  readonly envelope: Envelope
  /** The activation must be ACTIVE; otherwise the endpoint's code decides that. */
  readonly isStateChecked: boolean
  /** The version must be supported; otherwise the endpoint's code decides that. */
  readonly isVersionChecked: boolean
  /** The activation is seen as a pending upgrade makes it. */
  readonly isUpgradeSeen: boolean
}

export interface Opened {
  readonly envelope: OpenedEnvelope
  readonly temporaryKeyId: string | undefined
  /** What is used up once the request is found genuine as a whole. */
  readonly uniqueValues: readonly UniqueValue[]
  /** The activation in activation scope. */
  readonly activation: ActivationRow | undefined
}

/** Opens an envelope; undefined for everything that is wrong with it. The log knows which. */
export async function openRequest(parts: ChannelParts, protocol: Protocol, request: OpenRequest): Promise<Opened | undefined> {
  const { context, envelope, isStateChecked, isVersionChecked, isUpgradeSeen } = request
  const at = new Date(parts.platform.now())
  const find = isUpgradeSeen ? findUpgradedParties : findRequestParties
  const parties = await find(parts.db, context.applicationKey, context.activationId ?? '', at)
  const refuse = (reason: string): undefined => {
    // The key as stored: what a stranger sends in its place may be a secret.
    const applicationKey = parties.version?.applicationKey
    parts.events.envelopeRefused({ activationId: context.activationId, applicationKey, reason })
  }
  const keys = await selectKeys(parts, protocol, request, parties)
  const decoy = parts.decoys[protocol.path]
  // Always computed, with decoy keys where the right ones are missing: see secrets.ts.
  const opened = envelope.open({
    applicationSecret: applicationSecretOf(parts.recordKeys, decoy, parties.version),
    envelopeKey: keys.envelopeKey ?? decoy.envelopeKey,
    activationKeys: keys.activationKeys ?? decoy.activationKeys,
  })
  if (parties.version === undefined) return refuse('application version unknown')
  if (isVersionChecked && !parties.version.isSupported) return refuse('application version unsupported')
  if (keys.envelopeKey === undefined) return refuse(keys.missing)
  if (opened === undefined) return refuse('wrong MAC or padding')
  if (context.scope === 'ACTIVATION_SCOPE' && !isUsable(parties, isStateChecked))
    return refuse('activation unknown, foreign or not active')
  const { requestWindowSeconds } = parts.settings
  if (envelope.timestamp !== undefined && !isInWindow(parts.platform.now(), envelope.timestamp, requestWindowSeconds)) {
    return refuse('timestamp outside the window')
  }
  const value = envelopeValue(context, envelope, requestWindowSeconds)
  const uniqueValues = value === undefined ? [] : [value]
  if (await anyUniqueValueUsed(parts.db, uniqueValues)) return refuse('used before')
  return { envelope: opened, temporaryKeyId: envelope.temporaryKeyId, uniqueValues, activation: parties.activation }
}

interface SelectedKeys {
  readonly envelopeKey: KeyObject | undefined
  readonly activationKeys: ActivationKeys | undefined
  readonly missing: string
}

/** The key the version demands: temporary, server or master (v3 §6, table). */
async function selectKeys(
  parts: ChannelParts,
  protocol: Protocol,
  request: OpenRequest,
  parties: RequestParties,
): Promise<SelectedKeys> {
  const { context, envelope } = request
  const activation = isOwn(parties) ? parties.activation : undefined
  const activationKeys = activationKeysOf(parts.recordKeys, protocol, activation)
  if (envelope.temporaryKeyId !== undefined) {
    return {
      envelopeKey: await findTemporaryKeyOf(parts, protocol, context, envelope.temporaryKeyId),
      activationKeys,
      missing: 'temporary key missing',
    }
  }
  if (context.scope === 'ACTIVATION_SCOPE') {
    // The server keys of another generation are no keys of this envelope.
    const envelopeKey = activation && activationKeys && serverKeysOf(parts.recordKeys, protocol, activation).ecdsa
    return { envelopeKey, activationKeys, missing: 'activation unknown or foreign' }
  }
  const masterKeys = parties.version && (await findSigningMasterKeys(parts, parties.version.applicationId, 'EC_P256'))
  return { envelopeKey: masterKeys?.ecdsa, activationKeys: undefined, missing: 'application unknown' }
}

/** A temporary key serves the application key and the activation it was made for, until it expires (v3 §7.4). */
async function findTemporaryKeyOf(
  parts: ChannelParts,
  protocol: Protocol,
  context: EnvelopeContext,
  id: string,
): Promise<KeyObject | undefined> {
  const row = await findTemporaryKey(parts.db, id)
  if (row === undefined || row.expiresAt.getTime() <= parts.platform.now()) return undefined
  if (row.applicationKey !== context.applicationKey || row.activationId !== (context.activationId ?? null)) return undefined
  const place = places.temporaryPrivateKey(row.temporaryKeyId)
  // Keys of both generations stand in one table, and whoever has one may name it in an envelope of the other.
  const build = (stored: Uint8Array) => ({ key: protocol.importEnvelopeKey(stored) })
  return parts.recordKeys.openCached(place, row.privateKey, build, protocol.path).key
}

const isOwn = ({ version, activation }: RequestParties): boolean =>
  version !== undefined && version.applicationId === activation?.applicationId

const isUsable = (parties: RequestParties, isStateChecked: boolean): boolean =>
  isOwn(parties) && (!isStateChecked || parties.activation?.state === 'ACTIVE')
