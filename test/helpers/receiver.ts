// Starts the bank's receiver of webhooks: a real HTTP server that keeps messages and gives the answers of a test (cloud §9).
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { findQuietPort } from './ports.ts'

export interface Received {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The parsed body. */
  readonly json: Readonly<Record<string, unknown>>
  readonly path: string
}

export interface Receiver {
  /** http://127.0.0.1:PORT/hook */
  readonly url: string
  /** The messages so far, in the order of their arrival. */
  readonly received: readonly Received[]
  /** Sets the answer from now on; by default 200. */
  readonly answerWith: (answer: Answer) => void
  /** Returns the messages so far, and clears the list. */
  readonly take: () => Received[]
  /** Closes the port. */
  readonly goDown: () => Promise<void>
  /** Listens on the same port again. */
  readonly comeUp: () => Promise<void>
}

/** A status, or an answer of any kind; a function that does nothing never answers. */
export type Answer = number | ((request: Received, response: ServerResponse) => void)

/** Starts a receiver, until the end of the process or goDown. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  let answer: Answer = 200
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      const { headers, url: path = '' } = request
      const one = { id: String(headers['webhook-id']), headers, text, json: JSON.parse(text) as Received['json'], path }
      received.push(one)
      if (typeof answer === 'number') response.writeHead(answer).end('thank you')
      else answer(one, response)
    })
  })
  const port = await findQuietPort()
  const listen = () =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject)
        resolve()
      })
    })
  await listen()
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    answerWith: (next) => {
      answer = next
    },
    take: () => received.splice(0),
    goDown: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
    comeUp: listen,
  }
}

/** The value that the signature header of a message must have, with these `whsec_` secrets; written from docs/WEBHOOKS.md. */
export function signaturesOf({ headers, text }: Received, ...secrets: readonly string[]): string {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${text}`
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
      .update(signed)
      .digest('base64')
  return secrets.map((secret) => `v1,${sign(secret)}`).join(' ')
}
