// Compiles how an answer is written when the first such answer is sent, once for all routes that share its schema. Fastify would compile the
// answers of all routes at the start, some 500, of which most processes use few.
import type { FastifyInstance, FastifyReply } from 'fastify'

/** Holds for routes that are added later. A route names the schemas of its answers by their statuses: `schema.response`. */
export function serializeWhenSent(app: FastifyInstance): void {
  const writers = new WeakMap<object, ReturnType<FastifyReply['compileSerializationSchema']>>()
  app.addHook('onRoute', (route) => {
    const answers = route.schema?.response as Readonly<Record<number, Record<string, unknown>>> | undefined
    if (answers === undefined) return
    route.schema = { ...route.schema, response: undefined }
    route.preSerialization = (_request, reply, answer, done) => {
      const schema = answers[reply.statusCode]
      if (schema !== undefined) {
        const write = writers.get(schema) ?? reply.compileSerializationSchema(schema)
        writers.set(schema, write)
        reply.serializer(write)
      }
      done(null, answer)
    }
  })
}
