// Serves TLS with client certificates on the internal listener. Its files are read at the start, and again when they change.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createSecureContext, type Server, TLSSocket } from 'node:tls'
import { sayUnreadable, StartError } from '../lib/errors.ts'
import type { Events } from '../log/events.ts'
import type { Platform } from '../lib/platform.ts'
import { sourceOf } from '../lib/address.ts'

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certificate: string
  readonly key: string
  /** The authorities that sign callers' certificates. */
  readonly clientCa: string
}

interface TlsSettings {
  readonly internalTlsCertificate?: string
  readonly internalTlsKey?: string
  readonly internalTlsClientCa?: string
}

/** The TLS files of the internal listener; undefined if it speaks plain HTTP. */
export const tlsFilesOf = ({
  internalTlsCertificate: certificate,
  internalTlsKey: key,
  internalTlsClientCa: clientCa,
}: TlsSettings): TlsFiles | undefined =>
  certificate === undefined || key === undefined || clientCa === undefined ? undefined : { certificate, key, clientCa }

interface TlsTexts {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

/** The options of a TLS server that serves only callers with a certificate of one of the authorities. Throws StartError with one line. */
export function loadTls(files: TlsFiles) {
  try {
    return { ...TERMS, ...readTls(files) }
  } catch (error) {
    throw new StartError(describe(error), { cause: error })
  }
}

/**
 * Looks at the files from time to time, and uses new ones for later connections. Files that do not fit together are ignored, because they are
 * often written one after the other. `onUsed` gets the first texts and each new ones. Returns a function that ends this.
 */
export function followTlsFiles(
  server: Server,
  files: TlsFiles,
  {
    events,
    platform,
    onUsed,
  }: { readonly events: Events; readonly platform: Pick<Platform, 'randomBytes'>; readonly onUsed: (texts: TlsTexts) => void },
): () => void {
  const first = readTls(files)
  onUsed(first)
  let before = JSON.stringify(first)
  let problem: string | undefined
  const look = (): void => {
    try {
      const texts = readTls(files)
      problem = undefined
      if (JSON.stringify(texts) === before) return
      server.setSecureContext({ ...TERMS, ...texts })
      // A connection that is resumed by a ticket would not be asked for a certificate of the new authorities.
      server.setTicketKeys(Buffer.from(platform.randomBytes(48)))
      before = JSON.stringify(texts)
      events.tlsRenewed()
      onUsed(texts)
    } catch (error) {
      const found = describe(error)
      if (found !== problem) events.tlsNotRenewed({ reason: found })
      problem = found
    }
  }
  const timer = setInterval(look, LOOK_MS).unref()
  server.on('tlsClientError', (error, { remoteAddress }) =>
    events.tlsRefused({ source: sourceOf(remoteAddress ?? ''), reason: describe(error) }),
  )
  return () => clearInterval(timer)
}

/**
 * The SHA-256 of the client certificate of a request, whose key the caller has proved to have; undefined without TLS, and after the
 * connection's end.
 */
export function fingerprintOf({ socket }: Pick<IncomingMessage, 'socket'>, now: number): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  const certificate = socket.getPeerX509Certificate()
  // A connection may outlive the certificate that it was opened with. An end that cannot be read, for which Date.parse gives NaN, counts as over.
  if (certificate === undefined || !(now <= Date.parse(certificate.validTo))) return undefined
  return certificate.fingerprint256.replaceAll(':', '').toLowerCase()
}

/** Reads the files. Throws when one is missing or no PEM, or when the key is not that of the certificate. */
function readTls({ certificate, key, clientCa }: TlsFiles): TlsTexts {
  const read = (setting: string, path: string, holds: RegExp, what: string): string => {
    const text = tryTo(
      () => readFileSync(path, 'utf8'),
      (error) => `${setting}: ${path} ${sayUnreadable(error)}; look at its path and owner`,
    )
    // With an empty list, Node would accept all public authorities.
    if (!holds.test(text)) throw new Error(`${setting}: ${path} holds no ${what} in PEM`)
    return text
  }
  const cert = read(OF.certificate, certificate, CERTIFICATE, 'certificate')
  const ca = read(OF.clientCa, clientCa, CERTIFICATE, 'certificate')
  const keyText = read(OF.key, key, KEY, 'private key')
  const check = (parts: Partial<TlsTexts>, explain: (code: string) => string) =>
    tryTo(
      () => createSecureContext({ ...TERMS, ...parts }),
      (error) => explain(describe(error)),
    )
  check({ cert }, (code) => `${OF.certificate}: ${certificate} cannot be used (${code}); look at what it holds`)
  check({ ca }, (code) => `${OF.clientCa}: ${clientCa} cannot be used (${code}); look at what it holds`)
  check({ key: keyText }, (code) => `${OF.key}: ${key} cannot be used (${code}); it must have no passphrase`)
  check(
    { cert, key: keyText, ca },
    (code) => `${OF.key}: ${key} is not the key of ${OF.certificate} (${code}); give both of one issue`,
  )
  return { cert, key: keyText, ca }
}

const OF = {
  certificate: 'PAWL_INTERNAL_TLS_CERTIFICATE',
  key: 'PAWL_INTERNAL_TLS_KEY',
  clientCa: 'PAWL_INTERNAL_TLS_CLIENT_CA',
}
const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/
const KEY = /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/

/** Returns the result of `work`, or throws its error in other words. */
function tryTo<T>(work: () => T, explain: (error: unknown) => string): T {
  try {
    return work()
  } catch (error) {
    throw new Error(explain(error), { cause: error })
  }
}

/** The code of an error, if it has one, because messages of OpenSSL name threads and source files. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as NodeJS.ErrnoException
  return code ?? error.message
}

const TERMS = {
  requestCert: true,
  rejectUnauthorized: true,
  minVersion: 'TLSv1.2',
  // The suites of TLS 1.3, and those of 1.2 with forward secrecy and authenticated encryption.
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_AES_128_GCM_SHA256',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ].join(':'),
  handshakeTimeout: 5_000,
} as const
const LOOK_MS = 5_000
