// The cloud API: registrations, operations and administration, called by the bank's back ends with HTTP Basic credentials.
import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/credential/credential.ts'
import { TICKET_HEADER } from '../../domain/credential/tickets.ts'
import { refuseCrossSiteWrite } from '../../http/cross-site.ts'
import { renderErrorsWith, toPawlError } from '../../http/errors.ts'
import { keepJsonBodies } from '../../http/raw-body.ts'
import { useStrictValidation } from '../../http/validation.ts'
import { mountCloudEndpoint } from './mount.ts'
import { cloudEndpoints } from './endpoints.ts'
import { renderCloudError } from './error-renderer.ts'
import type { CloudParts } from './parts.ts'

export const cloudApi = (parts: CloudParts) => async (app: FastifyInstance) => {
  keepJsonBodies(app)
  useStrictValidation(app)
  renderErrorsWith(app, parts.events, renderCloudError)
  const callers = new WeakMap<FastifyRequest, Caller>()
  await app.register(basicAuth, {
    validate: async (username, password, request, reply) => {
      const onGone = (callback: () => void) => {
        reply.raw.once('close', callback)
        return () => reply.raw.off('close', callback)
      }
      try {
        callers.set(request, await parts.credentials.verify({ username, source: request.ip, onGone }, password))
      } catch (error) {
        // The plugin takes every error that is thrown here for a wrong password, also that of a lost database.
        throw toPawlError(error)
      }
    },
    utf8: true,
  })
  app.addHook('onRequest', (request, reply, done) => {
    const ticket = request.headers[TICKET_HEADER]
    const caller = typeof ticket === 'string' ? parts.tickets.redeem(ticket) : undefined
    if (caller === undefined) return app.basicAuth(request, reply, done)
    callers.set(request, caller)
    done()
  })
  app.addHook('onRequest', async (request) => refuseCrossSiteWrite(request, parts.settings.publicUrl))
  for (const endpoint of cloudEndpoints) mountCloudEndpoint(app, parts, endpoint, (request) => callerOf(callers, request))
}

function callerOf(callers: WeakMap<FastifyRequest, Caller>, request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller === undefined) throw new TypeError('a cloud endpoint was reached without credentials')
  return caller
}
