// Sentences with which flows describe themselves.
import type { Factors } from '../../protocol/protocol.ts'
import type { EnvelopePlace } from '../stages/envelope.ts'

export const describeEncryption = ({ scope, sharedInfo1 }: EnvelopePlace): string =>
  `Encrypted in ${scope === 'ACTIVATION_SCOPE' ? 'activation' : 'application'} scope, label \`${sharedInfo1}\`.`

/** `factors`: undefined where a setting of the application decides. */
export const describeCode = (
  { resourceId, factors }: { readonly resourceId: string; readonly factors: readonly Factors[] | undefined },
  covered: 'the body as sent' | 'the decrypted body',
): string =>
  `Authentication code over resource id \`${resourceId}\` and ${covered}. Factors: ${factors?.join(', ') ?? 'by setting'}.`

export const describeToken = (factors: readonly Factors[]): string => `Token made with factors: ${factors.join(', ')}.`
