// Pins a certificate from its PEM text, from its fingerprint, or from the server that shows it (utility §4).
//
// Published SDKs look a pin up by exactly the common name of the certificate that a server shows, not by the name of the host. So a pin may have
// any name, which is stored as it was given.
import { domainToASCII } from 'node:url'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { type Certificate, parseCertificate } from '../../crypto/certificate.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { PawlError } from '../../lib/errors.ts'
import { OutboundError, type OutboundTarget, shownAs, withConnection } from '../../lib/outbound.ts'
import { parsePem } from '../../lib/pem.ts'
import {
  findPinnedCertificate,
  insertPinnedCertificate,
  type NewCertificate,
  type PinnedCertificateRow,
} from '../../storage/pinning/pinning.ts'
import type { DomainParts } from '../secrets/secrets.ts'

/** The addresses and ports from which certificates may be fetched. */
export interface FetchSettings {
  readonly certificateFetchPrivate: boolean
  readonly certificateFetchPorts: readonly number[]
}

/** An application, which must exist, and the name of a pin in it. */
interface PinTarget {
  readonly applicationId: string
  readonly domain: string
}

/**
 * Pins the first certificate of a PEM text. Throws ADMINISTRATION_REFUSED when the text is no certificate, and when the certificate has expired.
 * Without `force` it also throws for a certificate for other names.
 */
export function pinPem(
  parts: Pick<DomainParts, 'db' | 'platform'>,
  { applicationId, domain }: PinTarget,
  pem: string,
  force: boolean,
): Promise<PinnedCertificateRow> {
  const certificate = parseCertificate(parsePem(pem) ?? new Uint8Array())
  if (certificate === undefined) throw refuse('pem', 'must be a certificate in PEM')
  requireFit(parts, certificate, domain, force, 'pem')
  return store(parts, applicationId, { domain, port: null, source: 'pem', ...toColumns(certificate) })
}

/** Pins a certificate by its fingerprint, for example one that is not deployed yet. Throws ADMINISTRATION_REFUSED. */
export function pinFingerprint(
  parts: Pick<DomainParts, 'db' | 'platform'>,
  { applicationId, domain }: PinTarget,
  fingerprint: string,
  expiresAt: Date,
): Promise<PinnedCertificateRow> {
  const bytes = requireFingerprint(fingerprint)
  if (expiresAt.getTime() < parts.platform.now()) throw refuse('expires', 'must be in the future, in seconds since 1970')
  const certificate = { fingerprint: bytes, expiresAt, certificate: null }
  return store(parts, applicationId, { domain, port: null, source: 'fingerprint', ...certificate })
}

/** The certificate of a domain, after the checks for pinning it. */
interface LiveCertificate {
  /** The name of the pin, as it is stored. */
  readonly domain: string
  readonly port: number
  readonly certificate: Certificate
  /** The reason why the chain or the name does not verify with the public roots. */
  readonly chainProblem: string | undefined
}

/** Connects to the domain and reads its certificate. Throws ADMINISTRATION_REFUSED when it cannot be pinned. */
export async function readLive(
  parts: Pick<DomainParts, 'platform'> & { readonly settings: FetchSettings },
  domain: string,
  port: number,
  force: boolean,
): Promise<LiveCertificate> {
  const host = toHostName(domain)
  if (host === undefined) throw refuse('domain', 'must be the name of a host to be asked for its certificate')
  if (!parts.settings.certificateFetchPorts.includes(port)) throw refuse('port', 'is not allowed by PAWL_CERTIFICATE_FETCH_PORTS')
  const { certificate, chainProblem } = await fetchCertificate(parts.settings, host, port).catch((error: unknown) => {
    if (error instanceof OutboundError) throw refuse('domain', error.message, error)
    throw error
  })
  requireFit(parts, certificate, domain, force, 'domain')
  return { domain, port, certificate, chainProblem }
}

/** Pins the certificate that readLive has read. */
export const pinLive = (
  parts: Pick<DomainParts, 'db' | 'platform'>,
  applicationId: string,
  { domain, port, certificate }: LiveCertificate,
): Promise<PinnedCertificateRow> => store(parts, applicationId, { domain, port, source: 'fetch', ...toColumns(certificate) })

/** Fetches the leaf certificate that a host shows now. Throws OutboundError. */
export async function fetchCertificate(
  settings: FetchSettings,
  host: string,
  port: number,
  signal?: AbortSignal,
): Promise<{ certificate: Certificate; chainProblem: PeerCertificate['chainProblem'] }> {
  const arePrivateAllowed = settings.certificateFetchPrivate
  const peer = await readPeerCertificate({ host, port, arePrivateAllowed, timeoutMs: FETCH_TIMEOUT_MS, signal })
  const certificate = parseCertificate(peer.der)
  if (certificate === undefined) throw new OutboundError(`${host} shows a certificate that does not parse`)
  return { certificate, chainProblem: peer.chainProblem }
}

