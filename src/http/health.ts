// Health for balancers and people: alive without the database, ready with it.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { Clock } from '../lib/clock.ts'
import type { Operation } from './operation.ts'
import type { ServiceState } from './connections.ts'

/** `pingDatabase` resolves when the database answers and takes writes, and rejects when not. */
export const health =
  (parts: {
    readonly pingDatabase: () => Promise<void>
    readonly serviceState: ServiceState
    readonly clock: Pick<Clock, 'isAgreed' | 'difference'>
  }): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get('/health/live', { schema: { response: { 200: Healthy } } }, async () => ({ status: 'OK' as const }))
    app.get('/health/ready', { schema: { response: { 200: Healthy, 503: Unhealthy } } }, async (_request, reply) => {
      try {
        // A stop first tells balancers to send nothing more; what they send meanwhile is served.
        if (parts.serviceState.phase !== 'serving')
          return reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE' })
        await parts.pingDatabase()
        if (!parts.clock.isAgreed())
          return reply
            .code(503)
            .header('retry-after', 1)
            .send({ status: 'UNAVAILABLE', reason: explain(parts.clock) })
        return { status: 'OK' as const }
      } catch {
        return reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE' })
      }
    })
  }

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

const tag = 'Description and health'

/** What the description of the APIs says of health. */
export const healthOperations: readonly Operation[] = [
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
