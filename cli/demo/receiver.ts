// Receives webhook messages on this machine as a bank would, and checks their signatures (cloud §9).
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Message {
  readonly id: string
  readonly text: string
  readonly signature: string
  /** Whether the signature was made with the secret of the webhook. */
  readonly isGenuine: boolean
}

export interface Receiver {
  readonly url: string
  /** The messages so far, in the order of their arrival. */
  readonly messages: readonly Message[]
  /** Sets the secret that checks the signatures of later messages. */
  readonly expectSecret: (secret: string) => void
  readonly close: () => void
}

/** Listens on a free port of this machine. */
export async function startReceiver(): Promise<Receiver> {
  const messages: Message[] = []
  let key = Buffer.alloc(0)
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      messages.push(readMessage(request.headers, Buffer.concat(chunks), key))
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/pawl`,
    messages,
    expectSecret: (secret) => {
      key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function readMessage(headers: IncomingHttpHeaders, body: Buffer, key: Uint8Array): Message {
  const [id, time, signature] = ['id', 'timestamp', 'signature'].map((name) => String(headers[`webhook-${name}`] ?? ''))
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')}`)
  const isGenuine = (signature ?? '')
    .split(' ')
    .map((one) => Buffer.from(one))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected))
  return { id: id ?? '', text: body.toString('utf8'), signature: signature ?? '', isGenuine }
}
