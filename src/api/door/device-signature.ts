// POST /verification/device-signature: verifies data that a phone signed with its device keys. Spec: cloud §14.1.
import { type Static, Type } from '@sinclair/typebox'
import { OneOf } from '../../http/types.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { requestRefused } from '../../lib/errors.ts'
import { parseSignedJws } from '../../protocol/wire/signed-jws.ts'
import type { SignatureAlgorithm } from '../../protocol/protocol.ts'
import { applicationOf } from '../cloud/application-of.ts'
import { cloudEndpoint } from '../cloud/endpoint.ts'
import { MadeId } from '../cloud/fields.ts'
import { Algorithm, DOOR_ROLES, SignatureVerdict, States } from './members.ts'
import { judgeSignatures, type SentSignature, type SentSignatures } from './judge-signatures.ts'

type KeyName = 'ECDSA' | 'ML_DSA_65' | 'ML_DSA_87'
type Format = 'DER' | 'JOSE' | 'RAW'

const EXAMPLE_ID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

const Request = Type.Object(
  {
    activationId: MadeId,
    data: Type.Optional(Type.String({ description: 'Base64 of what was signed, at most 128 KiB' })),
    signature: Type.Optional(Type.String({ description: 'Base64, as the phone sent it' })),
    format: Type.Optional(OneOf<Format>(['DER', 'JOSE', 'RAW'], { description: 'of ECDSA DER or JOSE, of ML-DSA RAW' })),
    algorithm: Type.Optional(OneOf(['ECDSA', 'ML_DSA'])),
    jws: Type.Optional(Type.String({ description: 'a JWS in place of the four above: compact, or JSON as text' })),
    keys: Type.Optional(
      Type.Array(OneOf<KeyName>(['ECDSA', 'ML_DSA_65', 'ML_DSA_87']), {
        minItems: 1,
        description: 'keys whose signatures are enough; without it, all that the activation has',
      }),
    ),
    states: Type.Optional(States),
  },
  {
    examples: [
      { activationId: EXAMPLE_ID, data: 'cGF5IDEwMCBFVVI=', signature: 'MEUCIQDcPHNjYPjLQ7iYoQ==', format: 'DER' },
      { activationId: EXAMPLE_ID, jws: 'eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.cGF5IDEwMCBFVVI.q1w2e3', keys: ['ECDSA'] },
    ],
  },
)

export const deviceSignature = cloudEndpoint({
  route: 'POST /verification/device-signature',
  operationId: 'verifyDeviceSignature',
  summary: 'Whether a phone signed data with its device keys',
  description:
    'Either `data` and `signature`, or `jws`. Valid when every device key of the activation has signed; `keys` may name fewer that are enough, as ' +
    'for a compact JWS of a phone that has two. `states`: those in which a signature is good, `ACTIVE` alone by default. ' +
    '**The same signature is valid again and again**: no counter moves and nothing is used up. The data must say what they are for, and have a ' +
    'number or a nonce of their own that the bank takes once.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: DOOR_ROLES,
  body: Request,
  response: Type.Object(
    {
      ...SignatureVerdict,
      verified: Type.Array(Algorithm, { description: 'the keys of this activation whose signature is right' }),
      payload: Type.Optional(Type.String({ description: 'of a valid JWS: what was signed, in Base64' })),
    },
    {
      title: 'DeviceSignatureVerdict',
      examples: [
        {
          isValid: true,
          activationId: EXAMPLE_ID,
          userId: 'alice',
          state: 'ACTIVE',
          verified: ['ES384', 'ML-DSA-65'],
        },
        { isValid: false, reason: 'UNKNOWN', verified: [] },
      ],
    },
  ),
  async handle(call) {
    const { activationId } = call.body
    const sent = readDeviceSignature(call.body)
    const applicationId = await applicationOf(call)
    const { activation, verified, ...judged } = await judgeSignatures({ ...call, applicationId }, DOOR, activationId, sent)
    return {
      ...judged,
      ...activation,
      verified: [...verified],
      ...(judged.isValid && sent?.form === 'JWS' && { payload: toBase64(sent.data) }),
    }
  },
})

