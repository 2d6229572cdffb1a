// Describes envelopes for the OpenAPI document, each with the schema of its plaintext.
import { type TSchema, Type } from '@sinclair/typebox'
import type { Protocol } from '../protocol/protocol.ts'

type Generation = Protocol['path']

/** The request envelope of each generation, around a plaintext. */
export const describeRequestEnvelope = (generations: readonly Generation[], plaintext: TSchema): TSchema =>
  oneOf(generations.map((generation) => withPlaintext(ENVELOPES[generation].request, plaintext)))

/** The answer's envelope of each generation, around a plaintext. */
export const describeResponseEnvelope = (generations: readonly Generation[], plaintext: TSchema): TSchema =>
  oneOf(generations.map((generation) => withPlaintext(ENVELOPES[generation].response, plaintext)))

/** The outer plaintext whose member `activationData` is an envelope of its own. */
export function describeNested(generations: readonly Generation[], outer: TSchema, inner: TSchema): TSchema {
  const activationData = describeRequestEnvelope(generations.slice(0, 1), inner)
  return Type.Object({ ...(outer['properties'] as Record<string, TSchema>), activationData })
}

const oneOf = (schemas: TSchema[]): TSchema => {
  const [first, ...others] = schemas
  return first !== undefined && others.length === 0 ? first : Type.Union(schemas)
}

/** An envelope, with the schema of its plaintext as its content. */
function withPlaintext(envelope: TSchema, plaintext: TSchema): TSchema {
  const { encryptedData, ...others } = envelope['properties'] as Record<string, TSchema>
  const opened = { contentMediaType: 'application/json', contentSchema: plaintext }
  return Type.Object({ encryptedData: { ...encryptedData, ...opened } as TSchema, ...others })
}

const Bytes = (description: string) =>
  Type.String({ contentEncoding: 'base64', description: `Base64, ${description}`, examples: ['AAECAwQFBgcICQoLDA0ODw=='] })
const Timestamp = Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })

const KeyId = Type.String({ description: 'key of keystore/create', examples: ['5a9e1a2b-6f4d-4c1e-9b0a-3d2c1b0a9f8e'] })

/** A version of v3 sends exactly the members that it defines (v3 §6.5); v4 has one form (v4 §5.1). */
const ENVELOPES: Record<Generation, { readonly request: TSchema; readonly response: TSchema }> = {
  v3: {
    request: Type.Object({
      ephemeralPublicKey: Bytes('point of P-256'),
      encryptedData: Bytes('ciphertext'),
      mac: Bytes('32 bytes'),
      nonce: Type.Optional(Bytes('16 bytes, from 3.1')),
      timestamp: Type.Optional({ ...Timestamp, description: `${Timestamp.description}, from 3.2` }),
      temporaryKeyId: Type.Optional({ ...KeyId, description: `${KeyId.description}, from 3.3` }),
    }),
    response: Type.Object({
      encryptedData: Bytes('ciphertext'),
      mac: Bytes('32 bytes'),
      nonce: Type.Optional(Bytes('16 bytes, from 3.2')),
      timestamp: Type.Optional({ ...Timestamp, description: `${Timestamp.description}, from 3.2` }),
    }),
  },
  v4: {
    request: Type.Object({
      temporaryKeyId: KeyId,
      encryptedData: Bytes('nonce of 12 bytes, tag of 32 bytes, ciphertext'),
      nonce: Bytes('24 bytes: nonces of request and answer'),
      timestamp: Timestamp,
    }),
    response: Type.Object({
      encryptedData: Bytes('nonce of 12 bytes, tag of 32 bytes, ciphertext'),
      timestamp: Timestamp,
    }),
  },
}
