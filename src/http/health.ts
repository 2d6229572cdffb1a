// Endpoints without credentials: health for balancers, where a process is alive without the database and ready with it, and the answer at `/` for
// people who look whether anything is there.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Type } from '@sinclair/typebox'
import type { Clock } from '../lib/clock.ts'
import type { Operation } from './operation.ts'
import type { ServiceState } from './connections.ts'

/** Serves the health of the process. `pingDatabase` resolves when the database answers and takes writes, and otherwise rejects. */
export const health =
  (parts: {
    readonly pingDatabase: () => Promise<void>
    readonly serviceState: ServiceState
    readonly clock: Pick<Clock, 'isAgreed' | 'difference'>
  }) =>
  async (app: FastifyInstance) => {
    app.get('/health/live', { schema: { response: { 200: Healthy } } }, async () => ({ status: 'OK' }))
    app.get('/health/ready', { schema: { response: { 200: Healthy, 503: Unhealthy } } }, async (_request, reply) => {
      try {
        // A stop first tells balancers to send nothing more; what they send meanwhile is served.
        if (parts.serviceState.phase !== 'serving') return refuse(reply)
        await parts.pingDatabase()
        return parts.clock.isAgreed() ? { status: 'OK' } : refuse(reply, explain(parts.clock))
      } catch {
        return refuse(reply)
      }
    })
  }

const refuse = (reply: FastifyReply, reason?: string): FastifyReply =>
  reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE', reason })

const explain = ({ difference }: Pick<Clock, 'difference'>): string => {
  const seconds = Math.round((difference() ?? 0) / 1000)
  return `the clock of this process is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} that of the database`
}

const Healthy = Type.Object({ status: Type.Literal('OK') }, { title: 'Ok' })
const Unhealthy = Type.Object(
  {
    status: Type.Literal('UNAVAILABLE'),
    reason: Type.Optional(Type.String({ description: 'where the database is not to blame' })),
  },
  { title: 'NotReady' },
)

/** Serves `/`: a redirect `to` a page for people, by its path below `/`, or one line of `text` without such a page. */
export const front =
  ({ to, text }: { readonly to?: string | undefined; readonly text: string }) =>
  async (app: FastifyInstance) => {
    // The redirect is relative, because a proxy may have removed a prefix of the path.
    app.get('/', async (_request, reply) =>
      to === undefined ? reply.type('text/plain; charset=utf-8').send(`${text}\n`) : reply.redirect(`./${to}`, 303),
    )
  }

const tag = 'Description and health'

/** The same endpoints for the OpenAPI document. */
export const openOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/',
    operationId: 'readFront',
    tag,
    summary: 'What this listener is',
    description: 'Where the console is, it leads there.',
    security: [],
    answers: [
      { status: 200, description: 'one line of text', mediaType: '*/*' },
      { status: 303, description: 'to the console', headers: { Location: 'where it is, relative' } },
    ],
  },
  {
    method: 'GET',
    path: '/health/live',
    operationId: 'readLiveness',
    tag,
    summary: 'The process serves requests',
    security: [],
    answers: [{ status: 200, description: 'alive', schema: Healthy }],
  },
  {
    method: 'GET',
    path: '/health/ready',
    operationId: 'readReadiness',
    tag,
    summary:
      'The database answers and takes writes, its clock and that of the process agree, and the server is not about to stop',
    security: [],
    answers: [
      { status: 200, description: 'ready', schema: Healthy },
      { status: 503, description: 'not ready', schema: Unhealthy, headers: { 'Retry-After': 'seconds' } },
    ],
  },
]
