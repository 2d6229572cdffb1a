// HEAD, and what a listener says at `/`.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpReply, member, NO_BODY, send, sendJson } from '../../phone/http.ts'
import { createBank, readQrCode } from '../helpers/bank.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { startSession } from '../helpers/console-session.ts'
import { type Listener, openListener, SURFACES } from '../helpers/listeners.ts'
import { expectOk, openWorld, type World } from '../helpers/world.ts'

/** Where a code is over the method as well, and used up by a right one. */
const SIGNED = ['/pa/v3/signature/validate', '/pa/v4/auth/validate']

let server: TestServer
const listeners: Listener[] = []
let world: World
let admin: Readonly<Record<string, string>>
let token: string
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
  // One after the other: each notes the routes of every server that is made meanwhile.
  for (const surface of SURFACES) listeners.push(await openListener(server.context, surface))
  const { user, password } = server.admin
  const advance = () => undefined
  world = await openWorld({ urls: [server.url], admin: `${user}:${password}`, advance, close: async () => undefined }, 'test-app')
  admin = { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
  token = (await startSession(server.url, user, password)).token
})
afterAll(async () => {
  for (const listener of listeners) await listener.close()
  await server.close()
})

const listenerOf = (surface: string): Listener => {
  const listener = listeners.find((one) => one.surface === surface)
  if (listener === undefined) throw new Error(`no listener ${surface}`)
  return listener
}

/** The cookie has the port in its name. */
const cookieOf = (port: number) => ({ Cookie: `pawl_console_${port}=${token}` })

const ask = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  url = server.url,
): Promise<HttpReply> => send(url, { method, path, headers, body: NO_BODY })

describe.each(SURFACES)('the listener of %s', (surface) => {
  test('has HEAD wherever it has GET, and nowhere else, but where it would use up a code', () => {
    const { routes } = listenerOf(surface)
    // Of /console, which is served with a slash at its end as well, GET is told once.
    const pathsOf = (method: string): string[] => [
      ...new Set(routes.filter((route) => route.method === method).map(({ path }) => path.replace(/^(.+)\/$/, '$1'))),
    ]
    const gets = pathsOf('GET').filter((path) => !SIGNED.includes(path))
    expect(gets.length).toBeGreaterThan(surface === 'public' ? 4 : 30)
    expect(pathsOf('HEAD').toSorted()).toEqual(gets.toSorted())
  })

  test('answers HEAD as GET, without a credential and with one', async () => {
    const { port, routes } = listenerOf(surface)
    const url = `http://127.0.0.1:${port}`
    const paths = routes.filter(({ method }) => method === 'HEAD').map(({ path }) => path)
    const differing: string[] = []
    for (const path of new Set(paths)) {
      for (const headers of [{}, path.startsWith('/console') ? cookieOf(port) : admin]) {
        const [get, head] = [await ask('GET', path, headers, url), await ask('HEAD', path, headers, url)]
        const shown = ({ status, headers: { location, 'content-type': type } }: HttpReply) =>
          JSON.stringify([status, location, type])
        if (shown(get) !== shown(head) || head.text !== '') differing.push(`${path}: ${shown(get)} ${shown(head)} ${head.text}`)
      }
    }
    expect(differing).toEqual([])
  })
})

test.each([
  ['/health/live', {}, 200],
  ['/health/ready', {}, 200],
  ['/console/sign-in', {}, 200],
  ['/openapi.json', {}, 200],
  ['/swagger-ui.html', {}, 200],
  ['/registration?userId=a', {}, 401],
  ['/admin/users', {}, 401],
  ['/metrics', {}, 401],
  ['/console/', {}, 303],
  ['/nothing', {}, 404],
  ['/pa/v3/status', {}, 404],
])('HEAD %s is answered, with the length that GET has', async (path, headers, status) => {
  const [get, head] = [await ask('GET', path, headers), await ask('HEAD', path, headers)]
  expect([get.status, head.status, head.text]).toEqual([status, status, ''])
  expect(Math.abs(Number(head.headers['content-length']) - Buffer.byteLength(get.text))).toBe(0)
})

test.each(['/admin/users', '/admin/applications', '/registration?userId=a', '/admin/templates', '/metrics'])(
  'HEAD %s needs the credential that GET needs',
  async (path) => {
    const wrong = { Authorization: `Basic ${Buffer.from('admin:wrong').toString('base64')}` }
    const statuses = await Promise.all([{}, wrong, admin].map(async (headers) => (await ask('HEAD', path, headers)).status))
    expect(statuses).toEqual([401, 401, 200])
  },
)

