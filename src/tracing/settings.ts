// The standard settings of OpenTelemetry (OTEL_*) that its SDK leaves to its user. Of a wrong value the log has a line, and the standard's
// default is taken: a setting that was made for a whole fleet keeps no server from its work.

export type Environment = Readonly<Record<string, string | undefined>>

export interface TracingSettings {
  readonly sampler: SamplerName
  /** Of the samplers with a ratio, 0 to 1. */
  readonly ratio: number
  readonly batch: {
    readonly scheduledDelayMillis: number
    readonly exportTimeoutMillis: number
    readonly maxQueueSize: number
    readonly maxExportBatchSize: number
  }
  /** Undefined: as long as they are. */
  readonly attributeCharactersMax: number | undefined
}

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type SamplerName = (typeof SAMPLERS)[number]

/** True when the environment names a place for traces. Without one nothing of OpenTelemetry is loaded. */
export function areTracesWanted(env: Environment): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false
  const exporter = env['OTEL_TRACES_EXPORTER']
  if (exporter) return exporter === 'otlp'
  return Boolean(env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT'])
}

/** Reads the settings; `warn` is told of each that is not as the standard says, with its name. */
export function readTracingSettings(env: Environment, warn: (name: string, problem: string) => void): TracingSettings {
  const read = <T>(name: string, parse: (text: string) => T | undefined, allowed: string, otherwise: T): T => {
    const text = env[name]
    if (!text) return otherwise
    const value = parse(text)
    if (value === undefined) warn(name, `not ${allowed}, the default is taken`)
    return value ?? otherwise
  }
  const oneOf = <T extends string>(name: string, values: readonly T[], otherwise: T): T =>
    read(name, (text) => values.find((value) => value === text), `one of ${values.join(', ')}`, otherwise)
  const count = (name: string, otherwise: number): number => read(name, parseCount, 'a whole number above 0', otherwise)
  // pawl speaks one protocol; who sets another one is told.
  for (const name of ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL']) oneOf(name, [PROTOCOL], PROTOCOL)
  const limits = ['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT'] as const
  return {
    sampler: oneOf('OTEL_TRACES_SAMPLER', SAMPLERS, 'parentbased_always_on'),
    ratio: read('OTEL_TRACES_SAMPLER_ARG', parseRatio, 'a number from 0 to 1', 1),
    batch: {
      scheduledDelayMillis: count('OTEL_BSP_SCHEDULE_DELAY', 5_000),
      exportTimeoutMillis: count('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
      maxQueueSize: count('OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
      maxExportBatchSize: count('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
    },
    attributeCharactersMax: limits.map((name) => read(name, parseCount, 'a whole number above 0', undefined)).find(Boolean),
  }
}

const parseCount = (text: string): number | undefined => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined)

function parseRatio(text: string): number | undefined {
  const ratio = Number(text)
  return ratio >= 0 && ratio <= 1 ? ratio : undefined
}

const PROTOCOL = 'http/protobuf'
