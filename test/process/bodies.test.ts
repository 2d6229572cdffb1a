// Nobody who has proved nothing has a long body read: every route of every listener, whatever the content type.
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { send } from '../../phone/http.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { BODY_KINDS, sendBytes } from '../../bench/http/long-bodies.ts'
import { headersOf, type Listener, openListener, type Route, SURFACES } from '../helpers/listeners.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const KIB = 1024
const STRANGERS = 16 * KIB
const SIGNED = 128 * KIB

/** Where a code or an envelope covers the body; a new endpoint that is to take as much is put here by hand. */
const COVERED: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    [
      '/pa/v3/signature/validate',
      '/pa/v4/auth/validate',
      '/pa/v3/activation/remove',
      '/pa/v4/activation/remove',
      '/pa/v3/token/remove',
      '/pa/v4/token/remove',
      '/pa/v4/biometry/remove',
      '/pa/v4/upgrade/confirm',
      '/api/auth/token/app/operation/history',
    ].map((path) => [path, SIGNED]),
  ),
  '/api/auth/token/app/operation/authorize': 64 * KIB,
  '/pa/v3/activation/create': 64 * KIB,
  '/pa/v4/activation/create': 64 * KIB,
}

const TYPES = BODY_KINDS.map(({ type }) => type)

let server: TestServer
let listeners: readonly Listener[]
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
  listeners = await Promise.all(SURFACES.map((surface) => openListener(server.context, surface)))
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

/** Unknown paths of each API are no routes, and answer as well. */
const UNKNOWN: readonly Route[] = [
  '/nothing',
  '/pa/nothing',
  '/api/nothing',
  '/app/nothing',
  '/console/nothing',
  '/admin/nothing',
].map((path) => ({ method: 'POST', path }))

/** The answers that are no refusal, a few requests at a time. */
async function findTaken(
  port: number,
  requests: readonly { readonly name: string; readonly bytes: string | Uint8Array }[],
): Promise<string[]> {
  const taken: string[] = []
  const waiting = requests.values()
  const client = async (): Promise<void> => {
    for (const { name, bytes } of waiting) {
      const status = await sendBytes(port, bytes)
      if (!/^(4\d\d|303)$/.test(status)) taken.push(`${name}: ${status}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return taken
}

/** All of them where all routes are; the others have the same routes. */
const typesOf = (surface: string, i: number): readonly (string | undefined)[] =>
  surface === 'everything' ? TYPES : [TYPES[i % TYPES.length]]

const boundOf = ({ path }: Route): number => COVERED[path] ?? STRANGERS

describe.each(SURFACES)('the listener of %s', (surface) => {
  test('refuses a longer body by its headers, before a byte of it is sent', async () => {
    const { port, routes } = listenerOf(surface)
    expect(routes.length).toBeGreaterThan(40)
    const requests = [...routes, ...UNKNOWN].flatMap((route, i) =>
      typesOf(surface, i).map((type) => {
        const length = boundOf(route) + 1
        return {
          name: `${route.method} ${route.path} ${type} ${length}`,
          bytes: headersOf(route, { 'Content-Type': type, 'Content-Length': String(length) }),
        }
      }),
    )
    expect(await findTaken(port, requests)).toEqual([])
  })

  test('refuses a longer body in chunks before its end', async () => {
    const { port, routes } = listenerOf(surface)
    const requests = [...routes, ...UNKNOWN].flatMap((route, i) =>
      typesOf(surface, i).map((type) => {
        const length = boundOf(route) + 1
        const headers = headersOf(route, { 'Content-Type': type, 'Transfer-Encoding': 'chunked' })
        return {
          name: `${route.method} ${route.path} ${type} ${length} in chunks`,
          bytes: `${headers}${length.toString(16)}\r\n${' '.repeat(length)}\r\n`,
        }
      }),
    )
    expect(await findTaken(port, requests)).toEqual([])
  })
})

describe('a body', () => {
  const port = (): number => listenerOf('everything').port
  const status = { method: 'POST', path: '/pa/v3/activation/status' }
  const json = (bytes: number): string => `{"requestObject":{"activationId":"x"},"x":"${'x'.repeat(bytes - 45)}"}`

  test.each(Object.entries(COVERED))('of %s is waited for up to %i bytes', async (path, bytesMax) => {
    const bytes = headersOf({ method: 'POST', path }, { 'Content-Type': 'application/json', 'Content-Length': String(bytesMax) })
    expect(await sendBytes(port(), bytes, 300)).toBe('no answer')
  })

  test.each([
    ['16 KiB', json(STRANGERS), '200'],
    ['a byte more', json(STRANGERS + 1), '400'],
    ['248 KB', json(248_000), '400'],
  ])('of %s is answered, and so is the next request of its connection or of another', async (_, body, answer) => {
    for (let i = 0; i < 10; i += 1) {
      const headers = { 'Content-Type': 'application/json' }
      const reply = await send(`http://127.0.0.1:${port()}`, { ...status, headers, body: Buffer.from(body) })
      expect(String(reply.status)).toBe(answer)
      if (answer === '400') expect(reply.text).toContain('must have at most 16384 bytes')
    }
  })

  test('that is too long for an unknown path leaves it unknown', async () => {
    for (const path of ['/nothing', '/pa/nothing', '/console/nothing', '/app/nothing']) {
      const bytes = headersOf({ method: 'POST', path }, { 'Content-Type': 'text/plain', 'Content-Length': '300000' })
      expect(await sendBytes(port(), bytes)).toBe('404')
    }
  })

  test.each([
    [500, '200'],
    [513, '400'],
    [16_000, '400'],
  ])('may come in %i chunks: %s', async (count, answer) => {
    const body = json(count)
    const chunks = Array.from(body, (character) => `1\r\n${character}\r\n`).join('')
    const headers = headersOf(status, { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' })
    expect(body).toHaveLength(count)
    expect(await sendBytes(port(), `${headers}${chunks}0\r\n\r\n`)).toBe(answer)
  })

  test.each(['/nothing', '/health/live', '/registration', '/console/registrations/new', '/swagger-ui.html'])(
    'without an end is not read on after the answer: %s',
    async (path) => {
      const method = path === '/registration' || path === '/console/registrations/new' ? 'POST' : 'GET'
      for (const expectation of [undefined, '100-continue', 'anything']) {
        const headers = headersOf({ method, path }, { Expect: expectation, 'Transfer-Encoding': 'chunked' })
        expect(await readToEnd(port(), `${headers}${'1\r\nx\r\n'.repeat(40_000)}`)).toMatch(
          /^HTTP\/1\.1 (?!5|417)[^]*connection: close/i,
        )
      }
    },
  )
})

/** What comes over a connection until the other side closes it. */
const readToEnd = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`still open after ${text}`))
    }, PATIENCE_MS)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, ''))
    })
    socket.write(bytes)
  })
