// What pawl asks of traces (W3C Trace Context, OpenTelemetry). src/tracing has the one implementation, which is loaded only when it is wanted.

/** Names by the semantic conventions of OpenTelemetry where they have one. Never a secret, never what names a person or a phone. */
export type Attributes = Readonly<Record<string, string | number>>

export interface ChildOptions {
  /** `client`: what waits for another server. */
  readonly kind?: 'client' | 'internal'
  readonly attributes?: Attributes
  /** How long ago it began, for what is told of when it is over. Milliseconds. */
  readonly startedMsAgo?: number
}

/** A piece of work, from its start to its end. */
export interface Span {
  /** 32 hexadecimal digits; the same for all that a request causes, here and elsewhere. */
  readonly traceId: string
  /** False for a trace that the sampler leaves out: nothing of it is kept. */
  readonly isRecorded: boolean
  /** `traceparent`, and `tracestate` where there is one, for a request that is sent on behalf of this one. */
  readonly headers: () => Readonly<Record<string, string>>
  readonly startChild: (name: string, options?: ChildOptions) => Span
  /** `failure`: a code of pawl's, a SQLSTATE or the name of an error; its message may hold what must not leave. */
  readonly end: (result?: { readonly failure?: string | undefined; readonly attributes?: Attributes }) => void
}

export interface Tracer {
  /** The span of a request that was received; `headers`: those of the caller, whose trace is continued. */
  readonly startRequest: (
    name: string,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    attributes: Attributes,
  ) => Span
  /** Sends what is left, for as long as the exporter tries. */
  readonly close: () => Promise<void>
}
