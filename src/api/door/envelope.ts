// Reads the envelope that a phone sent to a bank, and opens it by the stages of pawl's own endpoints (cloud §13.1).
import { findContext } from '../../channel/stages/envelope.ts'
import { type Opened, openOfActivation, openOfApplication } from '../../channel/stages/open.ts'
import { envelopeKeyValue, envelopeValue } from '../../channel/replay.ts'
import { type DeviceRequest, type Received, receive } from '../../channel/stages/receive.ts'
import { parseJson } from '../../http/raw-body.ts'
import { isJsonObject } from '../../lib/json.ts'
import { PawlError } from '../../lib/errors.ts'
import type { AuthorizationHeader, EncryptionHeader, Envelope, EnvelopeContext, Protocol } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { DoorEnvelope } from '../../storage/request/door-envelopes.ts'
import type { CloudParts } from '../cloud/parts.ts'

export type ScopeName = 'APPLICATION' | 'ACTIVATION'

/** An envelope that is not opened yet, with its headers. */
export interface SealedRequest {
  readonly received: Received
  /** Undefined when the phone sent an encryption header. */
  readonly authorization: AuthorizationHeader | undefined
  readonly context: EnvelopeContext
  readonly envelope: Envelope
}

export interface OpenedRequest extends Opened {
  /** Undefined in application scope. */
  readonly activation: ActivationRow | undefined
}

/**
 * Reads header and envelope. Throws ENCRYPTION_FAILED for every fault of the phone, and logs the reason. `parse` makes the envelope from the version
 * and application key of the header.
 */
export function readSealed(
  { protocols, events }: Pick<CloudParts, 'protocols' | 'events'>,
  scope: ScopeName,
  sent: DeviceRequest,
  parse: (protocol: Protocol, context: EnvelopeContext) => Envelope,
): SealedRequest {
  const received = receive([protocols.v3, protocols.v4], sent, { isJson: false, contradiction: undefined })
  const { protocol, headers } = received
  const { authorization: signed, encryption, schemes } = headers
  const authorization = signed === undefined ? undefined : protocol.parseAuthorizationHeader(signed, schemes)
  const header: EncryptionHeader | undefined =
    authorization ?? (encryption === undefined ? undefined : protocol.parseEncryptionHeader(encryption, schemes))
  try {
    const context = findContext(header, PLACES[scope], CODE)
    return { received, authorization, context, envelope: parse(protocol, context) }
  } catch (error) {
    if (error instanceof PawlError)
      events.envelopeRefused({ activationId: header?.activationId, applicationKey: undefined, reason: error.message })
    throw error
  }
}

/**
 * Reads the rows that an envelope names, and the earlier answer to the same `Idempotency-Key`. An application other than the caller's counts as
 * unknown. `verdictKey` has 32 bytes, or is null if the request has no key.
 */
export async function findSealed(
  { authenticationStore, platform, settings }: CloudParts,
  applicationId: string,
  { context, envelope }: SealedRequest,
  verdictKey: Uint8Array | null,
): Promise<DoorEnvelope> {
  const found = await authenticationStore.findEnvelopeAtDoor({
    applicationKey: context.applicationKey,
    activationId: context.activationId ?? '',
    at: new Date(platform.now()),
    temporaryKeyId: envelope.temporaryKeyId ?? '',
    envelopeValue: envelopeValue(context, envelope, settings.requestWindowSeconds)?.valueHash ?? null,
    verdictKey,
  })
  const { version, activation } = found.parties
  if (version?.applicationId !== applicationId)
    return { ...found, parties: { version: undefined, activation: undefined }, temporaryKey: undefined }
  return { ...found, parties: { version, activation: activation?.applicationId === applicationId ? activation : undefined } }
}

/**
 * Opens an envelope with the rows that it names. Nothing is used up yet. The values to use up are those of pawl's own endpoints, and one for the keys
 * of the envelope. Because of that one, `/encryption/open` and the decryptor together open an envelope only once. `isRepeated` is true if it was
 * opened before under the same `Idempotency-Key`. Throws ENCRYPTION_FAILED for every fault of the envelope.
 */
export async function openSealed(
  parts: CloudParts,
  sealed: SealedRequest,
  seen: DoorEnvelope,
  isRepeated: boolean,
): Promise<OpenedRequest> {
  const { context, envelope } = sealed
  const { version, ...opened } = await openInScope(parts, sealed, seen, isRepeated)
  const owner = context.activationId ?? version.applicationId
  const terms = { now: parts.platform.now(), windowSeconds: parts.settings.requestWindowSeconds }
  const keys = envelopeKeyValue(envelope, context.scope, owner, terms)
  return { ...opened, uniqueValues: [...opened.uniqueValues, ...(keys === undefined ? [] : [keys])] }
}

async function openInScope(
  parts: CloudParts,
  { received: { protocol }, context, envelope }: SealedRequest,
  { parties, temporaryKey, isEnvelopeUsed }: DoorEnvelope,
  isRepeated: boolean,
): Promise<OpenedRequest & { readonly version: VersionRow }> {
  const toOpen = { context, envelope, parties, temporaryKey, isUsed: isEnvelopeUsed && !isRepeated }
  const within = isRepeated ? withLongerWindow(parts) : parts
  if (context.scope === 'ACTIVATION_SCOPE') return await openOfActivation(within, protocol, toOpen, 'ACTIVE', CODE)
  const opened = await openOfApplication(within, protocol, toOpen, CODE)
  if (!isOfActivation(opened.plaintext)) return { ...opened, activation: undefined }
  const applicationKey = context.applicationKey
  parts.events.envelopeRefused({ activationId: undefined, applicationKey, reason: 'a request of activation/create' })
  throw new PawlError(CODE, { detail: 'the envelope is one of activation/create' })
}

/** Widens the window for a repeated envelope, which was in the window when it was opened first. */
const withLongerWindow = (parts: CloudParts): CloudParts => ({
  ...parts,
  settings: {
    ...parts.settings,
    requestWindowSeconds: parts.settings.requestWindowSeconds + parts.settings.doorIdempotencySeconds,
  },
})

/** Whether a plaintext is the outer layer of activation/create. That layer has the same label, and holds activation codes. */
function isOfActivation(plaintext: Uint8Array): boolean {
  try {
    const json = parseJson(plaintext)
    return isJsonObject(json) && Object.hasOwn(json, 'type') && Object.hasOwn(json, 'activationData')
  } catch {
    return false
  }
}

/** The generic labels. A bank may open only these, because all others are for pawl's own endpoints. */
const PLACES = {
  APPLICATION: { scope: 'APPLICATION_SCOPE', sharedInfo1: '/pa/generic/application' },
  ACTIVATION: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/generic/activation' },
} as const
const CODE = 'ENCRYPTION_FAILED'
