// The id of a request: in every answer, in every log line that the request causes, and the caller's own when it has a sane one.
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_BODY, send, sendJson } from '../../phone/http.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { basicAuthorization } from '../helpers/bank.ts'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.close())

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** Lines that the server has logged, parsed. */
const lines = (): Record<string, unknown>[] =>
  server
    .log()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe('the answer', () => {
  test.each([
    ['GET', '/health/ready', 200],
    ['POST', '/pa/v3/status', 200],
    ['POST', '/pa/v3/keystore/create', 400],
    ['POST', '/pa/v4/activation/status', 400],
    ['POST', '/api/auth/token/app/operation/list', 401],
    ['GET', '/app/init?appName=nobody', 403],
    ['GET', '/registration?userId=a', 401],
    ['GET', '/nowhere', 404],
    ['GET', '/pa/nowhere', 404],
    ['GET', '/%', 400],
    ['GET', '/openapi.json', 200],
  ])('to %s %s has an id of ours', async (method, path, status) => {
    const first = await sendJson(server.url, method, path, method === 'POST' ? {} : undefined)
    const second = await sendJson(server.url, method, path, method === 'POST' ? {} : undefined)
    expect([first.status, second.status]).toEqual([status, status])
    expect(first.headers['x-request-id']).toMatch(UUID)
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
  })

  test.each(['a', 'Root=1-67891233-abcdef012345678912345678', '4bf92f3577b34da6a3ce929d0e0e4736', 'x'.repeat(128)])(
    "keeps the caller's own: %s",
    async (id) => {
      const reply = await sendJson(server.url, 'GET', '/nowhere', undefined, { 'X-Request-Id': id })
      expect(reply.headers['x-request-id']).toBe(id)
    },
  )

  test.each(['', ' ', 'two words', 'quote"', '{"a":1}', '$(reboot)', 'x'.repeat(129), 'ä'])(
    'does not repeat what is not an id: %s',
    async (id) => {
      const headers = { 'X-Request-Id': Buffer.from(id).toString('latin1') }
      const reply = await send(server.url, { method: 'GET', path: '/nowhere', headers, body: NO_BODY })
      expect(reply.headers['x-request-id']).toMatch(UUID)
    },
  )
})

describe('the log', () => {
  test.each([
    ['a wrong password', 'credential refused', 'GET', '/admin/applications', basicAuthorization('admin:wrong')],
    ['an unknown temporary key', 'temporary key refused', 'POST', '/pa/v3/keystore/create', {}],
    ['a refused app', 'mobile utility request refused', 'GET', '/app/init?appName=nobody', {}],
  ])('has the id in the line of %s', async (title, msg, method, path, headers) => {
    const id = title.replaceAll(' ', '-')
    const body = { requestObject: { jwt: 'a.b.c' } }
    await sendJson(server.url, method, path, method === 'POST' ? body : undefined, { ...headers, 'X-Request-Id': id })
    await expect
      .poll(() => lines().filter((line) => line['msg'] === 'request served' && line['requestId'] === id))
      .toHaveLength(1)
    expect(lines().filter((line) => line['msg'] === msg && line['requestId'] === id)).toHaveLength(1)
  })

  test('has nothing above debug of uploads that are broken off', async () => {
    const before = server.log().length
    await Promise.all(['/pa/v3/status', '/pa/v4/status', '/api/auth/token/app/operation/list'].map(abortUpload))
    const ABORTED = 'the caller went away before its request was whole'
    await expect.poll(() => lines().filter(({ msg }) => msg === ABORTED)).toHaveLength(3)
    const levels = server
      .log()
      .slice(before)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { level: string }).level)
    expect(new Set(levels)).toEqual(new Set(['debug']))
  })
})

/** Announces a body, sends the beginning and goes away. */
function abortUpload(path: string): Promise<void> {
  const { hostname, port } = new URL(server.url)
  const { Authorization } = basicAuthorization(`${server.admin.user}:${server.admin.password}`)
  const head = [`POST ${path} HTTP/1.1`, 'Host: pawl', `Authorization: ${Authorization}`, 'Content-Type: application/json']
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    socket.once('close', () => resolve())
    // Expect: 100 Continue tells that the server has begun with the request.
    socket.once('data', () => {
      socket.write('{"half":', () => socket.resetAndDestroy())
    })
    socket.write(`${[...head, 'Content-Length: 10000', 'Expect: 100-continue'].join('\r\n')}\r\n\r\n`)
  })
}