/** Returns the host for the name of a pin, in lower case and IDN as punycode. Undefined for a name that is no host name, such as a wildcard. */
export function toHostName(name: string): string | undefined {
  // domainToASCII stops at a character that ends a host name in a URL, so such characters are refused first.
  const host = /^[^\s/?#\\@:%[\]]{1,253}$/u.test(name) ? domainToASCII(name) : ''
  return host.length <= 253 && HOST_NAME.test(host) ? host : undefined
}

/** The reason why apps do not find a pin under its name. Undefined when they find it, and when the certificate is not stored. */
export function warnOfName({ domain, certificate }: Pick<PinnedCertificateRow, 'domain' | 'certificate'>): string | undefined {
  const parsed = certificate === null ? undefined : parseCertificate(certificate)
  if (parsed === undefined || parsed.commonName === domain) return undefined
  return parsed.commonName === undefined
    ? 'apps look a pin up by the common name of the certificate, and this one has none'
    : `apps look a pin up by the common name of the certificate, which is ${JSON.stringify(parsed.commonName)}`
}

/** Parses the 32 bytes of a fingerprint in Base64, or in hexadecimal as OpenSSL prints it. Throws ADMINISTRATION_REFUSED. */
export function requireFingerprint(text: string): Uint8Array {
  const hex = text.replaceAll(':', '')
  // In a query an unencoded plus sign arrives as a space, and Base64 has none.
  const bytes = /^[0-9a-f]{64}$/i.test(hex) ? Buffer.from(hex, 'hex') : parseBase64(text.replaceAll(' ', '+'), 32)
  if (bytes === undefined) throw refuse('fingerprint', 'must be the SHA-256 of a certificate, 32 bytes in Base64 or hex')
  return bytes
}

function requireFit(
  { platform }: Pick<DomainParts, 'platform'>,
  certificate: Certificate,
  domain: string,
  force: boolean,
  field: string,
): void {
  if (certificate.expiresAt < platform.now()) throw refuse(field, 'has expired')
  if (force || certificate.commonName === domain || certificate.isFor(toHostName(domain) ?? domain)) return
  throw refuse(field, `is a certificate for other names than ${domain}; force pins it anyway`)
}

async function store(
  { db, platform }: Pick<DomainParts, 'db' | 'platform'>,
  applicationId: string,
  row: Omit<NewCertificate, 'applicationId' | 'createdAt'>,
): Promise<PinnedCertificateRow> {
  await insertPinnedCertificate(db, { ...row, applicationId, createdAt: new Date(platform.now()) })
  const stored = await findPinnedCertificate(db, applicationId, row.domain, row.fingerprint)
  if (stored === undefined) throw refuse('domain', 'was removed at the same time')
  return stored
}

const toColumns = ({ der, fingerprint, expiresAt }: Certificate) => ({
  fingerprint,
  expiresAt: new Date(expiresAt),
  certificate: der,
})

const refuse = (fieldName: string, hint: string, cause?: unknown): PawlError =>
  new PawlError('ADMINISTRATION_REFUSED', { detail: `${fieldName} ${hint}`, violations: [{ fieldName, hint }], cause })

interface PeerCertificate {
  /** DER of the leaf. */
  readonly der: Uint8Array
  /** Why the chain or the name does not verify with the public roots; undefined when it does. */
  readonly chainProblem: string | undefined
}

/**
 * Reads the leaf of a TLS 1.2 or 1.3 server, whether or not its chain verifies. pawl sends nothing but the handshake. `host`: also the server name
 * that is asked for (RFC 6066 §3). Throws OutboundError when the server shows none in time.
 */
export function readPeerCertificate({
  host,
  port,
  ...bounds
}: Omit<OutboundTarget, 'name' | 'tls' | 'bytesMax'>): Promise<PeerCertificate> {
  const name = `${host}:${port}`
  const tls: ConnectionOptions = { ...shownAs(host), rejectUnauthorized: false, minVersion: 'TLSv1.2' }
  return withConnection({ name, host, port, tls, bytesMax: HANDSHAKE_BYTES_MAX, ...bounds }, async (connection) => {
    const socket = connection as TLSSocket
    const certificate = socket.getPeerX509Certificate()
    if (certificate === undefined) throw new OutboundError(`${name} shows no certificate`)
    return { der: certificate.raw, chainProblem: socket.authorized ? undefined : describeProblem(socket.authorizationError) }
  })
}

/** Returns the error code of a failed verification. Messages of OpenSSL would name threads and source files. */
function describeProblem(problem: unknown): string {
  if (typeof problem === 'object' && problem !== null && 'code' in problem && typeof problem.code === 'string')
    return problem.code
  return typeof problem === 'string' ? problem : 'handshake failed'
}

// Labels of letters, digits, hyphens and underscores, which names in private networks have. The last label is not a number, because such a name
// would be an address (WHATWG URL, "ends in a number").
const HOST_NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const FETCH_TIMEOUT_MS = 5_000
/** A chain of certificates alone may have 100 KB. */
const HANDSHAKE_BYTES_MAX = 262_144
