// Tests answers that begin and do not end, on the one connection that all pushes share.
import { createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { OutboundError } from '../../lib/outbound.ts'
import { createHttp2Client } from './apns.ts'

const TIMEOUT_MS = 300

test('an answer of which only the headers have come is none when another request ends the connection by its time limit', async () => {
  const hasBegun = Promise.withResolvers<void>()
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined)
    if (headers[':path'] === '/hangs') hasBegun.resolve()
    else stream.respond({ ':status': 410 })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = createHttp2Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, TIMEOUT_MS)
  const ask = (path: string) => client.post({ path, headers: {}, body: '{}' }).catch((error: unknown) => error)
  const hangs = ask('/hangs')
  await hasBegun.promise
  const begins = ask('/begins')
  expect(await hangs).toBeInstanceOf(OutboundError)
  expect(await begins).toBeInstanceOf(OutboundError)
  client.close()
  await new Promise((resolve) => server.close(resolve))
})
