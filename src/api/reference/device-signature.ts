// signature/ecdsa/verify of 1.x, and dsa/verify and jwt/verify of 2.x: verify data that a phone signed with its device keys (cloud §15.3).
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { OneOf, OptionalOrNull } from '../../http/types.ts'
import { readDeviceSignature, type SignatureToVerify } from '../door/device-signature.ts'
import { DOOR_ROLES } from '../door/members.ts'
import { judgeSignatures } from '../door/judge-signatures.ts'
import { type Dialect, referenceEndpoint } from './endpoint.ts'
import { ActivationId } from './members.ts'

const Format = OneOf(['DER', 'JOSE'], { description: 'of ECDSA alone, DER by default' })

const SIGNED = {
  activationId: ActivationId,
  data: Type.String({ description: 'Base64 of what was signed, at most 128 KiB' }),
  signature: Type.String({ description: 'Base64, as the phone sent it' }),
  signatureFormat: OptionalOrNull(Format),
}

const deviceEndpoint = <B extends TSchema>(
  dialect: Dialect,
  path: string,
  operationId: string,
  request: B,
  read: (given: Static<B>) => SignatureToVerify,
) =>
  referenceEndpoint(dialect, {
    path,
    operationId,
    summary: 'Whether a phone signed data with its device keys',
    description:
      'Of an activation that is ACTIVE. **The same signature is valid again and again**: the data must have a number of their own.',
    roles: DOOR_ROLES,
    request,
    response: Type.Object({ signatureValid: Type.Boolean() }),
    async handle(call) {
      const asked = read(call.request)
      const door = { path: `/rest/${dialect.name}/${path}`, type: 'device_signature' } as const
      const { isValid } = await judgeSignatures(call, door, asked.activationId, readDeviceSignature(asked))
      return { signatureValid: isValid }
    },
  })

export const verifyEcdsa = (dialect: Dialect) =>
  deviceEndpoint(
    dialect,
    'signature/ecdsa/verify',
    'referenceVerifyEcdsa',
    Type.Object(SIGNED),
    ({ activationId, data, signature, signatureFormat }) => ({
      activationId,
      data,
      signature,
      algorithm: 'ECDSA',
      format: signatureFormat ?? 'DER',
      isOneEnough: true,
    }),
  )

export const verifyDsa = (dialect: Dialect) =>
  deviceEndpoint(
    dialect,
    'dsa/verify',
    'referenceVerifyDsa',
    Type.Object({ ...SIGNED, signatureType: OptionalOrNull(OneOf(['ECDSA', 'MLDSA'])) }),
    ({ activationId, data, signature, signatureType, signatureFormat }) =>
      // The caller verifies by one key, although the phone may have two.
      signatureType === 'MLDSA'
        ? { activationId, data, signature, algorithm: 'ML_DSA', format: 'RAW', isOneEnough: true }
        : { activationId, data, signature, algorithm: 'ECDSA', format: signatureFormat ?? 'DER', isOneEnough: true },
  )

export const verifyJwt = (dialect: Dialect) =>
  deviceEndpoint(
    dialect,
    'jwt/verify',
    'referenceVerifyJwt',
    Type.Object({
      activationId: ActivationId,
      signedData: Type.String({ description: 'the JWS: compact, or JSON as text' }),
      signatureFormat: OptionalOrNull(
        OneOf(['JWS_COMPACT', 'JWS_JSON'], { description: 'says nothing: the text shows its form' }),
      ),
    }),
    ({ activationId, signedData }) => ({ activationId, jws: signedData }),
  )
