// Which addresses count as public, and that a request goes to the checked address only.
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createRawServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isPublicAddress, OutboundError, resolveTarget, sendOutbound } from './outbound.ts'

const server = createServer((request, response) => {
  if (request.url === '/silent') return
  if (request.url === '/redirect') response.writeHead(302, { location: '/' })
  response.end('x'.repeat(10_000))
})
let port = 0
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const request = (path: string, timeoutMs = 60_000) => ({
  url: `http://127.0.0.1:${port}${path}`,
  method: 'POST' as const,
  headers: {},
  body: '{}',
  timeoutMs,
  answerBytesMax: 4096,
  arePrivateAllowed: true,
})

test.each([
  '127.0.0.1',
  '10.1.2.3',
  '172.31.255.255',
  '192.168.0.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  'fe80::1',
  'fc00::1',
  'ff02::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '64:ff9b::a00:1',
  '2002:7f00:1::',
  '2001:db8::1',
  'not an address',
])('%s is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each(['1.1.1.1', '9.255.255.255', '172.32.0.1', '193.0.0.1', '2606:4700::1111', '2a00:1450:4001::1'])(
  '%s is public',
  (address) => {
    expect(isPublicAddress(address)).toBe(true)
  },
)

test('a name that leads to an inner address is refused unless that is allowed', async () => {
  await expect(resolveTarget('localhost', false)).rejects.toThrow(OutboundError)
  await expect(resolveTarget('[::1]', false)).rejects.toThrow('not a public address')
  await expect(resolveTarget('127.0.0.1', true)).resolves.toBe('127.0.0.1')
  await expect(sendOutbound({ ...request('/'), arePrivateAllowed: false })).rejects.toThrow('not a public address')
})

test('the answer is cut at its limit', async () => {
  const { status, body } = await sendOutbound(request('/'))
  expect({ status, length: body.length }).toEqual({ status: 200, length: 4096 })
})

test('a redirect is not followed', async () => {
  expect((await sendOutbound(request('/redirect'))).status).toBe(302)
})

test('a target that does not answer fails at the time limit', async () => {
  await expect(sendOutbound(request('/silent', 500))).rejects.toThrow(OutboundError)
})

test.each([
  ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
  ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx'],
  ['no HTTP', 'SSH-2.0-x\r\n'],
])('%s is a failure', async (_, answer) => {
  const raw = createRawServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(answer))
  })
  await new Promise<void>((resolve) => {
    raw.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/`
  await expect(sendOutbound({ ...request('/'), url })).rejects.toThrow(OutboundError)
  raw.close()
})
