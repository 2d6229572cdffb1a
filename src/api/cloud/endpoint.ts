// What an endpoint of the cloud API declares, and its route: credentials, role, structure, then the handler (cloud §1.2).
import type { Static, TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/credential.ts'
import type { Owner } from '../../domain/registration.ts'
import { refuseMalformedQuery } from '../../http/validation.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { findDefaultApplicationId } from '../../storage/applications.ts'
import type { Role } from '../../storage/schema.ts'
import type { CloudParts } from './parts.ts'

export interface CloudCall<B, Q, U, H = unknown> {
  readonly body: B
  readonly query: Q
  readonly headers: H
  /** Parameters of the path. */
  readonly params: U
  readonly caller: Caller
  /** `scheme://host` as the caller used it. */
  readonly origin: string
  readonly parts: CloudParts
}

export interface CloudEndpoint<
  B extends TSchema,
  Q extends TSchema,
  U extends TSchema,
  R extends TSchema,
  H extends TSchema = TSchema,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly roles: readonly Role[]
  readonly body?: B
  readonly query?: Q
  readonly params?: U
  /** Request headers beside the credentials, names in lower case. */
  readonly headers?: H
  readonly response: R
  /** The code of a structural error, where it is not ERROR_REQUEST. */
  readonly invalidAs?: ErrorCode
  readonly handle: (call: CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>) => Promise<Static<R>>
}

/** An endpoint whose schemas are no longer visible in its type. */
// biome-ignore lint/suspicious/noExplicitAny: the schemas meet again inside the endpoint, where they were checked
export type AnyCloudEndpoint = CloudEndpoint<any, any, any, any, any>

/** Keeps the types of schemas and handler together while an endpoint is declared. */
export const cloudEndpoint = <B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema>(
  endpoint: CloudEndpoint<B, Q, U, R, H>,
): AnyCloudEndpoint => endpoint

/** Mounts one endpoint; `callerOf` gives the caller whose credentials were found right. */
export function mountCloudEndpoint(
  app: FastifyInstance,
  parts: CloudParts,
  endpoint: AnyCloudEndpoint,
  callerOf: (request: FastifyRequest) => Caller,
): void {
  const { body, query: querystring, params, headers, response, roles, invalidAs } = endpoint
  app.route({
    method: endpoint.method,
    url: endpoint.path,
    schema: {
      ...(body && { body }),
      ...(querystring && { querystring }),
      ...(params && { params }),
      ...(headers && { headers }),
      response: { 200: response },
    },
    attachValidation: true,
    // Runs after the credentials were checked and before the body is read.
    onRequest: async (request) => {
      if (!roles.includes(callerOf(request).role)) throw new PawlError('ROLE_FORBIDDEN')
    },
    handler: async (request) => {
      refuseMalformedQuery(request.raw.url ?? '')
      if (request.validationError) throw refuseStructure(request.validationError, invalidAs)
      const origin = `${request.protocol}://${request.host}`
      const call = {
        body: request.body ?? {},
        query: request.query,
        params: request.params,
        headers: request.headers,
        caller: callerOf(request),
        origin,
        parts,
      }
      return endpoint.handle(call)
    },
  })
}

/** The registration owner in the application of the credential. Throws as applicationOf. */
export const ownerOf = async (call: { parts: CloudParts; caller: Caller }, userId: string): Promise<Owner> => ({
  applicationId: await applicationOf(call),
  userId,
})

/**
 * The application of the credential. A credential without one has no access, which the contract spells REGISTRATION_NOT_FOUND
 * (cloud §2).
 */
export async function applicationOf({ parts, caller }: { parts: CloudParts; caller: Caller }): Promise<string> {
  const applicationId = caller.role === 'admin' ? await applicationOfAdmin(parts, caller) : caller.applicationId
  if (!applicationId) throw new PawlError('REGISTRATION_NOT_FOUND', { detail: 'the credential has no application' })
  return applicationId
}

async function applicationOfAdmin(parts: CloudParts, { applicationId }: Caller): Promise<string | null | undefined> {
  if (!parts.settings.adminActsOnDefaultApplication) return undefined
  return applicationId ?? findDefaultApplicationId(parts.db)
}

function refuseStructure(error: Error, invalidAs: ErrorCode | undefined): Error {
  if (!(error instanceof PawlError) || invalidAs === undefined) return error
  return new PawlError(invalidAs, { detail: error.message, violations: error.violations, cause: error })
}
