// GET /app/init/public-key: the key that verifies /app/init, for people who build the app. An app that downloads its key gains nothing.
// Spec: utility §2.
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { compileParser, refuseMalformedQuery } from '../../http/validation.ts'
import { toBase64 } from '../../lib/base64.ts'
import { PawlError } from '../../lib/errors.ts'
import { IDENTIFIER } from '../../lib/identifier.ts'
import type { UtilityParts } from './parts.ts'

export const PublicKey = Type.Object({ publicKey: Type.String({ description: 'Base64 of a point of P-256, 65 bytes' }) })

export const OfApplication = Type.Object({
  appName: Type.String({ minLength: 1, ...IDENTIFIER, examples: ['my-app'] }),
})
const parseQuery = compileParser(OfApplication)

/** Mounts the endpoint. */
export function mountInitPublicKey(app: FastifyInstance, { pinning }: UtilityParts): void {
  app.get('/init/public-key', { schema: { response: { 200: PublicKey } } }, async (request, reply) => {
    const application = await pinning.find(parseAppName(request))
    if (application === undefined) throw new PawlError('PINNING_APPLICATION_UNKNOWN')
    void reply.header('cache-control', 'public, max-age=300')
    return { publicKey: toBase64(application.publicKey) }
  })
}

/** The name of the application in the query. Throws REQUEST_INVALID when it is missing, repeated, or not a name. */
export function parseAppName(request: FastifyRequest): string {
  refuseMalformedQuery(request.raw.url ?? '')
  return parseQuery(request.query).appName
}
