// Opening an encrypted request (v3 §6.6, §7.4): version and scope, keys, window, MAC, decryption. Nothing is used up here.
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { staged } from '../../lib/trace.ts'
import type { OpenedEnvelope, Protocol } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { VersionRow } from '../../storage/activation/version.ts'
import type { UniqueValue } from '../../storage/unique-values.ts'
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
}

/** An opened request. */
export interface Opened {
  readonly plaintext: Uint8Array
  readonly seal: OpenedEnvelope['seal']
  /** What is used up once the request is found genuine as a whole. */
  readonly uniqueValues: readonly UniqueValue[]
}

export interface OpenedOfApplication extends Opened {
  readonly version: VersionRow
  readonly temporaryKeyId: string | undefined
  readonly keys: EnvelopeKeySelection
}

export interface OpenedOfActivation extends Opened {
  readonly version: VersionRow
  readonly activation: ActivationRow
}

/**
 * Opens an envelope in application scope. Refuses (`code`) everything that is wrong with it alike; the log knows which it was. `outer`: the
 * envelope of the same application key that it was found in; the key of that one is not read again.
 */
export const openOfApplication = staged(
  'open envelope',
  async (
    parts: ChannelParts,
    protocol: Protocol,
    request: EnvelopeToOpen,
    code: ErrorCode,
    outer?: OpenedOfApplication,
  ): Promise<OpenedOfApplication> => {
    const { temporaryKeyId } = request.envelope
    const { version } = request.parties
    const isKeyKnown = outer !== undefined && outer.temporaryKeyId === temporaryKeyId
    const keys = isKeyKnown ? outer.keys : await selectEnvelopeKeys(parts, protocol, request)
    const opened = open(parts, protocol, request, keys, { isVersionChecked: true, isActivationRight: true })
    if (opened === undefined || version === undefined) throw new PawlError(code, { detail: 'the envelope does not open' })
    return { ...opened, version, temporaryKeyId, keys }
  },
)

/** Opens an envelope in activation scope. Refuses (`code`) everything that is wrong with it alike; the log knows which it was. */
export const openOfActivation = staged(
  'open envelope',
  async (
    parts: ChannelParts,
    protocol: Protocol,
    request: EnvelopeToOpen,
    { isStateChecked, isVersionChecked }: ActivationTerms,
    code: ErrorCode,
  ): Promise<OpenedOfActivation> => {
    const { version, activation } = request.parties
    const isActivationRight = isOwn(request.parties) && (!isStateChecked || activation?.state === 'ACTIVE')
    const keys = await selectEnvelopeKeys(parts, protocol, request)
    const opened = open(parts, protocol, request, keys, { isVersionChecked, isActivationRight })
    if (opened === undefined || version === undefined || activation === undefined)
      throw new PawlError(code, { detail: 'the envelope does not open' })
    return { ...opened, version, activation }
  },
)

/** Undefined for everything that is wrong with it. */
function open(
  parts: ChannelParts,
  protocol: Protocol,
  { context, envelope, parties, isUsed }: EnvelopeToOpen,
  keys: EnvelopeKeySelection,
  { isVersionChecked, isActivationRight }: { readonly isVersionChecked: boolean; readonly isActivationRight: boolean },
): Opened | undefined {
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
  if (isUsed) return refuse('used before')
  return { plaintext: opened.plaintext, seal: opened.seal, uniqueValues: value === undefined ? [] : [value] }
}
