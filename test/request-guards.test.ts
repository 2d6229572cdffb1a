// Rules for every request and answer, whatever its API: nobody caches an answer or guesses its type, and a request names one host.
import { connect } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { send } from '../phone/http.ts'
import type { World } from './helpers/world.ts'
import { startWorld } from './helpers/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const GUARDS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
const EMPTY = Buffer.from('{}')

test.each([
  ['a state of the server', 'GET', '/health/ready', 200],
  ['the description', 'GET', '/openapi.json', 200],
  ['a status for phones', 'POST', '/pa/v3/status', 200],
  ['a refusal of the device API', 'POST', '/pa/v3/token/create', 401],
  ['a refusal of generation 4', 'POST', '/pa/v4/token/create', 401],
  ['a refusal of the mobile token API', 'POST', '/api/auth/token/app/operation/list', 401],
  ['a refusal of the utility API', 'GET', '/app/init', 403],
  ['missing credentials', 'GET', '/registration?userId=alice', 401],
  ['an unknown path', 'GET', '/nothing', 404],
  ['a path that does not decode', 'GET', '/admin/%ff', 400],
])('%s may not be kept, and its type may not be guessed', async (_, method, path, status) => {
  const body = method === 'POST' ? EMPTY : new Uint8Array(0)
  const reply = await send(world.url, { method, path, headers: { 'Content-Type': 'application/json' }, body })
  expect(reply.status, reply.text).toBe(status)
  expect(reply.headers).toMatchObject(GUARDS)
})

test('an answer to a right credential has the same headers', async () => {
  const reply = await world.bank.call('GET', '/admin/applications')
  expect(reply.status).toBe(200)
  expect(reply.headers).toMatchObject(GUARDS)
})

test('the refusal of bytes that are not a request has them, too', async () => {
  expect(await exchange('nothing\r\n\r\n')).toMatch(
    /^HTTP\/1\.1 400 [^]*\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n/,
  )
})

test.each([
  ['/pa/v3/status', '"ERR_VALIDATION"'],
  ['/api/auth/token/app/operation/list', '"INVALID_REQUEST"'],
  ['/registration', '"ERROR_REQUEST"'],
  ['/nothing', '"ERROR_REQUEST"'],
])('%s refuses two headers Host, equal ones too', async (path, code) => {
  const { host } = new URL(world.url)
  for (const second of [`host: ${host}`, 'HOST: elsewhere']) {
    const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, second, 'Content-Type: application/json', 'Content-Length: 2']
    const answer = await exchange(`${head.join('\r\n')}\r\nConnection: close\r\n\r\n{}`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain(code)
  }
})

/** Sends bytes and reads until the server closes the connection. */
async function exchange(bytes: string): Promise<string> {
  const { hostname, port } = new URL(world.url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  return readText(socket)
}
