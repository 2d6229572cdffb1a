// Tests which standard settings ask for traces, and how pawl reads the settings that the SDK does not read.
import { expect, test } from 'vitest'
import { areTracesWanted, type Environment, readTracingSettings } from './settings.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

test.each<[boolean, Environment]>([
  [false, {}],
  [false, { OTEL_SERVICE_NAME: 'pawl', OTEL_TRACES_SAMPLER: 'always_on' }],
  [true, ENDPOINT],
  [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }],
  [true, { OTEL_TRACES_EXPORTER: 'otlp' }],
  [false, { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
  [false, { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }],
  [true, { ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }],
  [false, { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
])('traces are wanted: %s, for %o', (isWanted, env) => {
  expect(areTracesWanted(env)).toBe(isWanted)
})

test('values are read', () => {
  const problems: string[] = []
  const env = {
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
    OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '64',
  }
  expect(readTracingSettings(env, (name) => problems.push(name))).toMatchObject({
    sampler: 'traceidratio',
    ratio: 0.25,
    batch: { maxQueueSize: 100, scheduledDelayMillis: 5_000 },
    attributeCharactersMax: 64,
  })
  expect(problems).toEqual([])
})

test('a wrong value is named and the default taken', () => {
  const problems: string[] = []
  const env = {
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_TRACES_SAMPLER: 'perhaps',
    OTEL_TRACES_SAMPLER_ARG: '2',
    OTEL_BSP_SCHEDULE_DELAY: '-1',
  }
  const settings = readTracingSettings(env, (name) => problems.push(name))
  expect(settings).toEqual(readTracingSettings({}, () => undefined))
  expect(problems).toEqual(Object.keys(env))
})
