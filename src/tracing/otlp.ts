// Sends traces to a collector through the SDK of OpenTelemetry: OTLP over HTTP, in protobuf. main.ts loads it when the environment asks for traces.
//
// No request waits for the collector. Spans wait in a queue of fixed length, and spans that do not fit are dropped.
import * as api from '@opentelemetry/api'
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import * as sdk from '@opentelemetry/sdk-trace'
import packageJson from '../../package.json' with { type: 'json' }
import { createFailures, type Failures } from '../log/failures.ts'
import type { Log } from '../log/log.ts'
import type { Platform } from '../lib/platform.ts'
import { type Attributes, runInScope, type Span, type Tracer, traceStages } from '../lib/trace.ts'
import { type Environment, readTracingSettings, type TracingSettings } from './settings.ts'

/** Starts to send traces. The SDK itself reads endpoint, headers, certificates, timeout, compression and resource from the environment. */
export function startTracing(env: Environment, platform: Pick<Platform, 'now'>, log: Log): Tracer {
  const tell = tellOfFailures(createFailures(log))
  const settings = readTracingSettings(env, (setting, problem) => log.warn({ setting, problem }, 'a setting of traces is wrong'))
  const exporter = new OTLPTraceExporter()
  const { attributeCharactersMax: attributeValueLengthLimit } = settings
  const provider = new sdk.TracerProvider({
    resource: describeProcess(),
    sampler: createSampler(settings),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, ...settings.batch })],
    ...(attributeValueLengthLimit !== undefined && { spanLimits: { attributeValueLengthLimit } }),
  })
  const tracer = provider.getTracer('pawl', packageJson.version)
  const propagator = new W3CTraceContextPropagator()
  traceStages()
  return {
    startRequest(name, headers, attributes) {
      // All spans of a request share one clock. It adds monotonic time to the wall-clock time of the start of the request.
      const clock = startClock(platform.now())
      const parent = propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter)
      const options = { kind: api.SpanKind.SERVER, attributes, startTime: clock() }
      return wrapSpan({ tracer, propagator, clock }, tracer.startSpan(name, options, parent), parent)
    },
    close: () => provider.shutdown().catch(tell),
  }
}

interface Tracing {
  readonly tracer: api.Tracer
  readonly propagator: W3CTraceContextPropagator
  /** Milliseconds since 1970, with fractions. */
  readonly clock: () => number
}

function wrapSpan(parts: Tracing, span: api.Span, parent: api.Context): Span {
  const { tracer, propagator, clock } = parts
  const context = api.trace.setSpan(parent, span)
  return {
    traceId: span.spanContext().traceId,
    isRecorded: span.isRecording(),
    headers: () => {
      const headers: Record<string, string> = {}
      propagator.inject(context, headers, api.defaultTextMapSetter)
      return headers
    },
    startChild(name, { kind = 'internal', attributes = {}, startedMsAgo = 0 } = {}) {
      const spanKind = kind === 'client' ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL
      const options = { kind: spanKind, attributes, startTime: clock() - startedMsAgo }
      return wrapSpan(parts, tracer.startSpan(name, options, context), context)
    },
    end({ failure, attributes = {} } = {}) {
      span.setAttributes(attributes)
      if (failure !== undefined) span.setAttribute('error.type', failure).setStatus({ code: api.SpanStatusCode.ERROR })
      span.end(clock())
    },
  }
}

function startClock(now: number): () => number {
  const offset = now - performance.now()
  return () => offset + performance.now()
}

/** Describes this process by its name and version. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME replace them. */
function describeProcess() {
  const own: Attributes = { 'service.name': packageJson.name, 'service.version': packageJson.version }
  return defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }))
}

function createSampler({ sampler, ratio }: TracingSettings): sdk.Sampler {
  const [, isParentBased, name] = /^(parentbased_)?(.+)$/.exec(sampler) ?? []
  const root =
    name === 'traceidratio'
      ? new sdk.TraceIdRatioBasedSampler(ratio)
      : name === 'always_off'
        ? new sdk.AlwaysOffSampler()
        : new sdk.AlwaysOnSampler()
  return isParentBased ? new sdk.ParentBasedSampler({ root }) : root
}

/**
 * Logs the errors of the SDK as failures: the first of a kind has a line, the others are counted. A message is cut at its first quote or
 * parenthesis, where it may repeat a value, for example a header with a password.
 */
function tellOfFailures(failures: Failures): (error: unknown) => void {
  // The SDK works in timers that were started within a request. Its errors belong to no request.
  const tell = (error: unknown): void => {
    const message = error instanceof Error ? error.message || error.name : String(error)
    runInScope(undefined, () => failures.tell('warn', { err: message.replace(/['"(][^]*$/, '').trim() }, 'traces are not sent'))
  }
  const ignore = (): void => undefined
  setGlobalErrorHandler(tell)
  api.diag.setLogger(
    { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  return tell
}
