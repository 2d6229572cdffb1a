// Makes certificates for development (RFC 5280): an authority, and server certificates under it. OpenSSL makes keys and signatures; the DER
// structure is written here, because no package of pawl writes certificates. ECDSA on P-256 with SHA-256 only.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP, isIPv4 } from 'node:net'
import { der } from '../../phone/der.ts'
import { toPem } from '../../src/lib/pem.ts'
import type { Platform } from '../../src/lib/platform.ts'

/** Both in PEM; the key is PKCS#8 without a passphrase. */
export interface CertificateAndKey {
  readonly certificate: string
  readonly key: string
}

/** The validity of a certificate, in milliseconds since 1970. */
interface Validity {
  readonly from: number
  readonly to: number
}

/**
 * Makes an authority whose name constraints (RFC 5280 §4.2.1.10) permit only these names: host names with their subdomains, single addresses,
 * and ranges like `10.0.0.0/8`. OpenSSL enforces them. A verifier that follows RFC 5280 §6.1.1 to the letter does not check a trust anchor.
 * The authority may sign no other authority.
 */
export function createAuthority(
  platform: Platform,
  { name, permitted, validity }: { readonly name: string; readonly permitted: readonly string[]; readonly validity: Validity },
): CertificateAndKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subtrees = permitted.map((one) => der(SEQUENCE, isIP(one.split('/')[0] ?? '') === 0 ? dnsName(one) : addressRange(one)))
  const certificate = seal(platform, {
    issuer: commonName(name),
    subject: commonName(name),
    publicKey,
    validity,
    signer: privateKey,
    extensions: [
      extension(OID.basicConstraints, der(SEQUENCE, YES, der(INTEGER, Uint8Array.of(0))), IS_CRITICAL),
      // keyCertSign.
      extension(OID.keyUsage, der(BIT_STRING, Uint8Array.of(2, 0x04)), IS_CRITICAL),
      extension(OID.nameConstraints, der(SEQUENCE, der(0xa0, ...subtrees)), IS_CRITICAL),
      extension(OID.subjectKeyIdentifier, der(OCTET_STRING, keyIdentifier(publicKey))),
    ],
  })
  return { certificate, key: exportKey(privateKey) }
}

/** Makes a certificate of a TLS server with a new key, for host names and IP addresses. */
export function createServerCertificate(
  platform: Platform,
  authority: CertificateAndKey,
  { names, validity }: { readonly names: readonly string[]; readonly validity: Validity },
): CertificateAndKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signer = createPrivateKey(authority.key)
  const certificate = seal(platform, {
    issuer: commonName(nameOf(authority.certificate)),
    // The name has spaces, so that nobody takes it for a host name.
    subject: commonName('pawl for development'),
    publicKey,
    validity,
    signer,
    extensions: [
      // digitalSignature.
      extension(OID.keyUsage, der(BIT_STRING, Uint8Array.of(7, 0x80)), IS_CRITICAL),
      extension(OID.extendedKeyUsage, der(SEQUENCE, OID.serverAuth)),
      extension(
        OID.subjectAlternativeName,
        der(SEQUENCE, ...names.map((one) => (isIP(one) === 0 ? dnsName(one) : address(one)))),
      ),
      extension(OID.subjectKeyIdentifier, der(OCTET_STRING, keyIdentifier(publicKey))),
      extension(OID.authorityKeyIdentifier, der(SEQUENCE, der(0x80, keyIdentifier(createPublicKey(signer))))),
    ],
  })
  return { certificate, key: exportKey(privateKey) }
}

/** The common name of a certificate that createAuthority made. */
const nameOf = (pem: string): string => new X509Certificate(pem).subject.replace(/^CN=/, '')

interface Contents {
  readonly issuer: Uint8Array
  readonly subject: Uint8Array
  readonly publicKey: KeyObject
  readonly validity: Validity
  readonly extensions: readonly Uint8Array[]
  readonly signer: KeyObject
}

