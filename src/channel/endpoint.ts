// Declares the types of endpoints for phones. A flow of channel/flow makes an endpoint of a declaration.
import type { Static, TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../lib/errors.ts'
import type { Factors, Protocol } from '../protocol/protocol.ts'
import type { ActivationRow } from '../storage/activation/find.ts'
import type { DeviceRequest } from './stages/receive.ts'

/** The members of every declaration; a flow adds its own. */
export interface Declaration<Response extends TSchema = TSchema> {
  /** The path below the prefix of its API. */
  readonly path: string
  /** For the OpenAPI document: one line, and more text as Markdown. */
  readonly summary: string
  readonly description?: string
  /** The refusals of the handler; the flow adds its own. */
  readonly errors: readonly ErrorCode[]
  /** POST if absent. */
  readonly methods?: readonly ('GET' | 'POST' | 'PUT' | 'DELETE')[]
  /** Schema of the answer, before encryption. */
  readonly response: Response
}

/** An endpoint whose answer is the result of its handler. `Call` has the values that the flow has verified. */
export interface Answered<R extends TSchema, Call, Parts> extends Declaration<R> {
  readonly handle: (call: Call, parts: Parts) => Promise<Static<R>>
}

/** An endpoint whose handler gets the JSON of the body or of the plaintext. */
export interface Parsed<Q extends TSchema> {
  readonly request: Q
}

/** An endpoint whose requests have a code. */
export interface Authenticated {
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[] }
}

/** A request with a right code. */
export interface SignedCall<Request> {
  readonly request: Request
  /** The activation after the code was stored. */
  readonly activation: ActivationRow
}

/** An endpoint whose requests and answers are envelopes. */
export interface Encrypted {
  readonly encrypt: { readonly sharedInfo1: string }
}

/** Serves one request and returns the JSON text of the answer. `serialize` writes the handler's result as JSON by the schema of the answer. */
type Serve = (request: DeviceRequest, serialize: (value: unknown) => string) => Promise<string>

/** The facts about a flow for the OpenAPI document. */
export interface FlowFacts {
  /** The error codes that stages of the flow throw. */
  readonly refuses: readonly ErrorCode[]
  /** The protocol headers that the flow demands; a request must have all of them. */
  readonly headers: readonly ('Authorization' | 'Token' | 'Encryption')[]
  /** The checks of the flow, as sentences in Markdown. */
  readonly checks: readonly string[]
  readonly body: BodyFacts
  /** The protection of a body that may be longer than 16 KiB. A code covers at most PAWL_SIGNED_BODY_BYTES_MAX bytes. */
  readonly covered?: { readonly by: 'code'; readonly bytesMax?: number } | { readonly by: 'envelope'; readonly bytesMax: number }
}

/** The kind of a request's body. With `isOfLast`, only the last generation of the endpoint has the envelope. */
export type BodyFacts =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'json'; readonly schema: TSchema }
  | { readonly kind: 'envelope'; readonly plaintext: TSchema; readonly isOfLast?: true }
  | { readonly kind: 'nested'; readonly outer: TSchema; readonly inner: TSchema }

/** An endpoint that uses `Parts` of the process. */
export interface Endpoint<Parts> extends Declaration {
  readonly flow: FlowFacts
  /** Called once at the start. The first of the generations that can read the headers of a request serves it. */
  readonly prepare: (parts: Parts, protocols: readonly Protocol[]) => Serve
}
