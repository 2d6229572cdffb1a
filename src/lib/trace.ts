// Spans of what a request causes. Without traces each of these costs one look at the scope of the request.
import { PawlError } from './errors.ts'
import { currentScope, type RequestScope, runInScope } from './request-scope.ts'
import type { ChildOptions, Span } from './span.ts'

/** The same function, as a stage of the request that calls it. */
export const staged =
  <A extends unknown[], R>(name: string, stage: (...given: A) => R): ((...given: A) => R) =>
  (...given) => {
    const scope = recordedScope()
    if (scope === undefined) return stage(...given)
    const span = scope.span.startChild(name)
    return runInScope({ id: scope.id, span }, () => endAfter(span, () => stage(...given)))
  }

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

function endAfter<R>(span: Span, work: () => R): R {
  const fail = (error: unknown): never => {
    span.end({ failure: failureOf(error) })
    throw error
  }
  try {
    const result = work()
    if (!(result instanceof Promise)) {
      span.end()
      return result
    }
    return result.then((value: unknown) => {
      span.end()
      return value
    }, fail) as R
  } catch (error) {
    return fail(error)
  }
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