/** The signed certificate, in PEM. */
function seal(platform: Platform, { issuer, subject, publicKey, validity, extensions, signer }: Contents): string {
  const serial = Buffer.from(platform.randomBytes(16))
  // These bits make the number positive, and its DER encoding the shortest.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  const covered = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Uint8Array.of(2))),
    der(INTEGER, serial),
    ECDSA_WITH_SHA256,
    issuer,
    der(SEQUENCE, time(validity.from), time(validity.to)),
    subject,
    exportPublicKey(publicKey),
    der(0xa3, der(SEQUENCE, ...extensions)),
  )
  return toPem(der(SEQUENCE, covered, ECDSA_WITH_SHA256, bits(sign('sha256', covered, signer))))
}

const bits = (bytes: Uint8Array): Uint8Array => der(BIT_STRING, Uint8Array.of(0), bytes)

function extension(oid: Uint8Array, value: Uint8Array, ...critical: readonly Uint8Array[]): Uint8Array {
  return der(SEQUENCE, oid, ...critical, der(OCTET_STRING, value))
}

const commonName = (text: string): Uint8Array =>
  der(SEQUENCE, der(SET, der(SEQUENCE, OID.commonName, der(UTF8_STRING, Buffer.from(text)))))

/** UTCTime, and GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5). */
function time(at: number): Uint8Array {
  const text = `${new Date(at).toISOString().slice(0, 19).replaceAll(/\D/g, '')}Z`
  return text < '2050' ? der(UTC_TIME, Buffer.from(text.slice(2))) : der(GENERALIZED_TIME, Buffer.from(text))
}

// GeneralName (RFC 5280 §4.2.1.6).
const dnsName = (name: string): Uint8Array => der(0x82, Buffer.from(name, 'ascii'))
const address = (text: string): Uint8Array => der(0x87, addressBytes(text))

/** Encodes a range as its first address and its mask; an address without a mask length is a range of one. */
function addressRange(text: string): Uint8Array {
  const [first = '', length] = text.split('/')
  const bytes = addressBytes(first)
  const bitsMax = bytes.length * 8
  const ones = length === undefined ? bitsMax : Number(length)
  const mask = bytes.map((_, index) => 0xff & ~(0xff >> Math.min(Math.max(ones - index * 8, 0), 8)))
  return der(0x87, bytes, mask)
}

/** 4 or 16 bytes of an address without a zone. */
function addressBytes(text: string): Uint8Array {
  if (isIPv4(text)) return Uint8Array.from(text.split('.'), Number)
  // A URL writes an IPv6 address in hexadecimal groups only.
  const [head = '', tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::')
  const [before, after] = [head, tail ?? ''].map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array.from({ length: 8 - (before?.length ?? 0) - (after?.length ?? 0) }, () => '0')
  const groups = [...(before ?? []), ...zeros, ...(after ?? [])].map((group) => Number.parseInt(group, 16))
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
}

const exportPublicKey = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'spki' })
const exportKey = (key: KeyObject): string => key.export({ format: 'pem', type: 'pkcs8' }) as string
/** 20 bytes that identify a key when chains are built; any bytes that differ between keys will do (RFC 5280 §4.2.1.2). */
const keyIdentifier = (key: KeyObject): Uint8Array => createHash('sha256').update(exportPublicKey(key)).digest().subarray(0, 20)

const [INTEGER, BIT_STRING, OCTET_STRING, UTF8_STRING, UTC_TIME, GENERALIZED_TIME] = [0x02, 0x03, 0x04, 0x0c, 0x17, 0x18] as const
const [SEQUENCE, SET] = [0x30, 0x31] as const
/** A BOOLEAN that is true, in DER. */
const YES = Uint8Array.of(0x01, 0x01, 0xff)
const IS_CRITICAL = YES

const hex = (text: string): Uint8Array => Buffer.from(text, 'hex')
/** Object identifiers, with tag and length. */
const OID = {
  commonName: hex('0603550403'),
  subjectKeyIdentifier: hex('0603551d0e'),
  keyUsage: hex('0603551d0f'),
  subjectAlternativeName: hex('0603551d11'),
  basicConstraints: hex('0603551d13'),
  nameConstraints: hex('0603551d1e'),
  authorityKeyIdentifier: hex('0603551d23'),
  extendedKeyUsage: hex('0603551d25'),
  serverAuth: hex('06082b06010505070301'),
}
const ECDSA_WITH_SHA256 = der(SEQUENCE, hex('06082a8648ce3d040302'))
