// Declares endpoints of the cloud API (cloud §1.2).
import type { Static, TSchema } from '@sinclair/typebox'
import type { Caller } from '../../domain/credential/credential.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import type { Role } from '../../storage/database/schema.ts'
import type { CloudParts } from './parts.ts'

/** A call whose structure was checked. The types are those of body, query, path parameters and headers. */
export interface CloudCall<B = unknown, Q = unknown, U = unknown, H = unknown> {
  readonly body: B
  readonly query: Q
  readonly headers: H
  /** Parameters of the path. */
  readonly params: U
  readonly caller: Caller
  /** `scheme://host` as the caller used it. */
  readonly origin: string
  /** Address of the caller. */
  readonly source: string
  readonly parts: CloudParts
}

/** The declaration of an endpoint, without its handler. */
export interface CloudDeclaration<B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** For the OpenAPI document, and clients that are made from it: a verb and its object. */
  readonly operationId: string
  /** For the OpenAPI document: one line, and more text as Markdown. */
  readonly summary: string
  readonly description?: string
  /** The error codes of the handler. */
  readonly errors: readonly ErrorCode[]
  readonly roles: readonly Role[]
  readonly body?: B
  readonly query?: Q
  readonly params?: U
  /** Request headers beside the credentials, names in lower case. */
  readonly headers?: H
  readonly response: R
  /** The error code of a structural error; REQUEST_INVALID when absent. */
  readonly invalidAs?: ErrorCode
  /** The longest body, in bytes; CALLERS_BYTES_MAX when absent. */
  readonly bodyBytesMax?: number
}

/** The declaration of an endpoint with any schemas. */
export type AnyCloudDeclaration = CloudDeclaration<TSchema, TSchema, TSchema, TSchema, TSchema>

/** An endpoint that reads, or makes a change that the audit log of administrators does not record. */
export interface CloudEndpoint<B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema>
  extends CloudDeclaration<B, Q, U, R, H> {
  readonly handle: (call: CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>) => Promise<Static<R>>
}

/** An endpoint of any schemas. `serve` takes calls that were checked against them. */
export interface AnyCloudEndpoint extends AnyCloudDeclaration {
  /** Whether the audit log of administrators records its change. */
  readonly isAudited: boolean
  readonly serve: (call: CloudCall) => Promise<unknown>
}

/** Declares an endpoint. Changes below /admin are declared by auditedEndpoint. */
export const cloudEndpoint = <B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema>(
  endpoint: CloudEndpoint<B, Q, U, R, H>,
): AnyCloudEndpoint => ({
  ...endpoint,
  isAudited: false,
  serve: (call) => endpoint.handle(call as CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>),
})
