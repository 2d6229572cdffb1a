// Reads the certificate that a TLS server shows, at the one address that was checked. Nothing is sent to it but the handshake.
import { type TLSSocket, connect } from 'node:tls'
import { OutboundError, resolveTarget } from './outbound.ts'

export interface PeerRequest {
  /** Looked up once; also the server name that is asked for (RFC 6066 §3). */
  readonly host: string
  readonly port: number
  readonly arePrivateAllowed: boolean
  /** For the look-up, the connection and the handshake. */
  readonly timeoutMs: number
  /** Ends the attempt early. */
  readonly signal?: AbortSignal | undefined
}

export interface PeerCertificate {
  /** DER of the leaf. */
  readonly der: Uint8Array
  /** Why the chain or the name does not verify with the public roots; undefined when it does. */
  readonly chainProblem: string | undefined
}

/** The leaf of a TLS 1.2 or 1.3 server, whether or not its chain verifies. Throws OutboundError when the server shows none in time. */
export async function readPeerCertificate(request: PeerRequest): Promise<PeerCertificate> {
  const { host, port, arePrivateAllowed, timeoutMs, signal } = request
  const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])])
  const { promise: cut, reject: cutNow } = Promise.withResolvers<never>()
  const target = `${host}:${port}`
  let socket: TLSSocket | undefined
  const stop = () => cutNow(new OutboundError(`${target} did not answer in time`))
  limit.addEventListener('abort', stop)
  if (limit.aborted) stop()
  try {
    // A look-up cannot be cancelled, only left behind.
    const address = await Promise.race([resolveTarget(host, arePrivateAllowed), cut])
    socket = connect({ host: address, port, servername: host, rejectUnauthorized: false, minVersion: 'TLSv1.2' })
    return await Promise.race([readLeaf(socket, target), cut])
  } finally {
    limit.removeEventListener('abort', stop)
    socket?.destroy()
  }
}

function readLeaf(socket: TLSSocket, target: string): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    socket.on('error', (cause) => reject(new OutboundError(`no TLS with ${target}: ${describe(cause)}`, { cause })))
    socket.on('close', () => reject(new OutboundError(`${target} closed the connection`)))
    socket.on('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate()
      if (certificate === undefined) reject(new OutboundError(`${target} shows no certificate`))
      else resolve({ der: certificate.raw, chainProblem: socket.authorized ? undefined : describe(socket.authorizationError) })
    })
  })
}

/** The code of what went wrong: messages of OpenSSL name threads and source files. */
function describe(problem: unknown): string {
  if (typeof problem === 'object' && problem !== null && 'code' in problem && typeof problem.code === 'string')
    return problem.code
  return typeof problem === 'string' ? problem : 'handshake failed'
}
