// Options of the HTTP server that hold for every API.
import type { FastifyServerOptions } from 'fastify'

export interface ServerSettings {
  /** IP addresses and CIDR ranges whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
}

/** Limits and framing. TLS ends at the balancer in front of pawl. */
export const serverOptions = ({ trustedProxies }: ServerSettings) =>
  ({
    bodyLimit: 256 * 1024,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    // Clients keep connections; one that is closed while they send costs them a request that may not be repeated.
    keepAliveTimeout: 75_000,
    requestTimeout: 30_000,
    connectionTimeout: 0,
    // A connection that waits for its first or next request must not delay the stop.
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 255 },
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
  }) as const satisfies FastifyServerOptions
