// Reads the certificate that a TLS server shows, at the one address that was checked. pawl sends nothing but the handshake.
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { OutboundError, type OutboundTarget, shownAs, withConnection } from '../../lib/outbound.ts'

export interface PeerCertificate {
  /** DER of the leaf. */
  readonly der: Uint8Array
  /** Why the chain or the name does not verify with the public roots; undefined when it does. */
  readonly chainProblem: string | undefined
}

/**
 * The leaf of a TLS 1.2 or 1.3 server, whether or not its chain verifies. `host`: also the server name that is asked for (RFC 6066 §3). Throws
 * OutboundError when the server shows none in time.
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
    return { der: certificate.raw, chainProblem: socket.authorized ? undefined : describe(socket.authorizationError) }
  })
}

/** The code of what went wrong: messages of OpenSSL name threads and source files. */
function describe(problem: unknown): string {
  if (typeof problem === 'object' && problem !== null && 'code' in problem && typeof problem.code === 'string')
    return problem.code
  return typeof problem === 'string' ? problem : 'handshake failed'
}

/** Chains of certificates alone may have 100 KB. */
const HANDSHAKE_BYTES_MAX = 262_144
