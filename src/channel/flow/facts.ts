// With what flows describe themselves.
import type { TSchema } from '@sinclair/typebox'
import type { Factors } from '../../protocol/protocol.ts'
import type { BodyFacts } from '../endpoint.ts'
import type { EnvelopePlace } from '../stages/envelope.ts'

export const describeEncryption = ({ scope, sharedInfo1 }: EnvelopePlace): string =>
  `Encrypted in ${scope === 'ACTIVATION_SCOPE' ? 'activation' : 'application'} scope, label \`${sharedInfo1}\`.`

/** `factors`: a function where a setting of the application decides. */
export const describeCode = (
  {
    resourceId,
    factors,
  }: { readonly resourceId: string; readonly factors: readonly Factors[] | ((...given: never[]) => unknown) },
  covered: 'the body as sent' | 'the decrypted body',
): string => {
  const allowed = typeof factors === 'function' ? 'by setting' : factors.join(', ')
  return `Authentication code over resource id \`${resourceId}\` and ${covered}. Factors: ${allowed}.`
}

export const describeToken = (factors: readonly Factors[]): string => `Token made with factors: ${factors.join(', ')}.`

/** JSON of a schema; without one the body is not read. */
export const jsonOr = (otherwise: 'none' | 'bytes', schema: TSchema | undefined): BodyFacts =>
  schema === undefined ? { kind: otherwise } : { kind: 'json', schema }
