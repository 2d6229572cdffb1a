// What an endpoint of the cloud API declares, and its route: credentials, role, structure, then the handler (cloud §1.2).
import type { Static, TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/credential/credential.ts'
import type { Owner } from '../../domain/activation/registration.ts'
import { refuseMalformedQuery } from '../../http/validation.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { insertAdminEvent, lockAdministration } from '../../storage/admin-events.ts'
import { findDefaultApplicationId, listApplications } from '../../storage/applications.ts'
import { type Db, inTransaction } from '../../storage/database.ts'
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
  /** Of an audited endpoint `db` is the transaction of the change: whatever it calls must use this `db` and no other. */
  readonly parts: CloudParts
  /** Work for after the change is committed, on the database itself; not done when it is not. The answer waits for it. */
  readonly afterCommit: (work: (db: Db) => unknown) => void
}

/** How a change is recorded in the audit log of administrators. Nothing of it may be secret. */
export interface Audited<B, Q, U, R> {
  /** What was changed, for people: `user alice`. `answer` is the handler's; it may hold a password. */
  readonly target: (call: CloudCall<B, Q, U>, answer: R) => string
  /** The thing as it is, as JSON; undefined when there is none. Asked before the change, without `answer`, and after it. */
  readonly view: (call: CloudCall<B, Q, U>, answer: R | undefined) => Promise<unknown>
  /** A refusal with this code has counted something, which must stay: it is committed, and nothing is recorded. */
  readonly committedRefusal?: ErrorCode
}

export interface CloudEndpoint<
  B extends TSchema,
  Q extends TSchema,
  U extends TSchema,
  R extends TSchema,
  H extends TSchema = TSchema,
  P = undefined,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** For the description of the API: one line, and Markdown for what it does not say. */
  readonly summary: string
  readonly description?: string
  /** For the description of the API: what the handler itself refuses. Without it, anything that may be the caller's fault. */
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
  /** Slow work whose result the handler needs, done before the transaction. */
  readonly prepare?: (call: CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>) => Promise<P>
  readonly handle: (call: CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>, prepared: P) => Promise<Static<R>>
  /** Declared by every endpoint below /admin that changes something: views, change and record are then one transaction. */
  readonly audited?: Audited<Static<B>, Static<Q>, Static<U>, Static<R>>
}

/** An endpoint whose schemas are no longer visible in its type. */
// biome-ignore lint/suspicious/noExplicitAny: the schemas meet again inside the endpoint, where they were checked
export type AnyCloudEndpoint = CloudEndpoint<any, any, any, any, any, any>

/** Keeps the types of schemas and handler together while an endpoint is declared. */
export const cloudEndpoint = <
  B extends TSchema,
  Q extends TSchema,
  U extends TSchema,
  R extends TSchema,
  H extends TSchema,
  P = undefined,
>(
  endpoint: CloudEndpoint<B, Q, U, R, H, P>,
): AnyCloudEndpoint => endpoint

/** Mounts one endpoint; `callerOf` gives the caller whose credentials were found right. */
export function mountCloudEndpoint(
  app: FastifyInstance,
  parts: CloudParts,
  endpoint: AnyCloudEndpoint,
  callerOf: (request: FastifyRequest) => Caller,
): void {
  const { body, query: querystring, params, headers, response, invalidAs } = endpoint
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
      const caller = callerOf(request)
      if (!mayCall(endpoint, caller)) throw refuseRole(endpoint, caller)
    },
    handler: async (request) => {
      refuseMalformedQuery(request.raw.url ?? '')
      if (request.validationError) throw refuseStructure(request.validationError, invalidAs)
      const origin = `${request.protocol}://${request.host}`
      const followUps: ((db: Db) => unknown)[] = []
      const answer = await serve(endpoint, {
        body: request.body ?? {},
        query: request.query,
        params: request.params,
        headers: request.headers,
        caller: callerOf(request),
        origin,
        parts,
        afterCommit: (work) => followUps.push(work),
      })
      for (const followUp of followUps) await followUp(parts.db)
      return answer
    },
  })
}

