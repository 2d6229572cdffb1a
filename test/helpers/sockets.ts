// Opens raw connections from any address of this machine, which send exactly the given bytes.
import { connect, type Socket } from 'node:net'

export interface RawConnection {
  readonly socket: Socket
  /** The text received so far. */
  readonly text: () => string
  readonly isOpen: () => boolean
  readonly closed: Promise<void>
}

export interface Sockets {
  /** Connects from the address `from` and sends `bytes`. `staysOpen`: the connection never ends its own side. */
  readonly open: (from: string, bytes?: string, options?: { staysOpen?: boolean }) => Promise<RawConnection>
  readonly openMany: (count: number, from: string, bytes?: string) => Promise<RawConnection[]>
  readonly endAll: () => void
}

/** Opens connections to a port of 127.0.0.1. */
export function createSockets(port: () => number): Sockets {
  const sockets: Socket[] = []
  const open: Sockets['open'] = async (from, bytes = '', { staysOpen = false } = {}) => {
    const socket = connect({ port: port(), host: '127.0.0.1', localAddress: from, allowHalfOpen: staysOpen })
    sockets.push(socket)
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('error', () => undefined)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    await Promise.race([new Promise<void>((resolve) => socket.once('connect', () => resolve())), closed])
    if (bytes !== '') await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
    return { socket, text: () => text, isOpen: () => !socket.destroyed && !socket.readableEnded, closed }
  }
  return {
    open,
    // Opened one after the other, because their order matters.
    openMany: async (count, from, bytes) => {
      const opened = []
      for (let i = 0; i < count; i += 1) opened.push(await open(from, bytes))
      return opened
    },
    endAll: () => {
      for (const socket of sockets.splice(0)) socket.destroy()
    },
  }
}

export const requestOf = (method: string, path: string, headers = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: 0\r\n\r\n`

/** The beginning of a request: its headers, and the first of `length` bytes of its body. */
export const beginningOf = (path: string, length = 15_000, headers = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{`
