// Health for balancers and people: alive without the database, ready with it.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'

export interface HealthParts {
  /** Resolves when the database answers, rejects when not. */
  readonly pingDatabase: () => Promise<void>
}

export const health =
  (parts: HealthParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get('/health/live', { schema: { response: { 200: Healthy } } }, async () => ({ status: 'OK' as const }))
    app.get('/health/ready', { schema: { response: { 200: Healthy, 503: Unhealthy } } }, async (_request, reply) => {
      try {
        await parts.pingDatabase()
        return { status: 'OK' as const }
      } catch {
        return reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE' })
      }
    })
  }

const Healthy = Type.Object({ status: Type.Literal('OK') })
const Unhealthy = Type.Object({ status: Type.Literal('UNAVAILABLE') })
