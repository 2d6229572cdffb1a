// Proxies the calls of a bank to pawl, and makes answers get lost, come late or be wrong.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { send } from '../../phone/http.ts'

/** Answers a call in place of pawl. */
type Fault = (response: ServerResponse) => unknown

export interface Way {
  /** The address at which the bank calls pawl. */
  readonly url: string
  /** The Idempotency-Key of each call so far. */
  readonly keys: readonly string[]
  /** Answers that may replace an answer of pawl, by name. */
  readonly faults: Readonly<Record<string, Fault>>
  /** Passes the next call on to pawl, and drops its answer. */
  readonly loseNext: () => void
  /** Runs `work` while `fault` answers in place of pawl. */
  readonly with: (fault: Fault, work: () => Promise<void>) => Promise<void>
  /** Stops listening at `url` until `reopen`. */
  readonly close: () => Promise<void>
  readonly reopen: () => Promise<void>
}

const GENUINE = '{"isValid":true,"isOpened":true,"userId":"thief","covered":"BODY"}'
const FAULTS: Readonly<Record<string, Fault>> = {
  'never answers': () => undefined,
  'answers half of it': (response) => response.writeHead(200, { 'content-length': '1000' }).write(GENUINE),
  'answers a byte at a time': (response) => {
    response.writeHead(200, { 'content-length': '1000' })
    const timer = setInterval(() => response.write(' '), 200)
    response.once('close', () => clearInterval(timer))
  },
  'answers 500': (response) => response.writeHead(500).end(GENUINE),
  'answers 403': (response) => response.writeHead(403).end(GENUINE),
  'answers no JSON': (response) => response.end('<html>'),
  'answers null': (response) => response.end('null'),
  'leads elsewhere': (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(GENUINE),
}

/** Opens a way to the pawl at `target`, on a free port of this machine. */
export async function openWay(target: string): Promise<Way> {
  const keys: string[] = []
  let losesNext = false
  let fault: Fault | undefined
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: path = '', headers } = request
    const parts: Buffer[] = []
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
    const body = Buffer.concat(parts)
    if (fault !== undefined) return void fault(response)
    keys.push(String(headers['idempotency-key']))
    // The call is chosen when it comes in, because pawl may answer an earlier call late that the bank has given up.
    const isLost = losesNext
    losesNext = false
    const { authorization = '', 'idempotency-key': key } = headers
    const sent = {
      authorization,
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': String(key) }),
    }
    const reply = await send(target, { method, path, headers: sent, body })
    if (isLost) return void response.destroy()
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.text)
  }
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy())
  })
  const listen = (port: number): Promise<void> => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    keys,
    faults: FAULTS,
    loseNext: () => {
      losesNext = true
    },
    with: async (other, work) => {
      fault = other
      await work().finally(() => {
        fault = undefined
      })
    },
    close: async () => {
      if (!server.listening) return
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
    reopen: () => listen(port),
  }
}
