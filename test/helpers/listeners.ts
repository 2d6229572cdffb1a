// Opens the listeners of a process, each with a list of its real routes.
import diagnostics from 'node:diagnostics_channel'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { buildApp, type Surface } from '../../src/app.ts'
import type { Context } from '../../src/context.ts'

export interface Route {
  readonly method: string
  /** The path, with a name in place of each parameter. */
  readonly path: string
}

export interface Listener {
  readonly surface: Surface
  readonly port: number
  readonly routes: readonly Route[]
  readonly close: () => Promise<void>
}

export const SURFACES = ['everything', 'public', 'internal'] as const satisfies readonly Surface[]

/** Builds a listener around a context, and opens it on loopback. */
export async function openListener(context: Context, surface: Surface): Promise<Listener> {
  const routes: Route[] = []
  // Fastify publishes this message before a server has its first route.
  const follow = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) routes.push({ method: one, path: url.replaceAll(/:\w+/g, 'x') })
    })
  }
  diagnostics.subscribe('fastify.initialization', follow)
  const app = await buildApp(context, surface).finally(() => diagnostics.unsubscribe('fastify.initialization', follow))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const close = async (): Promise<void> => {
    app.server.closeAllConnections()
    await app.close()
  }
  return { surface, port, routes, close }
}

/** The first line and the headers of a request, with a blank line at their end. */
export const headersOf = ({ method, path }: Route, headers: Readonly<Record<string, string | undefined>>): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\n${Object.entries(headers)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}\r\n`]))
    .join('')}\r\n`
