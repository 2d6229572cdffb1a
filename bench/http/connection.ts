// Implements the connection of one client with little processor time, because the server has the same processors: requests are composed before
// the window that sends them, and of an answer only its status and its length are read.
// An exchange takes the client 20 to 25 µs of processor time (its column in npm run bench), where it took 60 to 100 through node:http.
import { connect, type Socket } from 'node:net'
import type { HttpRequest } from '../../phone/http.ts'

interface Connection {
  /** Sends bytes of `composeRequest` and waits for the whole answer. Rejects when it is not HTTP 200, or when the connection breaks. */
  readonly exchange: (request: Buffer) => Promise<void>
}

/** The bytes of a request to the server at `url`, which is plain HTTP. */
export function composeRequest(url: string, { method, path, headers, body }: HttpRequest): Buffer {
  const all = { Host: new URL(url).host, ...headers, ...(body.length > 0 && { 'Content-Length': String(body.length) }) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), body])
}

/** The connection of a client to the server at `url`. The client keeps it through all windows. */
export function connectionOf(url: string, client: number): Connection {
  const opened = CONNECTIONS.get(url) ?? []
  CONNECTIONS.set(url, opened)
  return (opened[client] ??= createConnection(url))
}

const CONNECTIONS = new Map<string, Connection[]>()

/** A connection to the server at `url`. It opens with the first exchange, and again with the next one after the server has closed it. */
function createConnection(url: string): Connection {
  const { hostname, port } = new URL(url)
  let socket: Socket | undefined
  let waiting: { readonly resolve: () => void; readonly reject: (reason: Error) => void } | undefined
  let received: Buffer = NOTHING

  function open(): Socket {
    const opened = connect({ host: hostname, port: Number(port), noDelay: true })
    opened.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const end = endOfAnswer(received)
      if (end === undefined || received.length < end) return
      const answer = received
      received = NOTHING
      if (answer.toString('latin1', 0, OK.length) === OK && answer.length === end) settle()
      else settle(new Error(answer.toString()))
    })
    opened.on('error', settle)
    opened.on('close', () => {
      if (socket === opened) socket = undefined
      settle(new Error('the server closed the connection before it answered'))
    })
    return opened
  }

  function settle(reason?: Error): void {
    const settled = waiting
    waiting = undefined
    if (reason) settled?.reject(reason)
    else settled?.resolve()
  }

  return {
    exchange: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket ??= open()
        socket.write(request)
      }),
  }
}

/** The length of the answer in bytes; undefined while its headers are not complete. */
function endOfAnswer(received: Buffer): number | undefined {
  const headers = received.indexOf('\r\n\r\n')
  if (headers < 0) return undefined
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(received.toString('latin1', 0, headers)) ?? []
  if (length === undefined) throw new Error('an answer without Content-Length')
  return headers + 4 + Number(length)
}

const OK = 'HTTP/1.1 200 '
const NOTHING = Buffer.alloc(0)
