// Reads and writes PEM text (RFC 7468): certificates, public keys, certificate requests.
import { parseBase64 } from './base64.ts'

/** The PEM text of DER bytes, with a line break at its end. `label` names the type of the bytes, a certificate by default. */
export function toPem(der: Uint8Array, label: PemLabel = 'CERTIFICATE'): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}

export type PemLabel = 'CERTIFICATE' | 'PUBLIC KEY'

/**
 * The DER bytes of the first certificate in a text, which may hold other things; undefined if there is none. The bytes are not checked to be a
 * certificate.
 */
export function parsePem(text: string): Uint8Array | undefined {
  const [, body] = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/.exec(text) ?? []
  return body === undefined ? undefined : Buffer.from(body, 'base64')
}

/**
 * The DER bytes of a certificate request. The text may hold nothing else but white space, because another reader of the same text might take the
 * other part. Undefined for any other text, and for malformed Base64. The bytes are not checked to be a request.
 */
export function parseCertificateRequestPem(text: string): Uint8Array | undefined {
  const [, body] =
    /^\s*-----BEGIN CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE REQUEST-----\s*$/.exec(text) ?? []
  return body === undefined ? undefined : parseBase64(body.replaceAll(/\s/g, ''))
}