/** A caller who reads for one application may not read the administration, which is about all applications. */
const mayCall = ({ roles, path }: AnyCloudEndpoint, { role, applicationId }: Caller): boolean =>
  roles.includes(role) && !(role === 'read-only' && applicationId !== null && path.startsWith('/admin/'))

/** Says which roles may call. */
function refuseRole({ roles }: AnyCloudEndpoint, { role }: Caller): PawlError {
  const isBound = roles.includes(role)
  const hint = isBound ? 'must belong to no application' : `must be ${roles.join(' or ')}, this is ${role}`
  const violations = [{ fieldName: isBound ? 'credential' : 'role', hint }]
  return new PawlError('ROLE_FORBIDDEN', { detail: hint, violations })
}

async function serve(endpoint: AnyCloudEndpoint, call: CloudCall<unknown, unknown, unknown>): Promise<unknown> {
  const { handle, audited } = endpoint
  const prepared: unknown = await endpoint.prepare?.(call)
  if (audited === undefined) return handle(call, prepared)
  const { parts, caller } = call
  let refusal: unknown
  const answer = await inTransaction(parts.db, async (tx) => {
    const within = { ...call, parts: { ...parts, db: tx } }
    await lockAdministration(tx)
    const before: unknown = await audited.view(within, undefined)
    const given: unknown = await handle(within, prepared).catch((error: unknown) => {
      if (!(error instanceof PawlError) || error.code !== audited.committedRefusal) throw error
      refusal = error
    })
    if (refusal !== undefined) return undefined
    const after: unknown = await audited.view(within, given)
    await insertAdminEvent(tx, {
      username: caller.username,
      action: `${endpoint.method} ${endpoint.path.replaceAll(/:(\w+)/g, '{$1}')}`,
      target: audited.target(within, given),
      before: JSON.stringify(before) ?? null,
      after: JSON.stringify(after) ?? null,
      occurredAt: new Date(parts.platform.now()),
    })
    return given
  })
  if (refusal !== undefined) throw refusal
  return answer
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
export async function applicationOf(call: { parts: CloudParts; caller: Caller }): Promise<string> {
  const applicationId = await findApplicationOf(call)
  if (!applicationId) throw await refuseWithoutApplication(call, 'REGISTRATION_NOT_FOUND')
  return applicationId
}

/** A refusal that says what is missing, in the answer and in the log: any application at all, or one for this credential. */
export async function refuseWithoutApplication(
  { parts, caller }: { parts: CloudParts; caller: Caller },
  code: ErrorCode,
): Promise<PawlError> {
  const [any] = await listApplications(parts.db)
  const hint = any === undefined ? NO_APPLICATION_YET : caller.role === 'admin' ? ADMIN_OUTSIDE : CREDENTIAL_OUTSIDE
  parts.events.applicationMissing({ username: caller.username, reason: hint })
  return new PawlError(code, { detail: hint, violations: [{ fieldName: 'application', hint }] })
}

const NO_APPLICATION_YET = 'there is no application yet: POST /admin/application {"id":"my-app"} creates one'
const ADMIN_OUTSIDE =
  'administrators act on no application (PAWL_ADMIN_ACTS_ON_DEFAULT_APPLICATION): POST /admin/users {"username":"bank",' +
  '"role":"integration","application":"my-app"} creates a credential that does'
const CREDENTIAL_OUTSIDE = 'this credential belongs to no application: POST /admin/users with "application" creates one that does'

/** The application of the credential, if it has one. */
export const findApplicationOf = async ({ parts, caller }: { parts: CloudParts; caller: Caller }) =>
  caller.role === 'admin' ? applicationOfAdmin(parts, caller) : caller.applicationId

async function applicationOfAdmin(parts: CloudParts, { applicationId }: Caller): Promise<string | null | undefined> {
  if (!parts.settings.adminActsOnDefaultApplication) return undefined
  return applicationId ?? findDefaultApplicationId(parts.db)
}

function refuseStructure(error: Error, invalidAs: ErrorCode | undefined): Error {
  if (!(error instanceof PawlError) || invalidAs === undefined) return error
  return new PawlError(invalidAs, { detail: error.message, violations: error.violations, cause: error })
}
