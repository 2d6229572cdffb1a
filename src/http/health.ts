// Health for balancers and people: alive without the database, ready with it.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { Operation } from './operation.ts'
import type { ServiceState } from './service-state.ts'

export interface HealthParts {
  /** Resolves when the database answers and takes writes, rejects when not. */
  readonly pingDatabase: () => Promise<void>
  readonly serviceState: ServiceState
}

export const health =
  (parts: HealthParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get('/health/live', { schema: { response: { 200: Healthy } } }, async () => ({ status: 'OK' as const }))
    app.get('/health/ready', { schema: { response: { 200: Healthy, 503: Unhealthy } } }, async (_request, reply) => {
      try {
        // A stop first tells balancers to send nothing more; what they send meanwhile is served.
        if (parts.serviceState.phase !== 'serving')
          return reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE' })
        await parts.pingDatabase()
        return { status: 'OK' as const }
      } catch {
        return reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE' })
      }
    })
  }

const Healthy = Type.Object({ status: Type.Literal('OK') }, { title: 'Ok' })
const Unhealthy = Type.Object({ status: Type.Literal('UNAVAILABLE') }, { title: 'NotReady' })

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
    summary: 'The database answers and takes writes, and the server is not about to stop',
    security: [],
    answers: [
      { status: 200, description: 'ready', schema: Healthy },
      { status: 503, description: 'not ready', schema: Unhealthy, headers: { 'Retry-After': 'seconds' } },
    ],
  },
]
