// Tests reading the certificate of a TLS server: every way to get none ends with an OutboundError, and in time.
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { OutboundError } from '../../lib/outbound.ts'
import { readPeerCertificate } from './certificate.ts'

const sockets: Socket[] = []
/** One server says nothing. The other speaks no TLS from its first byte on. */
const silent = createServer((socket) => sockets.push(socket))
const plain = createServer((socket) =>
  socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
)
const ports: number[] = []

beforeAll(async () => {
  for (const server of [silent, plain]) {
    await new Promise<void>((resolve) => {
      server.listen(0, 'localhost', resolve)
    })
    ports.push((server.address() as AddressInfo).port)
  }
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  silent.close()
  plain.close()
})

const read = (port: number | undefined, more: { arePrivateAllowed?: boolean; signal?: AbortSignal; timeoutMs?: number } = {}) =>
  readPeerCertificate({ host: 'localhost', port: port ?? 0, arePrivateAllowed: true, timeoutMs: 5_000, ...more })

test('a server that says nothing is left at the time limit', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const shaken = new Promise((resolve) => silent.once('connection', (socket: Socket) => socket.once('data', resolve)))
    let isOver = false
    const attempt = read(ports[0], { timeoutMs: 150 }).finally(() => (isOver = true))
    const expectation = expect(attempt).rejects.toThrow('did not end the handshake of TLS within 0.15 s')
    await shaken
    await vi.advanceTimersByTimeAsync(149)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await expectation
  } finally {
    vi.useRealTimers()
  }
})

test('an attempt ends when its caller does not want it any more', async () => {
  const stop = new AbortController()
  const attempt = read(ports[0], { signal: stop.signal })
  stop.abort()
  await expect(attempt).rejects.toThrow(OutboundError)
  await expect(read(ports[0], { signal: stop.signal })).rejects.toThrow(OutboundError)
})

test('a server that speaks no TLS is refused', async () => {
  await expect(read(ports[1])).rejects.toThrow('does not speak this TLS (ERR_SSL_WRONG_VERSION_NUMBER)')
})

test('a port where nobody listens is refused', async () => {
  await expect(read(1)).rejects.toThrow('ECONNREFUSED')
})

test('an address that is not public is not connected to', async () => {
  const before = sockets.length
  await expect(read(ports[0], { arePrivateAllowed: false })).rejects.toThrow('not a public address')
  expect(sockets).toHaveLength(before)
})
