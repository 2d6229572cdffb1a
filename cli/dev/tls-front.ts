// Ends TLS in front of a listener of this machine, and passes the bytes on unchanged.
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'

export interface TlsFront {
  readonly port: number
  /** Passes connections on to this port of 127.0.0.1. Connections before this call are closed. */
  readonly serve: (port: number) => void
  readonly close: () => void
}

interface Options {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: string
  /** Called when a TLS handshake fails, with a code of OpenSSL or of the system. */
  readonly onRefused: (code: string) => void
}

/** Listens. Rejects when the address or the port cannot be used. */
export async function openTlsFront({ host, port, certificate, key, onRefused }: Options): Promise<TlsFront> {
  let target: number | undefined
  const sockets = new Set<Socket>()
  const terms = { cert: certificate, key, minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS } as const
  const server = createServer(terms, (outer) => {
    if (target === undefined) {
      outer.destroy()
      return
    }
    join(outer, connect(target, '127.0.0.1'))
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', ({ code }: NodeJS.ErrnoException) => onRefused(code ?? 'no code'))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    serve: (to) => {
      target = to
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const HANDSHAKE_MS = 10_000

/** Passes the data and the end of either side on to the other. */
function join(outer: Socket, inner: Socket): void {
  for (const [from, to] of [
    [outer, inner],
    [inner, outer],
  ] as const) {
    from.on('error', () => undefined)
    from.once('close', () => to.destroySoon())
    from.pipe(to)
  }
}
