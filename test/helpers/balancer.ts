// Runs a small balancer: it asks each back end each second whether it is ready, and sends requests in turn to the ready ones, over kept
// connections. It never sends a request twice.
import { Agent, createServer, type IncomingHttpHeaders, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { send } from '../../phone/http.ts'

export interface Balancer {
  /** http://127.0.0.1:PORT */
  readonly url: string
  /** The number of back ends that get requests. */
  readonly readyCount: () => number
  readonly close: () => Promise<void>
}

export async function openBalancer(urls: readonly string[]): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  let ready = [...urls]
  let turn = 0
  const look = async (): Promise<void> => {
    const found = await Promise.all(urls.map(async (url) => ({ url, isReady: await isReady(url) })))
    ready = found.flatMap(({ url, isReady: isIn }) => (isIn ? [url] : []))
  }
  const timer = setInterval(() => void look(), 1_000)
  const server = createServer((incoming, outgoing) => {
    const target = ready[turn++ % Math.max(ready.length, 1)]
    const fail = (): void => {
      if (!outgoing.headersSent) outgoing.writeHead(502)
      outgoing.end()
    }
    if (target === undefined) return fail()
    const { method, url: path, headers } = incoming
    const { hostname, port } = new URL(target)
    const outgoingRequest = sendRequest(
      { agent, hostname, port, method, path, headers: withoutConnection(headers) },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, withoutConnection(answer.headers))
        answer.pipe(outgoing)
        answer.once('error', fail)
      },
    )
    outgoingRequest.once('error', fail)
    incoming.pipe(outgoingRequest)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    readyCount: () => ready.length,
    close: async () => {
      clearInterval(timer)
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Removes the headers that are only for one connection. */
const withoutConnection = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'connection' && name !== 'keep-alive'))

async function isReady(url: string): Promise<boolean> {
  try {
    return (await send(url, { method: 'GET', path: '/health/ready', headers: {}, body: Buffer.alloc(0) })).status === 200
  } catch {
    return false
  }
}
