// Nobody who has proved nothing has a long body read: every route of every listener, whatever the content type.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { BODY_KINDS, sendBytes } from '../../bench/http/long-bodies.ts'
import { headersOf, type Listener, openListener, type Route, SURFACES } from '../helpers/listeners.ts'

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
