// Makes and reads the certificates for development: an authority that phones trust, and the certificate of the server.
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { isIP, isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { Platform } from '../../src/lib/platform.ts'
import type { Environment } from '../environment.ts'
import { explainFault, Fault, orFault } from '../fault.ts'
import { writeWhole } from '../whole-file.ts'
import { isPrivateAddress, PRIVATE_RANGES } from './addresses.ts'
import { type CertificateAndKey, createAuthority, createServerCertificate } from './x509.ts'

/** Paths of PEM files. */
export interface CertificateFiles {
  /** The certificate that phones have to trust. */
  readonly authority: string
  readonly authorityKey: string
  readonly server: string
  readonly serverKey: string
}

/** The folder of the certificates, below the directory of the embedded database. */
export const defaultFolder = (env: Environment): string => join(env['PAWL_DATA_DIR'] || 'data', 'phone-tls')

export const filesOf = (folder: string): CertificateFiles => ({
  authority: join(folder, 'authority.crt'),
  authorityKey: join(folder, 'authority.key'),
  server: join(folder, 'server.crt'),
  serverKey: join(folder, 'server.key'),
})

const DAY_MS = 86_400_000
/** Certificates are valid from so long ago, because a phone's clock may be behind. */
const EARLIER_MS = 60 * 60_000
const AUTHORITY_DAYS = 1_095
/** iPhones accept at most 825 days under an authority that their user installed, and 398 under any other. */
const SERVER_DAYS = 397
/** A certificate that ends within so long is replaced. */
const REST_MS = 7 * DAY_MS

/**
 * Makes an authority and a certificate for these host names and addresses. The authority is constrained to them and to private addresses.
 * Only this account may read the keys. Without `force`, throws a Fault when one of the files exists.
 */
export function createCertificates(
  folder: string,
  names: readonly string[],
  { platform, force }: { readonly platform: Platform; readonly force: boolean },
): CertificateFiles {
  const files = filesOf(folder)
  const found = Object.values(files).find((path) => existsSync(path))
  if (found !== undefined && !force) throw new Fault('refused', `there is ${found} already: ${ANEW}`)
  const now = platform.now()
  const authority = createAuthority(platform, {
    name: `pawl development ${new Date(now).toISOString().slice(0, 16)}`,
    permitted: [...PRIVATE_RANGES, ...names.filter((name) => !isPrivateAddress(name))],
    validity: { from: now - EARLIER_MS, to: now + AUTHORITY_DAYS * DAY_MS },
  })
  return orFault('output', `the certificates in ${folder || 'an empty text'}`, () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeWhole(files.authorityKey, authority.key, 0o600)
    writeWhole(files.authority, authority.certificate, 0o644)
    writeServer(files, authority, names, platform)
    return files
  })
}

/**
 * Reads the certificate for these names, and its key. Has the authority sign a new one when the old one ends soon or lacks a name; makes a new
 * authority when there is none. Throws a Fault when the authority ends or may not sign for a name, or when a file is missing or damaged.
 */
export function readCertificates(
  folder: string,
  names: readonly string[],
  platform: Platform,
): CertificateAndKey & { readonly files: CertificateFiles } {
  const files = filesOf(folder)
  if (!existsSync(files.authority)) createCertificates(folder, names, { platform, force: false })
  try {
    renew(files, names, platform)
    return { files, certificate: readFileSync(files.server, 'utf8'), key: readFileSync(files.serverKey, 'utf8') }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('refused', `the certificates in ${folder} cannot be read (${explainFault(error)}): ${ANEW}`)
  }
}

function renew(files: CertificateFiles, names: readonly string[], platform: Platform): void {
  const authority = { certificate: readFileSync(files.authority, 'utf8'), key: readFileSync(files.authorityKey, 'utf8') }
  const server = new X509Certificate(readFileSync(files.server, 'utf8'))
  if (endsSoon(new X509Certificate(authority.certificate), platform))
    throw new Fault('refused', `the authority ${files.authority} ends: ${ANEW}`)
  const unknown = names.filter((name) => !isFor(server, name))
  if (unknown.length === 0 && !endsSoon(server, platform)) return
  const foreign = unknown.find((name) => !isPrivateAddress(name))
  if (foreign !== undefined) throw new Fault('refused', `the authority ${files.authority} may not sign for ${foreign}: ${ANEW}`)
  writeServer(files, authority, [...new Set([...namesOf(server), ...names].map(canonical))], platform)
}

/** The canonical spelling of an IPv6 address; any other name unchanged. */
const canonical = (name: string): string => (isIPv6(name) ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name)

const ANEW = 'pawl certificate dev --force makes all anew, and phones have to trust the new authority'

const endsSoon = ({ validTo }: X509Certificate, platform: Platform): boolean => Date.parse(validTo) < platform.now() + REST_MS

const isFor = (certificate: X509Certificate, name: string): boolean =>
  (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined

/** Host names and addresses of a certificate that was made here. */
const namesOf = ({ subjectAltName = '' }: X509Certificate): readonly string[] =>
  subjectAltName.split(', ').map((entry) => entry.replace(/^[^:]*:/, ''))

function writeServer(files: CertificateFiles, authority: CertificateAndKey, names: readonly string[], platform: Platform): void {
  const now = platform.now()
  const validity = { from: now - EARLIER_MS, to: now + SERVER_DAYS * DAY_MS }
  const { certificate, key } = createServerCertificate(platform, authority, { names, validity })
  writeWhole(files.serverKey, key, 0o600)
  writeWhole(files.server, certificate, 0o644)
}