const DOOR = { path: '/verification/device-signature', type: 'device_signature' } as const

/** The body of a request. With `isOneEnough`, one right signature is enough, even if the activation has two keys. */
export type SignatureToVerify = Static<typeof Request> & { readonly isOneEnough?: boolean }

/** Reads the signatures of a body. Undefined when the data of the phone cannot be read. Throws REQUEST_INVALID for a fault of the bank. */
export function readDeviceSignature(body: SignatureToVerify): SentSignatures | undefined {
  const { jws, data, signature, format, algorithm, keys, states = ['ACTIVE'], isOneEnough = false } = body
  const isEnough = (verified: readonly SignatureAlgorithm[], all: readonly SignatureAlgorithm[]): boolean =>
    isOneEnough
      ? verified.length > 0
      : keys === undefined
        ? verified.length === all.length
        : keys.every((name) => verified.some((one) => nameOf(one) === name))
  if (jws === undefined) {
    const plain = readPlain(body)
    return plain && { ...plain, states, isEnough }
  }
  const beside = Object.entries({ data, signature, format, algorithm }).find(([, value]) => value !== undefined)
  if (beside !== undefined) throw requestRefused(beside[0], 'must not stand beside jws')
  if (jws.length > JWS_LENGTH_MAX) throw requestRefused('jws', `must have at most ${JWS_LENGTH_MAX} characters`)
  const parsed = parseSignedJws(jws)
  const signatures = parsed?.signatures.map(
    (one): SentSignature => ({ ...one, fits: (key) => key.algorithm === one.algorithm, form: JOSE, looksLike: one.algorithm }),
  )
  return parsed && signatures && { form: 'JWS', data: parsed.payload, signatures, states, isEnough }
}

function readPlain(given: Pick<Static<typeof Request>, 'data' | 'signature' | 'format' | 'algorithm'>) {
  const { data: dataText, signature: signatureText, algorithm = 'ECDSA', format = algorithm === 'ECDSA' ? 'DER' : 'RAW' } = given
  if (dataText === undefined || signatureText === undefined)
    throw requestRefused(dataText === undefined ? 'data' : 'signature', 'must be present, or jws')
  if ((algorithm === 'ML_DSA') !== (format === 'RAW'))
    throw requestRefused('format', 'must be RAW for ML_DSA, DER or JOSE for ECDSA')
  const data = parseBase64(dataText)
  if (data === undefined || data.length > DATA_BYTES_MAX)
    throw requestRefused('data', `must be Base64 of at most ${DATA_BYTES_MAX} bytes`)
  const signature = parseBase64(signatureText)
  if (signature === undefined) return undefined
  const fits: SentSignature['fits'] = (key) => (algorithm === 'ECDSA') === (nameOf(key.algorithm) === 'ECDSA')
  const one = {
    fits,
    covered: data,
    signature,
    looksLike: guess(algorithm, signature.length),
    ...(format === 'JOSE' && { form: JOSE }),
  }
  return { form: format, data, signatures: [one] }
}

/** The algorithm that a signature of this length seems to have. The two algorithms of each kind differ in their lengths. */
const guess = (algorithm: 'ECDSA' | 'ML_DSA', length: number): SignatureAlgorithm =>
  algorithm === 'ECDSA' ? (length > ES256_LENGTH_MAX ? 'ES384' : 'ES256') : length > ML_DSA_65_LENGTH ? 'ML-DSA-87' : 'ML-DSA-65'

const nameOf = (algorithm: SignatureAlgorithm): KeyName =>
  algorithm === 'ML-DSA-65' ? 'ML_DSA_65' : algorithm === 'ML-DSA-87' ? 'ML_DSA_87' : 'ECDSA'

/** The encoding r ‖ s of JOSE. */
const JOSE = { dsaEncoding: 'ieee-p1363' } as const
/** The longest ES256 signature in DER, in bytes. */
const ES256_LENGTH_MAX = 72
const ML_DSA_65_LENGTH = 3309
const DATA_BYTES_MAX = 128 * 1024
/** Room for a payload of DATA_BYTES_MAX bytes in Base64url, and two signatures. */
const JWS_LENGTH_MAX = 192 * 1024
