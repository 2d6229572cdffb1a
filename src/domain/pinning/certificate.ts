// Pinning a certificate: from a PEM text, from its fingerprint alone, or from the server that shows it (utility §4).
import { domainToASCII } from 'node:url'
import { type Certificate, parseCertificate } from '../../crypto/certificate.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { PawlError } from '../../lib/errors.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { type PeerCertificate, readPeerCertificate } from '../../lib/peer-certificate.ts'
import { parsePem } from '../../lib/pem.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Db } from '../../storage/database.ts'
import {
  findPinnedCertificate,
  insertPinnedCertificate,
  type NewCertificate,
  type PinnedCertificateRow,
} from '../../storage/pinning.ts'

export interface CertificateParts {
  readonly db: Db
  readonly platform: Platform
  readonly settings: FetchSettings
}

/** Where certificates may be fetched from. */
export interface FetchSettings {
  readonly certificateFetchPrivate: boolean
  readonly certificateFetchPorts: readonly number[]
}

/** An application, which must exist, and a domain as an administrator named it. */
export interface PinTarget {
  readonly applicationId: string
  readonly domain: string
}

/** What was stored, or was there already. */
export type Pinned = PinnedCertificateRow

/**
 * Pins the first certificate of a PEM text. Throws ADMINISTRATION_REFUSED when it is not a certificate, has ended or, without `force`, is
 * for other names.
 */
export function pinPem(parts: CertificateParts, target: PinTarget, pem: string, force: boolean): Promise<Pinned> {
  const domain = requireDomainName(target.domain)
  const certificate = parseCertificate(parsePem(pem) ?? new Uint8Array())
  if (certificate === undefined) throw refuse('pem', 'must be a certificate in PEM')
  requireFit(parts, certificate, domain, force, 'pem')
  return store(parts, target.applicationId, { domain, port: null, source: 'pem', ...toColumns(certificate) })
}

/** Pins a certificate that is not at hand, for example one not yet deployed. Throws ADMINISTRATION_REFUSED. */
export function pinFingerprint(
  parts: CertificateParts,
  target: PinTarget,
  fingerprint: string,
  expiresAt: Date,
): Promise<Pinned> {
  const domain = requireDomainName(target.domain)
  const bytes = requireFingerprint(fingerprint)
  if (expiresAt.getTime() < parts.platform.now()) throw refuse('expires', 'must be in the future, in seconds since 1970')
  const certificate = { fingerprint: bytes, expiresAt, certificate: null }
  return store(parts, target.applicationId, { domain, port: null, source: 'fingerprint', ...certificate })
}

/** What a domain shows, found fit to be pinned. */
export interface LiveCertificate {
  /** As it is stored. */
  readonly domain: string
  readonly port: number
  readonly certificate: Certificate
  /** Why the chain or the name does not verify with the public roots. */
  readonly chainProblem: string | undefined
}

/** Connects to the domain. Throws ADMINISTRATION_REFUSED when there is nothing there to be pinned. */
export async function readLive(
  parts: CertificateParts,
  domainName: string,
  port: number,
  force: boolean,
): Promise<LiveCertificate> {
  const domain = requireDomainName(domainName)
  if (!parts.settings.certificateFetchPorts.includes(port)) throw refuse('port', 'is not allowed by PAWL_CERTIFICATE_FETCH_PORTS')
  const { certificate, chainProblem } = await fetchCertificate(parts.settings, domain, port).catch((error: unknown) => {
    if (error instanceof OutboundError) throw refuse('domain', error.message, error)
    throw error
  })
  requireFit(parts, certificate, domain, force, 'domain')
  return { domain, port, certificate, chainProblem }
}

/** Pins what readLive has found. */
export const pinLive = (
  parts: CertificateParts,
  applicationId: string,
  { domain, port, certificate }: LiveCertificate,
): Promise<Pinned> => store(parts, applicationId, { domain, port, source: 'fetch', ...toColumns(certificate) })

/** The leaf that a domain shows now. Throws OutboundError. */
export async function fetchCertificate(
  settings: FetchSettings,
  domain: string,
  port: number,
  signal?: AbortSignal,
): Promise<{ certificate: Certificate; chainProblem: PeerCertificate['chainProblem'] }> {
  const arePrivateAllowed = settings.certificateFetchPrivate
  const peer = await readPeerCertificate({ host: domain, port, arePrivateAllowed, timeoutMs: FETCH_TIMEOUT_MS, signal })
  const certificate = parseCertificate(peer.der)
  if (certificate === undefined) throw new OutboundError(`${domain} shows a certificate that does not parse`)
  return { certificate, chainProblem: peer.chainProblem }
}

/** The name of a host as it is stored and published: lower case, IDN as punycode. Throws ADMINISTRATION_REFUSED for anything else. */
export function requireDomainName(text: string): string {
  // The conversion stops at what would end a host name in a URL.
  const domain = /^[^\s/?#\\@:%[\]]{1,253}$/u.test(text) ? domainToASCII(text) : ''
  if (domain.length > 253 || !HOST_NAME.test(domain)) throw refuse('domain', 'must be the name of a host')
  return domain
}

/** The 32 bytes of a fingerprint in Base64, or in hex as OpenSSL prints it. Throws ADMINISTRATION_REFUSED. */
export function requireFingerprint(text: string): Uint8Array {
  const hex = text.replaceAll(':', '')
  // In a query an unencoded plus sign arrives as a space, and Base64 has none.
  const bytes = /^[0-9a-f]{64}$/i.test(hex) ? Buffer.from(hex, 'hex') : parseBase64(text.replaceAll(' ', '+'), 32)
  if (bytes === undefined) throw refuse('fingerprint', 'must be the SHA-256 of a certificate, 32 bytes in Base64 or hex')
  return bytes
}

function requireFit(
  { platform }: CertificateParts,
  certificate: Certificate,
  domain: string,
  force: boolean,
  field: string,
): void {
  if (certificate.expiresAt < platform.now()) throw refuse(field, 'has expired')
  if (!force && !certificate.isFor(domain))
    throw refuse(field, `is a certificate for other names than ${domain}; force pins it anyway`)
}

async function store(
  { db, platform }: CertificateParts,
  applicationId: string,
  row: Omit<NewCertificate, 'applicationId' | 'createdAt'>,
): Promise<Pinned> {
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

// Labels of letters, digits, hyphens and, because names in private networks have them, underscores. The last is not a number, so that the
// name is not an address (WHATWG URL, "ends in a number").
const HOST_NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const FETCH_TIMEOUT_MS = 5_000
