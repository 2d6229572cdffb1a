// Opens an encrypted request (v3 §6.6, §7.4): version and scope, keys, window, MAC, decryption. Nothing is used up here.
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { OpenedEnvelope, Protocol } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { ChannelParts } from '../parts.ts'
import { envelopeValue, isInWindow } from '../replay.ts'
import { applicationSecretOf } from '../secrets.ts'
import {
  type EnvelopeKeySelection,
  type EnvelopePolicy,
  type EnvelopeToOpen,
  isOwn,
  selectEnvelopeKeys,
} from './envelope-keys.ts'

/** An opened request. */
export interface Opened {
  readonly plaintext: Uint8Array
  readonly seal: OpenedEnvelope['seal']
  readonly exportAnswerKeys: OpenedEnvelope['exportAnswerKeys']
  /** The values that are used up after the last check of the request. */
  readonly uniqueValues: readonly UniqueValue[]
}

/** An opened request with the application version whose keys opened it. */
interface OpenedUnderVersion extends Opened {
  readonly version: VersionRow
}

interface OpenedOfApplication extends OpenedUnderVersion {
  readonly temporaryKeyId: string | undefined
  readonly keys: EnvelopeKeySelection
}

interface OpenedOfActivation extends OpenedUnderVersion {
  readonly activation: ActivationRow
}

/**
 * Opens an envelope in application scope. Throws `code` for every fault of it; only the log names the fault. `outer` is the envelope around it, with
 * the same application key. Its keys are reused if both have the same temporary key.
 */
export async function openOfApplication(
  parts: ChannelParts,
  protocol: Protocol,
  request: EnvelopeToOpen,
  code: ErrorCode,
  outer?: OpenedOfApplication,
): Promise<OpenedOfApplication> {
  const { temporaryKeyId } = request.envelope
  const known = outer?.temporaryKeyId === temporaryKeyId ? outer?.keys : undefined
  const terms = { isVersionChecked: true, isActivationRight: true, code }
  return await inStage('open envelope', async () => {
    const keys = known ?? (await selectEnvelopeKeys(parts, protocol, request))
    return { ...open(parts, protocol, request, keys, terms), temporaryKeyId, keys }
  })
}

/** Opens an envelope in activation scope. Throws `code` for every fault of it; only the log names the fault. */
export async function openOfActivation(
  parts: ChannelParts,
  protocol: Protocol,
  request: EnvelopeToOpen,
  opensFor: EnvelopePolicy,
  code: ErrorCode,
): Promise<OpenedOfActivation> {
  const { activation } = request.parties
  const isActivationRight = isOwn(request.parties) && (opensFor !== 'ACTIVE' || activation?.state === 'ACTIVE')
  const isVersionChecked = opensFor === 'ACTIVE' || opensFor === 'ANY_STATE'
  const terms = { isVersionChecked, isActivationRight, code }
  const opened = await inStage('open envelope', async () => {
    const keys = await selectEnvelopeKeys(parts, protocol, request)
    return open(parts, protocol, request, keys, terms)
  })
  // Without an activation the envelope does not open.
  if (activation === undefined) throw new TypeError('an opened envelope of no activation')
  return { ...opened, activation }
}

interface OpenTerms {
  readonly isVersionChecked: boolean
  readonly isActivationRight: boolean
  readonly code: ErrorCode
}

/** Opens an envelope with selected keys. Throws `code` for every fault of it. */
function open(
  parts: ChannelParts,
  protocol: Protocol,
  { context, envelope, parties, isUsed }: EnvelopeToOpen,
  keys: EnvelopeKeySelection,
  { isVersionChecked, isActivationRight, code }: OpenTerms,
): OpenedUnderVersion {
  const { version } = parties
  const refuse = (reason: string): PawlError => {
    // The log gets the stored application key, because a stranger may have sent a secret in its place.
    parts.events.envelopeRefused({ activationId: context.activationId, applicationKey: version?.applicationKey, reason })
    return new PawlError(code, { detail: 'the envelope does not open' })
  }
  const decoy = parts.decoys[protocol.path]
  // This is always computed, with the keys of a decoy if the right ones are missing (secrets.ts).
  const opened = envelope.open({
    applicationSecret: applicationSecretOf(parts.recordKeys, decoy, version),
    envelopeKey: keys.envelopeKey ?? decoy.envelopeKey,
    activationKeys: keys.activationKeys ?? decoy.activationKeys,
  })
  if (version === undefined) throw refuse('application version unknown')
  if (isVersionChecked && !version.isSupported) throw refuse('application version unsupported')
  if (keys.envelopeKey === undefined) throw refuse(keys.missing)
  if (opened === undefined) throw refuse('wrong MAC or padding')
  if (!isActivationRight) throw refuse('activation unknown, foreign or not active')
  const { requestWindowSeconds } = parts.settings
  if (envelope.timestamp !== undefined && !isInWindow(parts.platform.now(), envelope.timestamp, requestWindowSeconds))
    throw refuse('timestamp outside the window')
  const value = envelopeValue(context, envelope, requestWindowSeconds)
  if (isUsed) throw refuse('used before')
  return { ...opened, version, uniqueValues: value === undefined ? [] : [value] }
}
