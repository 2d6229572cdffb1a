// Makes certificates with the openssl command, and starts TLS servers that show them.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { createHash, X509Certificate } from 'node:crypto'

export interface TestCertificate {
  readonly pem: string
  readonly privateKeyPem: string
  /** Base64 of SHA-256 over the DER bytes. */
  readonly fingerprint: string
  /** notAfter in seconds since 1970. */
  readonly expires: number
}

interface CertificateOptions {
  readonly days?: number
  readonly commonName?: string
  /** The whole subject in OpenSSL's form, in place of the common name. */
  readonly subject?: string
  /** The certificate that signs; by default the new one signs itself, and may sign others. */
  readonly issuer?: TestCertificate
}

/** Makes a certificate for these subject alternative names, for instance `DNS:api.bank.example`. */
export function createCertificate(
  names: readonly string[],
  { days = 30, commonName = 'test', subject = `/CN=${commonName.replace(/[/+\\]/g, '\\$&')}`, issuer }: CertificateOptions = {},
): TestCertificate {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-certificate-'))
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const alternatives = names.length === 0 ? [] : ['-addext', `subjectAltName=${names.join(',')}`]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    const [caCert, caKey] = [join(folder, 'ca.pem'), join(folder, 'ca-key.pem')]
    if (issuer) {
      writeFileSync(caCert, issuer.pem)
      writeFileSync(caKey, issuer.privateKeyPem)
    }
    const signer = issuer ? ['-CA', caCert, '-CAkey', caKey] : []
    const named = ['-days', String(days), '-utf8', '-subj', subject]
    execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...signer, ...named, ...alternatives], {
      stdio: 'pipe',
    })
    const pem = readFileSync(cert, 'utf8')
    const { raw, validTo } = new X509Certificate(pem)
    return {
      pem,
      privateKeyPem: readFileSync(key, 'utf8'),
      fingerprint: createHash('sha256').update(raw).digest('base64'),
      expires: Date.parse(validTo) / 1000,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface TlsServer {
  readonly port: number
  /** Server names that clients asked for. */
  readonly asked: readonly string[]
  /** Shows another certificate from now on. */
  readonly show: (certificate: TestCertificate) => void
  readonly close: () => Promise<void>
}

/** Starts a TLS server at `localhost`. */
export async function startTlsServer(certificate: TestCertificate): Promise<TlsServer> {
  const asked: string[] = []
  const toContext = ({ pem, privateKeyPem }: TestCertificate) => ({ cert: pem, key: privateKeyPem })
  // Names are noted here and not at the connection, because a client may leave before that, as soon as it has the certificate.
  const SNICallback = (name: string, done: (error: null) => void) => {
    asked.push(name)
    done(null)
  }
  const server = createServer({ ...toContext(certificate), SNICallback }, (socket) =>
    socket.on('error', () => undefined).resume(),
  )
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => {
    server.listen(0, 'localhost', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    show: (other) => server.setSecureContext(toContext(other)),
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
    },
  }
}
