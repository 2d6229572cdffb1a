// Configuration items as phones get them (v4 §9.11).
import { Type } from '@sinclair/typebox'

/** Plaintext of the answer of both endpoints. */
export const Configuration = Type.Object({
  config: Type.Array(
    Type.Object({
      key: Type.String({ examples: ['payments.limit'] }),
      value: Type.Unknown({ examples: [{ daily: 500 }], description: 'any JSON value' }),
      scope: Type.String({ enum: ['APPLICATION', 'ACTIVATION'] }),
    }),
  ),
})
