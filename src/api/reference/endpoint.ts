// Declares endpoints of the reference's back-end API (cloud §15), for callers of the cloud API. Each is declared in one of two dialects: that of the
// reference's versions 1.x, or that of 2.x, in which some members have other names.
import type { Static, TSchema } from '@sinclair/typebox'
import type { Caller } from '../../domain/credential/credential.ts'
import { ObjectRequest, ObjectResponse, ok, OptionalOrNull } from '../../http/types.ts'
import { PawlError } from '../../lib/errors.ts'
import type { Role } from '../../storage/database/schema.ts'
import { findApplicationOf } from '../cloud/application-of.ts'
import { type AnyCloudEndpoint, cloudEndpoint } from '../cloud/endpoint.ts'
import type { CloudParts } from '../cloud/parts.ts'

export interface Dialect {
  /** The path element of the dialect: /rest/v3, /rest/v4. */
  readonly name: 'v3' | 'v4'
  /** The first element of the paths that verify codes. */
  readonly place: 'signature' | 'auth'
  /** Names of the members of a code, and of the answer about it. */
  readonly code: 'signature' | 'authenticationCode'
  readonly factors: 'signatureType' | 'authenticationCodeType'
  readonly version: 'signatureVersion' | 'authenticationVersion'
  readonly isValid: 'signatureValid' | 'authenticationValid'
  /** Name of the member of an operation with the factors that may approve it. */
  readonly operationFactors: 'signatureType' | 'authenticationCodeTypes'
}

export const V3: Dialect = {
  name: 'v3',
  place: 'signature',
  code: 'signature',
  factors: 'signatureType',
  version: 'signatureVersion',
  isValid: 'signatureValid',
  operationFactors: 'signatureType',
}

export const V4: Dialect = {
  name: 'v4',
  place: 'auth',
  code: 'authenticationCode',
  factors: 'authenticationCodeType',
  version: 'authenticationVersion',
  isValid: 'authenticationValid',
  operationFactors: 'authenticationCodeTypes',
}

/** A request whose structure was checked. */
export interface ReferenceCall<Request = unknown> {
  readonly request: Request
  readonly caller: Caller
  /** The application of the credential. Answers reveal nothing about other applications. */
  readonly applicationId: string
  /** The address of the back end. The clients do not send the address of the phone. */
  readonly source: string
  readonly parts: CloudParts
}

/** `path` is the path below /rest/v3/ or /rest/v4/. `errors` lists the errors other than ADMINISTRATION_REFUSED. `roles` are BANK_ROLES if absent. */
interface ReferenceDeclaration<B extends TSchema, R extends TSchema>
  extends Pick<AnyCloudEndpoint, 'path' | 'operationId' | 'summary' | 'description' | 'errors'>,
    Partial<Pick<AnyCloudEndpoint, 'roles'>> {
  readonly request: B
  readonly response: R
  readonly handle: (call: ReferenceCall<Static<B>>) => Promise<Static<R>>
}

export function referenceEndpoint<B extends TSchema, R extends TSchema>(
  dialect: Dialect,
  { path, operationId, errors = [], request, response, handle, ...declared }: ReferenceDeclaration<B, R>,
): AnyCloudEndpoint {
  const isEmpty = Object.keys((request['properties'] as object | undefined) ?? {}).length === 0
  const envelope: TSchema = ObjectRequest(isEmpty ? OptionalOrNull(request) : request)
  const answer: TSchema = ObjectResponse(response)
  return cloudEndpoint({
    roles: BANK_ROLES,
    ...declared,
    route: `POST /rest/${dialect.name}/${path}`,
    operationId: `${operationId}${dialect.name.toUpperCase()}`,
    errors: ['ADMINISTRATION_REFUSED', ...errors],
    bodyBytesMax: BYTES_MAX,
    body: envelope,
    response: answer,
    async handle(call) {
      const { caller, source, body, parts } = call
      const applicationId = await findApplicationOf({ parts, caller })
      if (typeof applicationId !== 'string') throw foreignApplication()
      const given = (body as { readonly requestObject?: Static<B> }).requestObject as Static<B>
      return ok(await handle({ request: given, caller, applicationId, source, parts }))
    },
  })
}

/** The refusal of an application that is not the one of the credential. */
export const foreignApplication = (): PawlError =>
  new PawlError('ADMINISTRATION_REFUSED', { detail: 'not the application of the credential' })

/** Throws ADMINISTRATION_REFUSED when a request names another application than that of the credential. */
export function requireOwn({ applicationId }: ReferenceCall, named: string | null | undefined): void {
  if (named !== null && named !== undefined && named !== applicationId) throw foreignApplication()
}

/** The roles of a bank's back ends. */
const BANK_ROLES: readonly Role[] = ['admin', 'integration']

/** Room for a body of 128 KiB in Base64 in a base string, and all other members. */
const BYTES_MAX = 384 * 1024
