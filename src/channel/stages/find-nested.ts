// What an envelope with another one in it names, and what waits for the code within, as it is stored: one read where the key of the envelope
// is known to this process, else two.
import type { PendingUse } from '../../domain/activation/pending-use.ts'
import type { Envelope, EnvelopeContext } from '../../protocol/protocol.ts'
import type { ExchangeBasis } from '../../storage/activation/exchange-basis.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { ChannelParts } from '../parts.ts'
import { envelopeValue } from '../replay.ts'
import type { EnvelopeToOpen } from './envelope-keys.ts'
import { findEnvelope } from './find-proofs.ts'

/** An envelope with its context. */
interface Sealed {
  readonly context: EnvelopeContext
  readonly envelope: Envelope
}

export interface FoundNested {
  readonly toOpen: EnvelopeToOpen
  /**
   * What waits for a code, and whether a value that the request may use was used before. The first answer may be of the same statement as
   * `toOpen`, later ones are read.
   */
  readonly readBasis: (codeHash: Uint8Array | null, pending: PendingUse) => Promise<ExchangeBasis>
}

/** `within`: the inner envelope and the code, null where there is none; undefined where they are not known before the outer one is opened. */
export const findNested = async (
  parts: ChannelParts,
  outer: Sealed,
  within: { readonly inner: Sealed; readonly codeHash: Uint8Array | null } | undefined,
): Promise<FoundNested> => {
  const { readExchangeBasis, platform, settings } = parts
  const read = (codeHash: Uint8Array | null, [value, secondValue]: readonly (UniqueValue | undefined)[]) =>
    readExchangeBasis({
      applicationKey: outer.context.applicationKey,
      temporaryKeyId: outer.envelope.temporaryKeyId ?? '',
      codeHash,
      value: value?.valueHash ?? null,
      secondValue: secondValue?.valueHash ?? null,
      at: new Date(platform.now()),
    })
  const valueOf = ({ context, envelope }: Sealed) => envelopeValue(context, envelope, settings.requestWindowSeconds)
  let known = within && (await read(within.codeHash, [valueOf(outer), valueOf(within.inner)]))
  return {
    toOpen: known === undefined ? await findEnvelope(parts, outer.context, outer.envelope) : toRequest(outer, known),
    readBasis: async (codeHash, pending) => {
      const first = known
      known = undefined
      return first ?? read(codeHash, pending.left())
    },
  }
}

const toRequest = (sealed: Sealed, { version, temporaryKey, isUsed }: ExchangeBasis): EnvelopeToOpen => ({
  ...sealed,
  parties: { version, activation: undefined },
  temporaryKey,
  isUsed,
})
