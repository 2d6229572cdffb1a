// Keeps the request that is being served, and makes spans for the work that it causes. Stages publish on a channel of node:diagnostics_channel:
// without traces a stage costs one comparison. src/tracing has the one implementation (W3C Trace Context, OpenTelemetry), which is loaded when it is
// wanted.
import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { PawlError } from './errors.ts'

/**
 * Attributes of a span. Names follow the semantic conventions of OpenTelemetry where they have one. Values hold no secret, and name no person and no
 * phone.
 */
export type Attributes = Readonly<Record<string, string | number>>

export interface ChildOptions {
  /** `client` for a span that waits for another server. */
  readonly kind?: 'client' | 'internal'
  readonly attributes?: Attributes
  /** How many milliseconds ago the span began, for a span of work that is over. */
  readonly startedMsAgo?: number
}

/** A piece of work, from its start to its end. */
export interface Span {
  /** 32 hexadecimal digits, the same for all work that a request causes, in pawl and in other servers. */
  readonly traceId: string
  /** False for a trace that the sampler leaves out. Nothing of it is kept. */
  readonly isRecorded: boolean
  /** The headers `traceparent`, and `tracestate` if there is one, for a request that this span sends. */
  readonly headers: () => Readonly<Record<string, string>>
  readonly startChild: (name: string, options?: ChildOptions) => Span
  /** `failure`: a code of pawl, a SQLSTATE or the name of an error. Messages of errors may hold private values. */
  readonly end: (result?: { readonly failure?: string | undefined; readonly attributes?: Attributes }) => void
}

export interface Tracer {
  /** Starts the span of a received request. `headers`: those of the caller, whose trace is continued. */
  readonly startRequest: (
    name: string,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    attributes: Attributes,
  ) => Span
  /** Sends the remaining spans, for as long as the exporter tries. */
  readonly close: () => Promise<void>
}

/** The request that is being served. */
export interface RequestScope {
  /** The request id, for each log line that the request causes. */
  readonly id: string
  /** The span of the request, or of its stage that runs; undefined without traces. */
  readonly span: Span | undefined
}

/** Runs `work`, and the work that it starts, as part of the request of `scope`. With undefined it is part of no request. */
export const runInScope = <T>(scope: RequestScope | undefined, work: () => T): T => current.run(scope as RequestScope, work)

/** The request on whose behalf the caller runs; undefined if no request has caused the work. */
export const currentScope = (): RequestScope | undefined => current.getStore()

const current = new AsyncLocalStorage<RequestScope>()

/** Runs a stage of a request. The call chain does not change: `work` is called here, and its promise is returned. */
export const inStage = <T>(name: string, work: () => Promise<T>): Promise<T> => stages.tracePromise(work, { name })

/** From now on, gives a span to each stage of a request that has a span. */
export function traceStages(): void {
  if (stages.hasSubscribers) return
  stages.start.bindStore(current, (stage) => startStage(stage) as RequestScope)
  stages.subscribe({ start: ignore, end: ignore, asyncStart: ignore, asyncEnd: endStage, error: ignore })
}

interface Stage {
  readonly name: string
  /** Undefined if nothing is recorded. */
  span?: Span
  /** The error that the stage threw. */
  readonly error?: unknown
}

const stages = tracingChannel<Stage, RequestScope>('pawl.stage')

function startStage(stage: Stage): RequestScope | undefined {
  const scope = recordedScope()
  if (scope === undefined) return currentScope()
  stage.span = scope.span.startChild(stage.name)
  return { id: scope.id, span: stage.span }
}

const endStage = ({ span, error }: Stage): void => span?.end(error === undefined ? {} : { failure: failureOf(error) })

const ignore = (): void => undefined

/** Starts a span below the current one; undefined if nothing is recorded. */
export const startSpan = (name: string, options: ChildOptions): Span | undefined =>
  recordedScope()?.span.startChild(name, options)

/** Runs work that several requests share, so that it appears in the trace of each. */
export function runForAll<T>(scopes: readonly (RequestScope | undefined)[], work: () => T): T {
  const recorded = scopes.filter(isRecorded)
  const [first] = recorded
  // The scope of the caller is not used: one request began the loop that works for many, and that request may be recorded.
  if (first === undefined) return runInScope(scopes[0], work)
  const spans = recorded.map(({ span }) => span)
  return runInScope({ id: first.id, span: spans.length === 1 ? first.span : shareSpan(first.span, spans) }, work)
}

/** The text by which a span names a failure: a code, because messages may hold values of the request. */
export function failureOf(error: unknown): string {
  if (error instanceof PawlError) return error.code
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

type Recorded = RequestScope & { readonly span: Span }

const isRecorded = (scope: RequestScope | undefined): scope is Recorded => scope?.span?.isRecorded === true

function recordedScope(): Recorded | undefined {
  const scope = currentScope()
  return isRecorded(scope) ? scope : undefined
}

/** Makes one span that appears in the traces of several requests. */
const shareSpan = (first: Span, spans: readonly Span[]): Span => ({
  traceId: first.traceId,
  isRecorded: true,
  headers: first.headers,
  startChild: (name, options = {}) => {
    const attributes = { ...options.attributes, 'pawl.shared_by': spans.length }
    const children = spans.map((span) => span.startChild(name, { ...options, attributes }))
    return shareSpan(children[0] ?? first, children)
  },
  end: (result) => {
    for (const span of spans) span.end(result)
  },
})
