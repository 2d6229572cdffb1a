// Opening an encrypted request (v3 §6.6, §7.4): version and scope, keys, window, MAC, decryption. Nothing is used up here.
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { OpenedEnvelope, Protocol } from '../../protocol/protocol.ts'
import { findUpgradedParties } from '../../storage/activation/upgrade.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import { findRequestParties, type RequestParties } from '../../storage/activation/authentication.ts'
import { anyUniqueValueUsed, type UniqueValue } from '../../storage/unique-values.ts'
import type { ChannelParts } from '../parts.ts'
import { envelopeValue, isInWindow } from '../replay.ts'
import { applicationSecretOf } from '../secrets.ts'
import { type EnvelopeKeySelection, type EnvelopeToOpen, isOwn, selectEnvelopeKeys } from './envelope-keys.ts'

/** What a request in activation scope must be, apart from opening. */
export interface ActivationTerms {
  /** The activation must be ACTIVE; otherwise what the endpoint checks next decides that. */
  readonly isStateChecked: boolean
  /** The version must be supported; otherwise what the endpoint checks next decides that. */
  readonly isVersionChecked: boolean
  /** The activation is seen as a pending upgrade makes it (v4 §10.3). */
  readonly isUpgradeSeen: boolean
}

/** An opened request. */
export interface Opened {
  readonly plaintext: Uint8Array
  readonly seal: OpenedEnvelope['seal']
  /** What is used up once the request is found genuine as a whole. */
  readonly uniqueValues: readonly UniqueValue[]
}

/** Who sent a request and what opens it, as they were found. */
interface Found {
  readonly parties: RequestParties
  readonly temporaryKeyId: string | undefined
  readonly keys: EnvelopeKeySelection
}

export interface OpenedOfApplication extends Opened {
  readonly found: Found
}

export interface OpenedOfActivation extends Opened {
  readonly activation: ActivationRow
}

/**
 * Opens an envelope in application scope. Refuses (`code`) everything that is wrong with it alike; the log knows which it was. `outer`: the
 * envelope of the same application key that it was found in; what was read for that one is not read again.
 */
export async function openOfApplication(
  parts: ChannelParts,
  protocol: Protocol,
  request: EnvelopeToOpen,
  code: ErrorCode,
  outer?: OpenedOfApplication,
): Promise<OpenedOfApplication> {
  const { context, envelope } = request
  const at = new Date(parts.platform.now())
  const parties = outer?.found.parties ?? (await findRequestParties(parts.db, context.applicationKey, '', at))
  const isKeyKnown = outer !== undefined && outer.found.temporaryKeyId === envelope.temporaryKeyId
  const keys = isKeyKnown ? outer.found.keys : await selectEnvelopeKeys(parts, protocol, request, parties)
  const opened = await open(parts, protocol, request, { parties, keys }, { isVersionChecked: true, isActivationRight: true })
  if (opened === undefined) throw new PawlError(code, { detail: 'the envelope does not open' })
  return { ...opened, found: { parties, temporaryKeyId: envelope.temporaryKeyId, keys } }
}

/** Opens an envelope in activation scope. Refuses (`code`) everything that is wrong with it alike; the log knows which it was. */
export async function openOfActivation(
  parts: ChannelParts,
  protocol: Protocol,
  request: EnvelopeToOpen,
  { isStateChecked, isVersionChecked, isUpgradeSeen }: ActivationTerms,
  code: ErrorCode,
): Promise<OpenedOfActivation> {
  const { applicationKey, activationId = '' } = request.context
  const at = new Date(parts.platform.now())
  const find = isUpgradeSeen ? findUpgradedParties : findRequestParties
  const parties = await find(parts.db, applicationKey, activationId, at)
  const { activation } = parties
  const isActivationRight = isOwn(parties) && (!isStateChecked || activation?.state === 'ACTIVE')
  const keys = await selectEnvelopeKeys(parts, protocol, request, parties)
  const opened = await open(parts, protocol, request, { parties, keys }, { isVersionChecked, isActivationRight })
  if (opened === undefined || activation === undefined) throw new PawlError(code, { detail: 'the envelope does not open' })
  return { ...opened, activation }
}

/** Undefined for everything that is wrong with it. */
async function open(
  parts: ChannelParts,
  protocol: Protocol,
  { context, envelope }: EnvelopeToOpen,
  { parties, keys }: Omit<Found, 'temporaryKeyId'>,
  { isVersionChecked, isActivationRight }: { readonly isVersionChecked: boolean; readonly isActivationRight: boolean },
): Promise<Opened | undefined> {
  const refuse = (reason: string): undefined => {
    // The key as stored: what a stranger sends in its place may be a secret.
    const applicationKey = parties.version?.applicationKey
    parts.events.envelopeRefused({ activationId: context.activationId, applicationKey, reason })
  }
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
  if (!isActivationRight) return refuse('activation unknown, foreign or not active')
  const { requestWindowSeconds } = parts.settings
  if (envelope.timestamp !== undefined && !isInWindow(parts.platform.now(), envelope.timestamp, requestWindowSeconds))
    return refuse('timestamp outside the window')
  const value = envelopeValue(context, envelope, requestWindowSeconds)
  const uniqueValues = value === undefined ? [] : [value]
  if (await anyUniqueValueUsed(parts.db, uniqueValues)) return refuse('used before')
  return { plaintext: opened.plaintext, seal: opened.seal, uniqueValues }
}
