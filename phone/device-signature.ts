// Signs data, JWS and certificate requests with the device keys of a phone, as the SDKs do (cloud §14). An app keeps the keys in the phone's
// vault, so a vault/unlock with two factors comes before each signature. That call proves nothing to a verifier of the signature.
import { ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js'
import { der } from './der.ts'
import type { PhoneKeyPair } from './v3/crypto.ts'
import { bytesOf, join, signEcdsa } from './v3/crypto.ts'
import type { PhoneAlgorithm, PhonePair } from './v4/crypto.ts'

export interface DeviceSigner {
  readonly alg: 'ES256' | 'ES384' | 'ML-DSA-65' | 'ML-DSA-87'
  /** SubjectPublicKeyInfo. */
  readonly spki: Uint8Array
  /** r ‖ s of ECDSA; ML-DSA pure, with an empty context. */
  readonly sign: (message: Uint8Array) => Uint8Array
  /** Signs like `sign`, with the ECDSA signature in DER. */
  readonly signDer: (message: Uint8Array) => Uint8Array
}

/** The device key of a phone of 3.x. */
export function v3DeviceSigners({ privateKey, uncompressed }: PhoneKeyPair): readonly DeviceSigner[] {
  const pair = { scalar: privateKey, point: uncompressed }
  return [
    {
      alg: 'ES256',
      spki: withHeader('3059301306072a8648ce3d020106082a8648ce3d030107034200', uncompressed),
      sign: (message) => signEcdsa('P-256', pair, message, 'ieee-p1363'),
      signDer: (message) => signEcdsa('P-256', pair, message, 'der'),
    },
  ]
}

/** The device keys of a phone of 4.0, one or two. */
export function v4DeviceSigners(
  algorithm: PhoneAlgorithm,
  { ecPrivate, ecPublic, seed, spki }: PhonePair,
): readonly DeviceSigner[] {
  const pair = { scalar: ecPrivate, point: ecPublic }
  const first: DeviceSigner = {
    alg: 'ES384',
    spki: withHeader('3076301006072a8648ce3d020106052b81040022036200', ecPublic),
    sign: (message) => signEcdsa('P-384', pair, message, 'ieee-p1363'),
    signDer: (message) => signEcdsa('P-384', pair, message, 'der'),
  }
  if (algorithm === 'EC_P384' || seed === undefined || spki === undefined) return [first]
  const { dsa, alg } =
    algorithm === 'EC_P384_ML_L3'
      ? ({ dsa: ml_dsa65, alg: 'ML-DSA-65' } as const)
      : ({ dsa: ml_dsa87, alg: 'ML-DSA-87' } as const)
  const sign: DeviceSigner['sign'] = (message) => dsa.sign(message, dsa.keygen(seed).secretKey)
  return [first, { alg, spki, sign, signDer: sign }]
}

const withHeader = (header: string, raw: Uint8Array): Uint8Array => join(Buffer.from(header, 'hex'), raw)

/** Makes the header of a JWS. By default `typ` is the one of the SDK for 3.x. */
export type JwsHeader = (signer: DeviceSigner) => unknown
const usualHeader: JwsHeader = ({ alg }) => ({ alg, typ: 'JWT' })

const base64Url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** The protected header and the signature of a JWS, both in Base64url. */
export function signJwsPart(signer: DeviceSigner, payload: Uint8Array, header: JwsHeader = usualHeader) {
  const protectedHeader = base64Url(bytesOf(JSON.stringify(header(signer))))
  const signature = base64Url(signer.sign(bytesOf(`${protectedHeader}.${base64Url(payload)}`)))
  return { protected: protectedHeader, signature }
}

/** A JWS in compact serialisation, signed with one key. */
export function compactJws(signer: DeviceSigner, payload: Uint8Array, header?: JwsHeader): string {
  const part = signJwsPart(signer, payload, header)
  return `${part.protected}.${base64Url(payload)}.${part.signature}`
}

/** A JWS in general JSON serialisation, with a signature of each key. */
export const generalJws = (signers: readonly DeviceSigner[], payload: Uint8Array, header?: JwsHeader): string =>
  JSON.stringify({ payload: base64Url(payload), signatures: signers.map((signer) => signJwsPart(signer, payload, header)) })

export interface CertificateRequestOptions {
  /** The names of the subject, in the order of the request. */
  readonly subject?: Readonly<Partial<Record<keyof typeof NAMES, string>>>
  /** Puts another key into the request. */
  readonly spki?: Uint8Array
  /** The DER content of the attributes. */
  readonly attributes?: Uint8Array
}

/** A certificate request (PKCS#10) in PEM. ECDSA uses the hash that belongs to its curve. */
export function certificateRequest(
  signer: DeviceSigner,
  { subject = { CN: 'alice', O: 'Bank' }, spki = signer.spki, attributes = new Uint8Array(0) }: CertificateRequestOptions = {},
): string {
  const name = Object.entries(subject).map(([type, text]) =>
    der(SET, der(SEQUENCE, Buffer.from(NAMES[type as keyof typeof NAMES], 'hex'), der(UTF8_STRING, bytesOf(text)))),
  )
  const info = der(SEQUENCE, Uint8Array.of(2, 1, 0), der(SEQUENCE, ...name), spki, der(ATTRIBUTES, attributes))
  const bits = der(BIT_STRING, Uint8Array.of(0), signer.signDer(info))
  const request = der(SEQUENCE, info, der(SEQUENCE, Buffer.from(OIDS[signer.alg], 'hex')), bits)
  const lines =
    Buffer.from(request)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE REQUEST-----', ...lines, '-----END CERTIFICATE REQUEST-----', ''].join('\n')
}

const [BIT_STRING, UTF8_STRING, SEQUENCE, SET, ATTRIBUTES] = [0x03, 0x0c, 0x30, 0x31, 0xa0]
/** Object identifiers, with tag and length. */
const NAMES = { CN: '0603550403', O: '060355040a', C: '0603550406', emailAddress: '06092a864886f70d010901' }
const OIDS = {
  ES256: '06082a8648ce3d040302',
  ES384: '06082a8648ce3d040303',
  'ML-DSA-65': '0609608648016503040312',
  'ML-DSA-87': '0609608648016503040313',
}
