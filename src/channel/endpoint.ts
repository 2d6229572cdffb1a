// What an endpoint of the device API declares: path, order of checks, factors, encryption, schemas. The pipeline does the rest.
import type { Static, TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../lib/errors.ts'
import type { AuthorizationHeader, Factors, Protocol, Scope } from '../protocol/protocol.ts'
import type { ActivationRow } from '../storage/activations.ts'
import type { Dialect } from './headers.ts'
import type { Tx } from '../storage/database.ts'
import type { ChannelParts } from './parts.ts'
import type { Refusal } from './settle-attempt.ts'

/**
 * The checks of a request; an endpoint lists those it needs in its order (column "Order" of v3 §5.4). What may be used once is used
 * up after the last of them, all of it or nothing, so that a refusal never burns the nonce of a genuine request.
 */
export type Step = 'factors' | 'envelope' | 'open' | 'open-nested' | 'validate' | 'authenticate' | 'token'

/** How one endpoint answers each refusal. */
export interface Refusals {
  /** No authorization or token header. */
  readonly headerMissing: ErrorCode
  /** An authorization header that cannot be read, or headers that contradict each other. */
  readonly headerMalformed: ErrorCode
  /** The factor combination is not one of the endpoint's. */
  readonly factors: ErrorCode
  /** No body, or an envelope that is not well-formed. */
  readonly envelope: ErrorCode
  /** The envelope does not open, or was used before. */
  readonly open: ErrorCode
  /** The decrypted bytes are not JSON. */
  readonly plaintext: ErrorCode
  /** JSON that does not match the schema. */
  readonly request: ErrorCode
  /** The nested envelope is not well-formed, or what is in it does not match its schema. */
  readonly nested: ErrorCode
}

/** Who sends a request, beside what it proves. */
export interface Client {
  readonly ip: string
  readonly userAgent: string | undefined
  readonly acceptLanguage: string | undefined
}

/** The activation that a token or code names, with its owner. */
export interface Bearer {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
}

export interface Call<Q, N, P> {
  /** The body, parsed and validated. */
  readonly request: Q
  /** The content of the nested envelope. */
  readonly nested: N
  /** Encrypts a value under the key of the nested envelope. */
  readonly sealNested: (value: unknown) => Record<string, string | number>
  /** The authenticated or, without authentication, the activation of the encryption scope. */
  readonly activation: ActivationRow
  readonly authorization: AuthorizationHeader
  /** The activation of the accepted token or code. */
  readonly bearer: Bearer
  readonly applicationKey: string
  /** Text of the protocol version of the envelope, else of the code. */
  readonly version: string
  readonly client: Client
  /** The generation of the protocol that the headers speak. */
  readonly protocol: Protocol
  readonly dialect: Dialect
  readonly parts: P
}

/** What an endpoint decides in the transaction of the code's check. */
export interface Settlement<Q, P> {
  readonly tx: Tx
  /** Undefined when the code was right. */
  readonly refusal: Refusal | undefined
  /** As the check leaves it; undefined when there is none. */
  readonly activation: ActivationRow | undefined
  readonly factors: Factors
  readonly request: Q
  readonly client: Client
  readonly parts: P
}

export interface DeviceEndpoint<
  P extends ChannelParts,
  Q extends TSchema = TSchema,
  R extends TSchema = TSchema,
  N extends TSchema = TSchema,
> {
  /** Below the prefix of its API. */
  readonly path: string
  /** For the description of the API: one line, and Markdown for what it does not say. */
  readonly summary?: string
  readonly description?: string
  /** For the description of the API: what the handler itself refuses. Without it, anything that may be the caller's fault. */
  readonly errors?: readonly ErrorCode[]
  /** Further paths, below /pa. */
  readonly alsoAt?: readonly string[]
  /** POST when absent. */
  readonly methods?: readonly ('GET' | 'POST' | 'PUT' | 'DELETE')[]
  readonly order: readonly Step[]
  readonly authenticate?: {
    readonly resourceId: string
    /** `request` is the validated one, if `validate` comes before `factors`. */
    readonly factors:
      | readonly Factors[]
      | ((parts: P, header: AuthorizationHeader, request: Static<Q>) => Promise<readonly Factors[]>)
    /** `body`: the bytes as they came; `plaintext`: the decrypted bytes. */
    readonly covers: 'body' | 'plaintext'
    /**
     * What the audit log shows in place of a body that holds a secret or is encrypted; undefined where nothing takes its place. Needs
     * `validate` before `authenticate`.
     */
    readonly auditAs?: (request: Static<Q>) => unknown
    /** An activation that waits for commit and confirmation may do this too (v4 §9.6). */
    readonly isPendingAccepted?: boolean
    /** The code is one of the keys that a pending upgrade brings (v4 §10.3). */
    readonly isUpgradeSeen?: boolean
  }
  /**
   * Runs in the transaction of the code's check, also for a wrong code; what it changes is durable together with the counter. Returns how
   * the request is refused, which is told after the commit, or undefined. Needs `validate` before `authenticate`.
   */
  readonly settle?: (settlement: Settlement<Static<Q>, P>) => Promise<ErrorCode | undefined>
  /** Factor combinations a token must have been made with. `isRepeatable`: the header may come again within its window, nothing is written. */
  readonly token?: { readonly factors: readonly Factors[]; readonly isRepeatable?: boolean }
  readonly encrypt?: {
    readonly scope: Scope
    readonly sharedInfo1: string
    /** What the activation or version may not do is told by the refused code, not by the envelope (v3 §12, step 3). */
    readonly leavesStateToCode?: boolean
    /** The keys that a pending upgrade brings open it too (v4 §10.3). */
    readonly isUpgradeSeen?: boolean
    /**
     * It has a header of its own beside the authorization header: the code is of the first of the generations, the envelope of the second
     * (v4 §10.2).
     */
    readonly hasOwnHeader?: boolean
  }
  readonly nested?: {
    readonly sharedInfo1: string
    readonly request: N
    readonly pick: (request: Static<Q>) => unknown
    /** It may be made for another temporary key than the outer one (v4 §8.4). */
    readonly isAnyKeyAccepted?: boolean
  }
  readonly refusals?: Partial<Refusals>
  /** Schema of the JSON body or plaintext; without it the body is not parsed. */
  readonly request?: Q
  /** The longest body, where it is parsed before the code, token or envelope is checked. 16 KiB when absent. */
  readonly parsedBytesMax?: number
  /** Schema of the answer, before encryption. */
  readonly response: R
  readonly handle: (call: Call<Static<Q>, Static<N>, P>) => Promise<Static<R>>
}

/** An endpoint whose schemas are no longer visible in its type, as the list of an API holds it. */
// biome-ignore lint/suspicious/noExplicitAny: the schemas meet again inside the endpoint, where they were checked
export type AnyEndpoint<P extends ChannelParts> = DeviceEndpoint<P, any, any, any>

/** Keeps the types of schemas and handler together while an endpoint is declared. */
export const declareEndpoint =
  <P extends ChannelParts>() =>
  <Q extends TSchema, R extends TSchema, N extends TSchema>(endpoint: DeviceEndpoint<P, Q, R, N>): AnyEndpoint<P> =>
    endpoint

export const defaultRefusals: Refusals = {
  headerMissing: 'AUTHENTICATION_CODE_INVALID',
  headerMalformed: 'AUTHENTICATION_CODE_INVALID',
  factors: 'AUTHENTICATION_CODE_INVALID',
  envelope: 'ENCRYPTION_FAILED',
  open: 'ENCRYPTION_FAILED',
  plaintext: 'ENCRYPTION_FAILED',
  request: 'REQUEST_INVALID',
  nested: 'REQUEST_INVALID',
}
