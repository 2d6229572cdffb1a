// Declares endpoints of the cloud API (cloud §1.2).
import type { Static, TSchema } from '@sinclair/typebox'
import type { Caller } from '../../domain/credential/credential.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import type { Role } from '../../storage/database/schema.ts'
import type { CloudParts } from './parts.ts'

/** A call whose structure was checked. */
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

/** What every endpoint says of itself, whether or not its changes are recorded. */
export interface CloudDeclaration<B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** For the description of the API and the clients that are made from it: a verb and what it is about. */
  readonly operationId: string
  /** For the description of the API: one line, and Markdown for what it does not say. */
  readonly summary: string
  readonly description?: string
  /** What the handler itself refuses. */
  readonly errors: readonly ErrorCode[]
  readonly roles: readonly Role[]
  readonly body?: B
  readonly query?: Q
  readonly params?: U
  /** Request headers beside the credentials, names in lower case. */
  readonly headers?: H
  readonly response: R
  /** The code of a structural error, where it is not ERROR_REQUEST. */
  readonly invalidAs?: ErrorCode
  /** The longest body, where it is not CALLERS_BYTES_MAX. */
  readonly bodyBytesMax?: number
}

/** What an endpoint says of itself, whatever its schemas. */
export type AnyCloudDeclaration = CloudDeclaration<TSchema, TSchema, TSchema, TSchema, TSchema>

/** An endpoint that reads, or whose change the audit log of administrators does not have. */
export interface CloudEndpoint<B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema>
  extends CloudDeclaration<B, Q, U, R, H> {
  readonly handle: (call: CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>) => Promise<Static<R>>
}

/** An endpoint whose schemas are no longer visible in its type. `serve` takes calls that were checked against them. */
export interface AnyCloudEndpoint extends AnyCloudDeclaration {
  /** Its change is recorded in the audit log of administrators. */
  readonly isAudited: boolean
  readonly serve: (call: CloudCall) => Promise<unknown>
}

/** Declares an endpoint; changes below /admin are declared by auditedEndpoint. */
export const cloudEndpoint = <B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema>(
  endpoint: CloudEndpoint<B, Q, U, R, H>,
): AnyCloudEndpoint => ({
  ...endpoint,
  isAudited: false,
  serve: (call) => endpoint.handle(call as CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>),
})
