// Reads the standard settings of OpenTelemetry (OTEL_*) that its SDK does not read itself. A wrong value has a log line, and the default of the
// standard is used: a setting made for many servers must not stop this one.

export type Environment = Readonly<Record<string, string | undefined>>

export interface TracingSettings {
  readonly sampler: SamplerName
  /** The ratio of the samplers that have one, from 0 to 1. */
  readonly ratio: number
  readonly batch: {
    readonly scheduledDelayMillis: number
    readonly exportTimeoutMillis: number
    readonly maxQueueSize: number
    readonly maxExportBatchSize: number
  }
  /** The length to which attributes are cut; undefined does not cut them. */
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

/** True when the environment names a place for traces. Otherwise no code of OpenTelemetry is loaded. */
export function areTracesWanted(env: Environment): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false
  const exporter = env['OTEL_TRACES_EXPORTER']
  if (exporter) return exporter === 'otlp'
  return Boolean(env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT'])
}

/** Reads the settings. `warn` is called with the name of each setting that breaks the standard. */
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
  // pawl speaks one protocol. A setting with another one gets a warning.
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
