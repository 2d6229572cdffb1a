// A look into an envelope of an application before anything of the request is read. It finds out what to ask the database for, and decides
// nothing: the envelope is opened again with what is read, and every refusal is that of the second opening.
import type { Envelope, EnvelopeContext, EnvelopeKeys, OpenedEnvelope, Protocol } from '../../protocol/protocol.ts'
import type { ChannelParts } from '../parts.ts'
import { applicationSecretOf } from '../secrets.ts'
import { type EnvelopeToOpen, selectEnvelopeKeys } from './envelope-keys.ts'
import { unlessRefused } from './parse.ts'

/** The same envelope, whose opening is computed once for the same keys. */
export function openedOnce(envelope: Envelope): Envelope {
  let last: { readonly keys: EnvelopeKeys; readonly opened: OpenedEnvelope | undefined } | undefined
  return {
    ...envelope,
    open: (keys) => {
      if (last === undefined || !areSame(last.keys, keys)) last = { keys, opened: envelope.open(keys) }
      return last.opened
    },
  }
}

/**
 * What `read` makes of the plaintext, when this process knows the key of the envelope; undefined when it does not, or when something is
 * wrong with the envelope or its content.
 */
export async function glimpse<Content>(
  parts: ChannelParts,
  protocol: Protocol,
  { context, envelope }: { readonly context: EnvelopeContext; readonly envelope: Envelope },
  read: (plaintext: Uint8Array) => Content,
): Promise<Content | undefined> {
  const known = envelope.temporaryKeyId === undefined ? undefined : parts.recentKeys.recall(envelope.temporaryKeyId)
  if (known === undefined) return undefined
  const { version, temporaryKey } = known
  const request = { context, envelope, parties: { version, activation: undefined }, temporaryKey, isUsed: false }
  const { envelopeKey } = await selectEnvelopeKeys(parts, protocol, request)
  if (envelopeKey === undefined) return undefined
  const decoy = parts.decoys[protocol.path]
  const applicationSecret = applicationSecretOf(parts.recordKeys, decoy, version)
  const opened = envelope.open({ applicationSecret, envelopeKey, activationKeys: decoy.activationKeys })
  return opened && unlessRefused(() => read(opened.plaintext))
}

/** Remembers the key of an envelope that was opened. */
export function rememberKey({ recentKeys }: ChannelParts, { parties: { version }, temporaryKey }: EnvelopeToOpen): void {
  if (version !== undefined && temporaryKey !== undefined) recentKeys.remember({ version, temporaryKey })
}

const areSame = (one: EnvelopeKeys, other: EnvelopeKeys): boolean =>
  one.applicationSecret === other.applicationSecret &&
  one.envelopeKey === other.envelopeKey &&
  one.activationKeys === other.activationKeys
