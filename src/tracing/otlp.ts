// Traces through the SDK of OpenTelemetry, sent to a collector as OTLP over HTTP, in protobuf. Loaded by main.ts when the environment asks for traces.
//
// Nothing here waits for the collector: spans lie in a queue of fixed length until they are sent, and what does not fit is dropped.
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

/** Starts to send traces. The SDK reads endpoint, headers, certificates, timeout, compression and resource from the environment itself. */
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
      // One clock for all spans of a request: what is measured later is counted from here.
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

/** Name and version, and above them what OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say. */
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
 * What the SDK reports reaches the log as failures that are told once and then counted. A message is cut where it repeats a value: that may be
 * a header with a password.
 */
function tellOfFailures(failures: Failures): (error: unknown) => void {
  // The SDK works in timers that a request has set.
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
