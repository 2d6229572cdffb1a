// The types by which an endpoint for phones is declared. A flow of channel/flow makes an endpoint of a declaration.
import type { Static, TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../lib/errors.ts'
import type { Factors, Protocol } from '../protocol/protocol.ts'
import type { ActivationRow } from '../storage/activation/find.ts'
import type { DeviceRequest } from './stages/receive.ts'

/** What an endpoint says of itself, beside what its flow needs. */
export interface Declaration<Response extends TSchema = TSchema> {
  /** Below the prefix of its API. */
  readonly path: string
  /** For the description of the API: one line, and Markdown for what it does not say. */
  readonly summary: string
  readonly description?: string
  /** What the handler itself refuses; the flow adds its own refusals. */
  readonly errors: readonly ErrorCode[]
  /** Further paths, below /pa. */
  readonly alsoAt?: readonly string[]
  /** POST when absent. */
  readonly methods?: readonly ('GET' | 'POST' | 'PUT' | 'DELETE')[]
  /** Schema of the answer, before encryption. */
  readonly response: Response
}

/** An endpoint that is answered what its handler returns; `Call`: what its flow found right. */
export interface Answered<R extends TSchema, Call, Parts> extends Declaration<R> {
  readonly handle: (call: Call, parts: Parts) => Promise<Static<R>>
}

/** An endpoint whose handler is given the JSON of the body or of the plaintext. */
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
  /** As the code left it. */
  readonly activation: ActivationRow
}

/** An endpoint whose requests and answers are envelopes. */
export interface Encrypted {
  readonly encrypt: { readonly sharedInfo1: string }
}

/** Serves one request; the JSON text of the answer. `serialize` makes JSON of what the handler returns, by the schema of the answer. */
type Serve = (request: DeviceRequest, serialize: (value: unknown) => string) => Promise<string>

/** What a flow tells the description of the APIs. */
export interface FlowFacts {
  /** Every code that a stage of the flow throws. */
  readonly refuses: readonly ErrorCode[]
  /** The protocol headers that it demands, together. */
  readonly headers: readonly ('Authorization' | 'Token' | 'Encryption')[]
  /** Sentences of Markdown: what is checked. */
  readonly checks: readonly string[]
  readonly body: BodyFacts
  /** What covers a body that may be longer than 16 KiB. PAWL_SIGNED_BODY_BYTES_MAX is the longest that a code may cover. */
  readonly covered?: { readonly by: 'code'; readonly bytesMax?: number } | { readonly by: 'envelope'; readonly bytesMax: number }
}

/** What the body of a request holds. `envelope`: of the last of the generations of the endpoint alone, if `isOfLast`. */
export type BodyFacts =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'json'; readonly schema: TSchema }
  | { readonly kind: 'envelope'; readonly plaintext: TSchema; readonly isOfLast?: true }
  | { readonly kind: 'nested'; readonly outer: TSchema; readonly inner: TSchema }

/** An endpoint that needs `Parts` of the process. */
export interface Endpoint<Parts> extends Declaration {
  readonly flow: FlowFacts
  /** Called once at start. The first of the generations that reads the headers of a request serves it. */
  readonly prepare: (parts: Parts, protocols: readonly Protocol[]) => Serve
}
