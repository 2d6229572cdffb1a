// Health for balancers and people: alive without the database, ready with it.
import type { FastifyInstance } from 'fastify'

export interface HealthParts {
  /** Resolves when the database answers, rejects when not. */
  readonly pingDatabase: () => Promise<void>
}

export const health = (parts: HealthParts) => async (app: FastifyInstance) => {
  app.get('/health/live', async () => ({ status: 'OK' }))
  app.get('/health/ready', async (_request, reply) => {
    try {
      await parts.pingDatabase()
      return { status: 'OK' }
    } catch {
      return reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE' })
    }
  })
}
