// Tests which addresses count as public, and that a request goes only to the checked address.
import { spawn } from 'node:child_process'
import dns from 'node:dns/promises'
import { on } from 'node:events'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCertificate } from '../../test/helpers/certificates.ts'
import { findQuietPort } from '../../test/helpers/ports.ts'
import { isPublicAddress, OF_OPERATOR, OutboundError, resolveTarget, sendOutbound } from './outbound.ts'

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
  rules: OF_OPERATOR,
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

test.each(['1.1.1.1', '9.255.255.255', '172.32.0.1', '193.0.0.1', '2606:4700::1111', '2a00:1450:4001::1', '::ffff:1.1.1.1'])(
  '%s is public',
  (address) => {
    expect(isPublicAddress(address)).toBe(true)
  },
)

test('a name that nobody resolves is looked up once at a time, however many wait for it', async () => {
  const asked: string[] = []
  const unanswered = Promise.withResolvers<never>()
  const { lookup } = dns
  Object.assign(dns, { lookup: (name: string) => (asked.push(name), unanswered.promise) })
  syncBuiltinESMExports()
  try {
    const ask = () => sendOutbound({ ...request('/', 50), url: 'http://receiver.example/' }).catch(String)
    const said = await Promise.all(Array.from({ length: 16 }, ask))
    said.push(await ask())
    expect(said.filter((text) => !String(text).includes('was not resolved within'))).toEqual([])
    expect(asked).toEqual(['receiver.example'])
    unanswered.reject(Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' }))
    expect(await ask()).toContain('cannot be resolved (EAI_AGAIN)')
    // Once an answer has come, the next call asks anew.
    await vi.waitFor(async () => {
      await ask()
      expect(asked.length).toBeGreaterThan(1)
    })
  } finally {
    Object.assign(dns, { lookup })
    syncBuiltinESMExports()
  }
})

test('a name that leads to an inner address is refused unless that is allowed', async () => {
  await expect(resolveTarget('localhost', false)).rejects.toThrow(OutboundError)
  await expect(resolveTarget('[::1]', false)).rejects.toThrow('not a public address')
  await expect(resolveTarget('127.0.0.1', true)).resolves.toBe('127.0.0.1')
  const rules = { ...OF_OPERATOR, webhookAllowPrivateAddresses: false }
  await expect(sendOutbound({ ...request('/'), rules })).rejects.toThrow('not a public address')
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

/** Sends a request to a server that treats its connection as `behave` says. */
async function askPeer(behave: (socket: Socket) => void, more: Partial<Parameters<typeof sendOutbound>[0]> = {}) {
  const raw = createRawServer((socket) => {
    socket.on('error', () => undefined)
    behave(socket)
  })
  await new Promise<void>((resolve) => {
    raw.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/`
  try {
    return await sendOutbound({ ...request('/'), url, ...more })
  } finally {
    raw.close()
  }
}

/** The most bytes that a target can send before the connection is ended: bytes in buffers of the system, which nobody has read. */
const SENT_MAX = 32 * 1024 * 1024
/** The bytes that the floods of this test have sent. It is less than a target could send until a time limit. */
let sent = 0
beforeEach(() => {
  sent = 0
})

/** Writes `head`, and then `again` for as long as the other side reads. */
const flood =
  (head: string, again: string) =>
  (socket: Socket): void => {
    const block = Buffer.from(again.repeat(Math.ceil(65_536 / again.length)))
    const go = (): void => {
      while (!socket.destroyed && sent < 2 * SENT_MAX) {
        sent += block.length
        if (!socket.write(block)) return
      }
    }
    socket.once('data', () => {
      socket.write(head)
      socket.on('drain', go)
      go()
    })
  }

/** The words with which an error reports a time limit. */
const TIME_LIMIT = /within [\d.]+ s/
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
describe('a target that answers without end is left early', () => {
  test.each<[string, string, string]>([
    ['hints', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['hints with headers', '', 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'],
    ['permissions to go on', '', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['interim answers that nobody knows', '', 'HTTP/1.1 199 x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n'],
    ['empty lines', '', '\r\n'],
    ['a status text', 'HTTP/1.1 200 ', 'x'],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'a: b\r\n'],
    ['headers without a name', 'HTTP/1.1 200 OK\r\n', ' : \r\n'],
    ['one header', 'HTTP/1.1 200 OK\r\nx: ', 'x'],
    ['trailers', `${CHUNKED}0\r\n`, 'a: b\r\n'],
    ['the extension of a chunk', `${CHUNKED}1;`, 'x'],
    ['extensions of small chunks', CHUNKED, `1;${'x'.repeat(10_000)}\r\nx\r\n`],
    ['digits of the size of a chunk', CHUNKED, '0'],
  ])('%s', async (_, head, again) => {
    const error: unknown = await askPeer(flood(head, again)).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OutboundError)
    expect(String(error)).not.toMatch(TIME_LIMIT)
    expect(sent).toBeLessThan(SENT_MAX)
  })

  test('packets of one byte', async () => {
    const drip = (socket: Socket): void => {
      socket.setNoDelay(true)
      const timer = setInterval(() => {
        for (let i = 0; i < 20; i += 1) setImmediate(() => socket.write('x'))
      }, 1)
      socket.on('close', () => clearInterval(timer))
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
    }
    await expect(askPeer(drip, { answerBytesMax: 262_144, timeoutMs: 20_000 })).rejects.toThrow('smaller pieces')
  })

  // Only the server of openssl sends as many tickets as the test asks for.
  test.skipIf(!existsSync('/usr/bin/openssl'))('tickets of TLS', async () => {
    const { pem, privateKeyPem } = createCertificate(['IP:127.0.0.1'])
    const certificate = join(mkdtempSync(join(tmpdir(), 'pawl-outbound-')), 'certificate.pem')
    writeFileSync(certificate, `${pem}\n${privateKeyPem}`)
    setDefaultCACertificates([...getCACertificates('default'), pem])
    const tlsPort = await findQuietPort()
    const options = ['-accept', `127.0.0.1:${tlsPort}`, '-cert', certificate, '-key', certificate, '-num_tickets', '1000000000']
    const tickets = spawn('/usr/bin/openssl', ['s_server', ...options], { stdio: ['pipe', 'pipe', 'ignore'] })
    try {
      let printed = ''
      // openssl prints ACCEPT once it listens, and other lines before.
      for await (const [data] of on(tickets.stdout, 'data')) {
        printed += data
        if (printed.includes('ACCEPT')) break
      }
      // The connection fails for the number of bytes and not for the time limit.
      await expect(sendOutbound({ ...request('/'), url: `https://127.0.0.1:${tlsPort}/` })).rejects.toThrow('sent more')
    } finally {
      tickets.kill('SIGKILL')
    }
  })
})

test.each<[string, string, string, number]>([
  ['more answers', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx', 1],
  ['interim answers', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx', 'HTTP/1.1 103 x\r\n\r\n', 1],
  ['answers behind none', 'HTTP/1.1 204 No Content\r\n\r\n', 'HTTP/1.1 500 No\r\n\r\n', 0],
  ['a body without end', 'HTTP/1.1 200 OK\r\n\r\n', 'x', 4096],
  ['chunks without end', CHUNKED, '1\r\nx\r\n', 4096],
])('an answer is taken for itself, and what follows is not read: %s', async (_, head, again, length) => {
  expect((await askPeer(flood(head, again))).body).toHaveLength(length)
  expect(sent).toBeLessThan(SENT_MAX)
})

test('a few interim answers are none of the answer', async () => {
  const interim = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
  const answer = await askPeer((socket) => {
    socket.once('data', () => socket.end(`${interim}HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok`))
  })
  expect({ status: answer.status, body: answer.body.toString() }).toEqual({ status: 201, body: 'ok' })
})

test('a success is none before the target has the whole request, a refusal is one', async () => {
  const early = (status: string) => (socket: Socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`)
    })
  }
  const body = 'x'.repeat(16 * 1024 * 1024)
  await expect(askPeer(early('200 OK'), { body })).rejects.toThrow('before it had the whole request')
  await expect(askPeer(early('204 No Content'), { body })).rejects.toThrow('before it had the whole request')
  expect((await askPeer(early('413 Too Large'), { body })).status).toBe(413)
  expect((await askPeer(early('200 OK'))).status).toBe(200)
})

test.each<[string, string, (socket: Socket) => void]>([
  ['ends', 'broke the connection (ECONNRESET): ', (socket) => socket.end()],
  ['resets', 'broke the connection (ECONNRESET): ', (socket) => socket.once('data', () => socket.resetAndDestroy())],
  ['speaks something else', 'does not answer in HTTP (HPE_INVALID_CONSTANT): ', (socket) => socket.write('SSH-2.0-x\r\n')],
])('a target that %s is told apart', async (_, problem, behave) => {
  await expect(askPeer(behave)).rejects.toThrow(problem)
})

test.each<[string, string]>([
  ['is silent', ''],
  ['stops in its answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx'],
])('a target that %s is told apart, at the time limit', async (_, answer) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const asked = Promise.withResolvers<void>()
    const answerAll = (socket: Socket) =>
      socket.once('data', () => {
        socket.write(answer)
        asked.resolve()
      })
    let isOver = false
    const attempt = askPeer(answerAll, { timeoutMs: 500 }).finally(() => (isOver = true))
    const expectation = expect(attempt).rejects.toThrow('did not answer within 0.5 s: ')
    await asked.promise
    await vi.advanceTimersByTimeAsync(499)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await expectation
  } finally {
    vi.useRealTimers()
  }
})

test('a target that is not there, and one that cannot be trusted, are told apart', async () => {
  const { port: closed } = { port: await findQuietPort() }
  await expect(sendOutbound({ ...request('/'), url: `http://127.0.0.1:${closed}/` })).rejects.toThrow(
    `http://127.0.0.1:${closed} refuses connections (ECONNREFUSED): `,
  )
  await expect(sendOutbound({ ...request('/'), url: `https://127.0.0.1:${port}/` })).rejects.toThrow('does not speak this TLS')
  await expect(sendOutbound({ ...request('/'), url: 'http://nobody.invalid/' })).rejects.toThrow(/cannot be resolved \(E/)
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
