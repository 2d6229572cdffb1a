// Spans of what a request causes. Stages publish on a channel of node:diagnostics_channel: without traces a stage costs one comparison.
import { tracingChannel } from 'node:diagnostics_channel'
import { PawlError } from './errors.ts'
import { bindScope, currentScope, type RequestScope, runInScope } from './request-scope.ts'
import type { ChildOptions, Span } from './span.ts'

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
  if (first === undefined) return work()
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
