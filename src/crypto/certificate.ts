// Reads one certificate (RFC 5280): its fingerprint, its names and its end. Chains are not verified here.
import { X509Certificate } from 'node:crypto'
import { utf8 } from '../lib/bytes.ts'
import { sha256 } from './hash.ts'

export interface Certificate {
  readonly der: Uint8Array
  /** SHA-256 of the DER bytes, 32 bytes. */
  readonly fingerprint: Uint8Array
  /** notAfter, milliseconds since 1970-01-01 UTC. */
  readonly expiresAt: number
  /** The most specific common name of the subject, unchanged; undefined if there is none. */
  readonly commonName: string | undefined
  /** Whether a DNS subject alternative name is `host`, or matches it by a wildcard that is the whole first label (RFC 6125 §6.4.3). */
  readonly isFor: (host: string) => boolean
}

/** Parses a certificate in DER or PEM; undefined for other bytes. */
export function parseCertificate(der: Uint8Array): Certificate | undefined {
  try {
    const certificate = new X509Certificate(der)
    const { raw } = certificate
    // OpenSSL accepts a certificate whose notAfter is not a time. `validTo` is then "Bad time value", and `validToDate` is made of uninitialized
    // memory.
    const expiresAt = Date.parse(certificate.validTo)
    if (Number.isNaN(expiresAt)) return undefined
    return {
      der: raw,
      fingerprint: sha256(raw),
      expiresAt,
      commonName: readCommonName(certificate),
      // The subject is not searched for host names (RFC 6125 §6.4.4).
      isFor: (host) => certificate.checkHost(host, { subject: 'never', partialWildcards: false }) !== undefined,
    }
  } catch {
    return undefined
  }
}

/**
 * When the certificate of a TLS server ends, the first in `cert`, and when the last of the authorities in `ca` does: PEM, and milliseconds since
 * 1970-01-01 UTC. 0 where no certificate can be read.
 */
export const endsOfTls = ({ cert, ca }: { readonly cert: string; readonly ca: string }) => ({
  certificate: endsOf(cert)[0] ?? 0,
  authorities: Math.max(0, ...endsOf(ca)),
})

const endsOf = (pem: string): readonly number[] => {
  const texts = pem.match(/-----BEGIN [A-Z\d ]*CERTIFICATE-----[^]*?-----END [A-Z\d ]*CERTIFICATE-----/g) ?? []
  return texts.map((text) => parseCertificate(utf8(text))?.expiresAt ?? 0)
}

/** The last of several common names is the most specific one (RFC 4514 §2.1). Node gives undefined for a subject without names. */
function readCommonName(certificate: X509Certificate): string | undefined {
  const { subject } = certificate.toLegacyObject() as { subject?: { CN?: string | string[] } }
  return [subject?.CN ?? []].flat().at(-1)
}