test('a back end may not look at what it may not read', async () => {
  const bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  const made = expectOk(
    await bank.call('POST', '/admin/users', { username: 'core', role: 'integration', application: 'test-app' }),
  )
  const basic = Buffer.from(`core:${String(member(made.json, 'password'))}`).toString('base64')
  const headers = { Authorization: `Basic ${basic}` }
  expect((await ask('HEAD', '/admin/users', headers)).status).toBe(403)
  expect((await ask('HEAD', '/registration?userId=a', headers)).status).toBe(200)
})

test('a wrong password of HEAD counts as one of GET', async () => {
  const own = await startTestServer({ env: { PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '3' } })
  const headers = { Authorization: `Basic ${Buffer.from('admin:wrong').toString('base64')}` }
  const statuses: number[] = []
  for (let i = 0; i < 4; i += 1) statuses.push((await ask('HEAD', '/admin/users', headers, own.url)).status)
  expect(statuses).toEqual([401, 401, 401, 429])
  expect((await ask('GET', '/admin/users', headers, own.url)).status).toBe(429)
  await own.close()
})

test.each(SIGNED)('HEAD %s uses up no code', async (path) => {
  const phone = world.newPhone('3.3')
  await phone.activate(readQrCode(await world.bank.register(`head-${path}`)).code)
  expectOk(await world.bank.commit(`head-${path}`))
  for (const method of ['GET', 'HEAD'] as const) {
    const prepared = phone.prepareValidation({ method })
    expect((await phone.send({ ...prepared, method: 'HEAD', path })).status).toBe(404)
    if (method === 'GET' && path === SIGNED[0]) expectOk(await phone.send(prepared))
  }
  expectOk(await phone.send(phone.prepareValidation()))
})

test('a message in the inbox that HEAD asks for stays unread, an operation stays as it is', async () => {
  const written = expectOk(
    await world.bank.call('POST', '/inbox/messages', { userId: 'ada', subject: 's', summary: 's', body: 'b', type: 'text' }),
  )
  const path = `/inbox/messages/${String(member(written.json, 'messageId'))}`
  const before = (await ask('GET', path, admin)).json
  expect((await ask('HEAD', path, admin)).status).toBe(200)
  expect((await ask('GET', path, admin)).json).toEqual(before)
})

test('a body beside HEAD is bounded as one beside GET', async () => {
  const url = `http://127.0.0.1:${listenerOf('everything').port}`
  for (const method of ['GET', 'HEAD']) {
    const reply = await send(url, { method, path: '/health/live', headers: {}, body: Buffer.alloc(16_385, 0x20) })
    expect([method, reply.status]).toEqual([method, 400])
  }
})

test('the document has no operation of its own for HEAD', async () => {
  const { json } = await sendJson(server.url, 'GET', '/openapi.json')
  const methods = Object.values(member(json, 'paths') as Record<string, object>).flatMap((one) => Object.keys(one))
  expect(methods).toContain('get')
  expect(methods).not.toContain('head')
})

describe('/', () => {
  test.each(['everything', 'internal'])('of the listener of %s leads to the console', async (surface) => {
    const { port } = listenerOf(surface)
    const url = `http://127.0.0.1:${port}`
    const { status, headers } = await ask('GET', '/', {}, url)
    expect([status, headers['location']]).toEqual([303, './console/'])
    expect((await ask('GET', new URL(String(headers['location']), url).pathname, cookieOf(port), url)).status).toBe(200)
  })

  test('of the public one says in a line what it is, and no version', async () => {
    const { status, headers, text } = await ask('GET', '/', {}, `http://127.0.0.1:${listenerOf('public').port}`)
    expect([status, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(text).toBe('pawl, for mobile apps: there are no pages here.\n')
  })

  test('without a console says in a line what describes the APIs', async () => {
    const without = await startTestServer({ env: { PAWL_CONSOLE: 'false' } })
    const { status, text } = await ask('GET', '/', {}, without.url)
    expect([status, text]).toEqual([200, 'pawl, for back ends: swagger-ui.html describes the APIs.\n'])
    await without.close()
  })

  test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('takes no %s', async (method) => {
    expect((await ask(method, '/', admin)).status).toBe(404)
  })
})
