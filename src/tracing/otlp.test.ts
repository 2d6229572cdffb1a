// Tests the tracer alone: sampling, continuing a caller's trace, and the format of its requests.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { createLog } from '../log/log.ts'
import type { Tracer } from '../lib/trace.ts'
import { startTracing } from './otlp.ts'

afterEach(() => vi.unstubAllEnvs())

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7'

/** Returns the requests that a collector received while `work` ran, and the log lines. */
async function collect(env: Readonly<Record<string, string>>, work: (tracer: Tracer) => void) {
  const received: { readonly type: string | undefined; readonly body: Buffer }[] = []
  const collector = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ type: request.headers['content-type'], body: Buffer.concat(chunks) })
      response.end()
    })
  })
  await new Promise<void>((resolve) => {
    collector.listen(0, '127.0.0.1', resolve)
  })
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${(collector.address() as AddressInfo).port}`)
  const lines: string[] = []
  const log = createLog('debug', { write: (line: string) => lines.push(line) })
  const tracer = startTracing(env, { now: () => 1_700_000_000_000 }, log)
  work(tracer)
  await tracer.close()
  collector.closeAllConnections()
  collector.close()
  return { received, lines }
}

test.each([
  ['parentbased_always_on', '01', true],
  ['parentbased_always_on', '00', false],
  ['always_on', '00', true],
  ['parentbased_traceidratio', '01', true],
  ['traceidratio', '01', false],
  ['always_off', '01', false],
])('%s under a caller with flags %s records: %s', async (sampler, flags, isRecorded) => {
  const env = { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: '0' }
  const { received } = await collect(env, (tracer) => {
    const span = tracer.startRequest('GET /', { traceparent: `${PARENT}-${flags}`, tracestate: 'bank=1' }, {})
    expect(span).toMatchObject({ traceId: PARENT.slice(3, 35), isRecorded })
    // The header to the next server says that the trace is not sampled, so that server leaves it out too.
    expect(span.headers()['traceparent']).toMatch(isRecorded ? /-01$/ : /-00$/)
    expect(span.headers()['tracestate']).toBe('bank=1')
    span.end()
  })
  expect(received).toHaveLength(isRecorded ? 1 : 0)
})

test('a trace begins here where the caller has none or one that cannot be read, and is sent as protobuf', async () => {
  const { received } = await collect({}, (tracer) => {
    for (const headers of [{}, { traceparent: 'not a trace' }, { traceparent: `${PARENT}-01-more` }]) {
      const span = tracer.startRequest('GET /', headers, {})
      expect(span.traceId).toMatch(/^[0-9a-f]{32}$/)
      expect(span.traceId).not.toBe(PARENT.slice(3, 35))
      span.end({ failure: '500' })
    }
  })
  expect(received.map(({ type }) => type)).toEqual(['application/x-protobuf'])
  expect(received[0]?.body.includes(Buffer.from('GET /'))).toBe(true)
})

test('a setting that is wrong, and a header of the collector with a secret, reach the log without their values', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'authorization=secret%00of the collector')
  const { lines } = await collect({ OTEL_TRACES_SAMPLER: 'perhaps' }, (tracer) => tracer.startRequest('GET /', {}, {}).end())
  expect(lines.join('')).toContain('OTEL_TRACES_SAMPLER')
  expect(lines.join('')).not.toContain('secret')
})
