// Measures how long requests take, by route and status.
import type { FastifyInstance } from 'fastify'
import type { Instruments } from './instruments.ts'

interface Served {
  readonly method: string
  /** As it is mounted; undefined for a path that nothing is mounted at. */
  readonly route: string | undefined
  readonly status: number
  readonly ms: number
}

/** What has no route is one, whatever its path and method: nobody makes series by thinking of paths. */
export function createRequestTimer({ requests }: Pick<Instruments, 'requests'>): (served: Served) => void {
  return ({ method, route, status, ms }) =>
    requests.observe({ method: route ? method : 'any', route: route ?? 'unknown', status: String(status) }, ms / 1000)
}

/** Times the requests of a listener, from their headers to the end of their answer. */
export function timeRequests(app: FastifyInstance, time: (served: Served) => void): void {
  app.addHook('onResponse', ({ method, routeOptions: { url: route } }, { statusCode: status, elapsedTime: ms }, done) => {
    time({ method, route, status, ms })
    done()
  })
}
