// Keeps what request is being served, and makes the spans of what it causes. Stages publish on a channel of node:diagnostics_channel: without
// traces a stage costs one comparison. src/tracing has the one implementation (W3C Trace Context, OpenTelemetry), loaded when it is wanted.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Channel, tracingChannel } from 'node:diagnostics_channel'
import { PawlError } from './errors.ts'

/** Names by the semantic conventions of OpenTelemetry where they have one. Never a secret, never what names a person or a phone. */
export type Attributes = Readonly<Record<string, string | number>>

export interface ChildOptions {
  /** `client`: what waits for another server. */
  readonly kind?: 'client' | 'internal'
  readonly attributes?: Attributes
  /** How many milliseconds ago it began, where a span is made of work that is over. */
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

/** The request that is being served. */
export interface RequestScope {
  /** For every log line that is written on its behalf. */
  readonly id: string
  /** Of the request, or of the stage of it that runs; undefined without traces. */
  readonly span: Span | undefined
}

/** Runs `work`, and what follows from it, as part of the request; undefined: as part of none. */
export const runInScope = <T>(scope: RequestScope | undefined, work: () => T): T => current.run(scope as RequestScope, work)

/** What runs within an event of the channel is part of the request that `toScope` returns; undefined: of no request. */
const bindScope = <Event>(channel: Channel<Event, RequestScope>, toScope: (event: Event) => RequestScope | undefined): void =>
  channel.bindStore(current, (event) => toScope(event) as RequestScope)

/** The request on whose behalf the caller runs; undefined where no request has caused it. */
export const currentScope = (): RequestScope | undefined => current.getStore()

const current = new AsyncLocalStorage<RequestScope>()

/** Runs a stage of a request. The call chain stays as it is: `work` is called here, and its promise is returned. */
export const inStage = <T>(name: string, work: () => Promise<T>): Promise<T> => stages.tracePromise(work, { name })

/** Gives each stage of a request with a span a span of its own, from now on. */
export function traceStages(): void {
  if (stages.hasSubscribers) return
  bindScope(stages.start, startStage)
  stages.subscribe({ start: ignore, end: ignore, asyncStart: ignore, asyncEnd: endStage, error: ignore })
}

interface Stage {
  readonly name: string
  /** Undefined where nothing is recorded. */
  span?: Span
  /** What the stage threw. */
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

/** Starts a span below what runs; undefined where nothing is recorded. */
export const startSpan = (name: string, options: ChildOptions): Span | undefined =>
  recordedScope()?.span.startChild(name, options)

/** Runs on behalf of all these requests what they share, so that the trace of each has it. */
export function runForAll<T>(scopes: readonly (RequestScope | undefined)[], work: () => T): T {
  const recorded = scopes.filter(isRecorded)
  const [first] = recorded
  // Not as part of what the caller runs for: a loop that works for many was begun by one, which may be recorded.
  if (first === undefined) return runInScope(scopes[0], work)
  const spans = recorded.map(({ span }) => span)
  return runInScope({ id: first.id, span: spans.length === 1 ? first.span : shareSpan(first.span, spans) }, work)
}

/** What a span says of a failure: a code, because messages may hold what was sent. */
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

/** One span in the traces of several requests. */
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
