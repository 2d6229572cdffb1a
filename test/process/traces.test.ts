// Traces as a collector receives them (docs/OPERATIONS.md, "Traces"): what a request, its stages and its statements say of themselves, that
// nothing secret is among it, and that neither a collector that is away nor the lack of one is noticed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { send, sendJson } from '../../phone/http.ts'
import { type ExportedSpan, readSpans } from '../helpers/otlp.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Environment,
  type Installation,
  type PawlProcess,
  startSources,
} from '../helpers/process.ts'
import { type Provider, startProvider } from '../helpers/provider.ts'
import { expectOk, openWorld } from '../helpers/world.ts'

// Starts of whole servers, and other test files run at the same time.

afterAll(endEverything)

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT_ID = '00f067aa0ba902b7'
const COLLECTOR_KEY = 'key of the collector'

describe('with a collector', () => {
  test('a signed request is one trace of its stages and statements, from the caller on and to the bank, without a secret', async () => {
    const collector = await startProvider()
    const claims = await startProvider()
    const { installation, server } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=${encodeURIComponent(COLLECTOR_KEY)}`,
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_SERVICE_NAME: 'pawl-of-the-test',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      PAWL_USER_INFO_URL: `${claims.url}/claims-of-users`,
      PAWL_LOG_LEVEL: 'debug',
    })
    const place = { urls: [server.url], admin: `admin:${ADMIN_PASSWORD}`, advance: () => undefined, close: async () => undefined }
    const { phone, userId } = await (await openWorld(place)).activePhone('3.3')
    const request = await phone.prepareUserInfo()
    const headers = { ...request.headers, traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`, 'x-request-id': 'asked-by-the-test' }
    expectOk(await send(server.url, { ...request, headers }))
    // Wrong, and so refused in the stage that finds it.
    const validation = phone.prepareValidation()
    const authorization = 'X-PowerAuth-Authorization'
    const wrong = {
      ...validation.headers,
      [authorization]: String(validation.headers[authorization]).replace(/pa_signature="../, 'pa_signature="//'),
    }
    expect((await send(server.url, { ...validation, headers: wrong })).status).toBe(401)
    const { stdout } = await server.end('SIGTERM')
    expect(listLoaded(installation)).toContain('@opentelemetry/sdk-trace')

    // The last of them were sent by the end of the process.
    const spans = listSpans(collector)
    const ours = spans.filter(({ traceId }) => traceId === TRACE_ID)
    const root = one(ours, 'POST /pa/v3/user/info')
    expect(root.parentSpanId).toBe(PARENT_ID)
    expect(root.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/pa/v3/user/info',
      'http.response.status_code': 200,
      'pawl.request_id': 'asked-by-the-test',
    })
    const nameOf = ({ parentSpanId }: ExportedSpan) => ours.find(({ spanId }) => spanId === parentSpanId)?.name
    const tree = ours.map((span) => `${nameOf(span)} > ${span.name}`)
    expect(tree).toEqual(
      expect.arrayContaining([
        'POST /pa/v3/user/info > find parties',
        'find parties > select unique_value',
        'POST /pa/v3/user/info > open envelope',
        'POST /pa/v3/user/info > use up',
        'use up > insert unique_value',
        'POST /pa/v3/user/info > handle',
        'handle > select user_claims',
        'handle > POST',
        'POST /pa/v3/user/info > seal',
      ]),
    )
    for (const span of ours) {
      expect(span.startedAt).toBeGreaterThanOrEqual(root.startedAt)
      expect(span.endedAt).toBeLessThanOrEqual(root.endedAt)
    }
    const asked = claims.questions.at(-1)?.headers['traceparent']
    expect(asked).toBe(`00-${TRACE_ID}-${one(ours, 'POST').spanId}-01`)
    const refused = spans.filter(({ name }) => name === 'check code').map(({ attributes }) => attributes['error.type'])
    expect(refused).toContain('AUTHENTICATION_CODE_INVALID')
    expect(stdout).toContain(`"requestId":"asked-by-the-test","traceId":"${TRACE_ID}"`)

    expect(one(ours, 'insert unique_value').attributes).toMatchObject({
      'db.system.name': 'postgresql',
      'db.query.text': expect.stringContaining('$1'),
    })

    expect(collector.questions[0]?.headers.authorization).toBe(COLLECTOR_KEY)
    const text = collector.questions.map(({ body }) => body.toString('utf8')).join('')
    expect(text).toContain('pawl-of-the-test')
    expect(text).toContain('deployment.environment.name')
    const { activationId } = phone.state
    for (const secret of [ADMIN_PASSWORD, COLLECTOR_KEY, userId, activationId, wrong[authorization], 'claims-of-users'])
      expect(text).not.toContain(secret)
    for (const url of [collector, claims]) url.close()
  })
})

test('a collector that is away fails no request, fills no log and holds up no end', async () => {
  const endpoint = `http://127.0.0.1:${await findQuietPort()}`
  const startedAt = performance.now()
  const { server } = await startTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_TRACES_SAMPLER: 'perhaps',
  })
  const startMs = performance.now() - startedAt
  for (let i = 0; i < 40; i += 1) expectOk(await sendJson(server.url, 'POST', '/pa/v3/status', {}))
  await server.printed('traces are not sent')
  const since = performance.now()
  const { code, stdout } = await server.end('SIGTERM')
  expect(code).toBe(0)
  // A start has many times the work of an end, on a busy machine too.
  expect(performance.now() - since, 'ms to the end').toBeLessThan(Math.max(5_000, startMs))
  const lines = stdout.split('\n').filter((line) => line.includes('traces are not sent'))
  expect(lines.length).toBeLessThanOrEqual(2)
  expect(lines[0]).not.toContain('requestId')
  expect(stdout).toContain('OTEL_TRACES_SAMPLER')
})

test('no code of OpenTelemetry is loaded where nothing asks for traces', async () => {
  const { installation, server } = await startTraced({ OTEL_SERVICE_NAME: 'pawl' })
  expectOk(await sendJson(server.url, 'POST', '/pa/v3/status', {}))
  expect(await server.end('SIGTERM')).toMatchObject({ code: 0 })
  expect(listLoaded(installation)).toEqual([])
})

const ADMIN = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

/** A server whose modules are noted. */
async function startTraced(env: Environment) {
  const installation = await createInstallation('embedded')
  const server: PawlProcess = await startSources(installation.env, ADMIN, env, watchModules(installation))
  return { installation, server }
}

/** Writes the name of every module that is resolved into a file. */
const watchModules = ({ directory }: Installation): Environment => {
  const code = `import { appendFileSync } from 'node:fs'
    import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => { appendFileSync(${JSON.stringify(join(directory, 'modules'))}, name + '\\n'); return next(name, context) } })`
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(code)}` }
}

function listLoaded({ directory }: Installation): readonly string[] {
  const names = readFileSync(join(directory, 'modules'), 'utf8').split('\n')
  expect(names).toContain('fastify')
  return names.filter((name) => name.startsWith('@opentelemetry/'))
}

/** Every span that a collector was sent. */
function listSpans({ questions }: Provider): readonly ExportedSpan[] {
  expect(new Set(questions.map(({ path }) => path))).toEqual(new Set(['/v1/traces']))
  return questions.flatMap(({ body }) => readSpans(body))
}

function one(spans: readonly ExportedSpan[], name: string): ExportedSpan {
  const found = spans.filter((span) => span.name === name)
  expect(found, name).toHaveLength(1)
  return found[0] as ExportedSpan
}
