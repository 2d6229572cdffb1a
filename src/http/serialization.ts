// Compiles how an answer is written when the first such answer is sent, and once for all routes that share a schema: a start would compile
// some 500 of them, of which most processes use few.
import selectSerializer, {
  type RouteDefinition,
  type Serializer,
  type SerializerFactory,
} from '@fastify/fast-json-stringify-compiler'

/** For Fastify's `schemaController.compilersFactory`, in place of the one that compiles every answer of every route at once. */
export function createSerializerFactory(): SerializerFactory {
  const open = selectSerializer()
  return (externalSchemas, options) => {
    const compile = open(externalSchemas, options)
    const known = new WeakMap<object, Serializer>()
    return (route: RouteDefinition) => {
      const { schema } = route
      if (typeof schema !== 'object' || schema === null) return compile(route)
      return (answer) => {
        let serialize = known.get(schema)
        if (serialize === undefined) known.set(schema, (serialize = compile(route)))
        return serialize(answer)
      }
    }
  }
}
