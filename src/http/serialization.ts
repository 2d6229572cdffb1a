// Compiles how an answer is written when a route sends its first such answer. Fastify would compile the answers of all routes at the start,
// some 500, of which most processes use few.
import type { FastifyInstance } from 'fastify'

/** Holds for routes that are added later. A route names the schemas of its answers by their statuses: `schema.response`. */
export function serializeWhenSent(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const answers = route.schema?.response as Readonly<Record<number, Record<string, unknown>>> | undefined
    if (answers === undefined) return
    route.schema = { ...route.schema, response: undefined }
    route.preSerialization = (_request, reply, answer, done) => {
      const schema = answers[reply.statusCode]
      if (schema !== undefined) reply.serializer(reply.compileSerializationSchema(schema))
      done(null, answer)
    }
  })
}
