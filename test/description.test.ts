// The description of the APIs: the document says what the server does, and the page shows it without anything from elsewhere.
import { Validator } from '@seriousme/openapi-schema-validator'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildApp, type Surface } from '../src/app.ts'
import { attributesOf, WEBHOOK_EVENTS } from '../src/domain/webhook/message.ts'
import { describeApis } from '../src/description.ts'
import { REFERENCE_TAG } from '../src/api/reference/index.ts'
import { startTestServer, type TestServer } from './helpers/app.ts'
import { compileSchema, resolve } from './helpers/documented.ts'
import { member, sendJson } from '../phone/http.ts'

let server: TestServer
let document: Record<string, unknown>
beforeAll(async () => {
  // With all that may be served.
  server = await startTestServer({ env: { PAWL_REFERENCE_API: 'true' } })
  document = (await sendJson(server.url, 'GET', '/openapi.json')).json as Record<string, unknown>
})
afterAll(() => server.close())

interface Listed {
  readonly name: string
  readonly operation: Record<string, unknown>
}

const operationsOf = (json: unknown): Listed[] =>
  Object.entries(member(json, 'paths') as Record<string, Record<string, Record<string, unknown>>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  )

describe('the document', () => {
  test('is a valid OpenAPI 3.1 document', async () => {
    const validator = new Validator()
    expect(await validator.validate(structuredClone(document))).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
  })

  test('has every route of the server, and no other', async () => {
    const app = await buildApp(server.context)
    await app.ready()
    expect(
      operationsOf(document)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(
      listRoutes(app)
        // Pages for people, in a browser.
        .filter((route) => !/ \/console\b/.test(route))
        .toSorted(),
    )
    await app.close()
  })

  test('calls a text of ASCII so, because the printable characters are more', () => {
    const described: unknown[] = []
    JSON.stringify(document, (_, value: unknown) => {
      if (String(member(value, 'pattern')).includes(String.raw`-\x7E]`)) described.push(member(value, 'description'))
      return value
    })
    expect(described).not.toEqual([])
    for (const description of described) expect(description).toContain('ASCII')
  })

  test('says of each operation what it is, under an id of its own', () => {
    const operations = operationsOf(document)
    const ids = operations.map(({ operation }) => operation['operationId'])
    expect(new Set(ids).size).toBe(ids.length)
    // An endpoint declares its summary; without one its method and path stand in.
    const unnamed = operations.filter(({ operation }) => /^(GET|POST|PUT|PATCH|DELETE) /.test(String(operation['summary'])))
    expect(unnamed.map(({ name }) => name)).toEqual([])
  })

  test('asks for the credentials that the server asks for', () => {
    const schemes = (path: string, method: string): unknown => member(document, 'paths', path, method, 'security')
    for (const path of ['/registration', '/admin/users', '/metrics'])
      expect(schemes(path, 'get')).toEqual([{ basic: [] }, { accessToken: [] }])
    expect(schemes('/pa/v3/status', 'post')).toEqual([])
    expect(schemes('/pa/v3/token/create', 'post')).toEqual([{ powerAuthAuthorization: [] }, { svcAuthorization: [] }])
    expect(schemes('/pa/v3/activation/create', 'post')).toEqual([{ powerAuthEncryption: [] }, { svcEncryption: [] }])
    expect(schemes('/pa/v3/activation/detail', 'post')).toEqual([
      { powerAuthEncryption: [], powerAuthToken: [] },
      { svcEncryption: [], svcToken: [] },
    ])
  })

  test('offers an Idempotency-Key where a repeated call gets the first answer, and nowhere else', () => {
    const names = ({ operation }: Listed) => ((operation['parameters'] ?? []) as { name: string }[]).map(({ name }) => name)
    expect(
      operationsOf(document)
        .filter((listed) => names(listed).includes('idempotency-key'))
        .map(({ name }) => name),
    ).toEqual([
      'POST /operations',
      'POST /v2/operations',
      'POST /verification/code',
      'POST /verification/token',
      'POST /encryption/open',
      'POST /offline/verification',
    ])
  })

  test('has no schema that a validator refuses, and no example that its schema refuses', () => {
    const wrong = operationsOf(document).flatMap(({ name, operation }) =>
      examplesIn(operation).flatMap(({ place, schema, values }) => {
        const validate = compileSchema(schema, document)
        return values.filter((value) => !validate(value)).map((value) => `${name} ${place}: ${JSON.stringify(value)}`)
      }),
    )
    expect(wrong).toEqual([])
  })

  test('shows the envelope of an encrypted endpoint together with what it decrypts to', () => {
    const body = member(document, 'paths', '/pa/v3/activation/rename', 'post', 'requestBody', 'content', 'application/json')
    const schema = resolve(document, member(body, 'schema'))
    expect(member(schema, 'required')).toEqual(['encryptedData', 'ephemeralPublicKey', 'mac'])
    expect(member(schema, 'properties', 'encryptedData', 'contentSchema', 'required')).toEqual(['activationName'])
  })

  test('is made for generators: named bodies, verbs, enums, no null beside anything and no pattern of JavaScript alone', () => {
    const operations = operationsOf(document)
    const ids = operations.map(({ operation }) => String(operation['operationId']))
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.filter((id) => !/^[a-z]+[A-Z][A-Za-z0-9]*$/.test(id))).toEqual([])
    expect(ids.filter((id) => /^(get|post|put|patch|delete)[A-Z]/.test(id))).toEqual([])
    const named = Object.keys(member(document, 'components', 'schemas') as object)
    for (const name of [
      'Operation',
      'Registration',
      'Webhook',
      'WebhookOperationMessage',
      'ErrorResponse',
      'CreateRegistrationRequest',
    ])
      expect(named).toContain(name)
    const inline = operations.flatMap(({ name, operation }) =>
      Object.entries({ request: operation['requestBody'], ...(operation['responses'] as object) })
        .map(([place, body]) => [place, member(resolve(document, body), 'content', 'application/json', 'schema')] as const)
        .filter(([, schema]) => schema !== undefined && member(schema, '$ref') === undefined)
        .map(([place]) => `${name} ${place}`),
    )
    expect(inline).toEqual([])
    const odd: string[] = []
    JSON.stringify(document, (key, value: unknown) => {
      if (key === 'anyOf' && JSON.stringify(value).includes('{"type":"null"}')) odd.push(JSON.stringify(value))
      if (key === 'const' || key === 'patternProperties') odd.push(`${key} ${JSON.stringify(value)}`)
      if (key === 'pattern' && /\[\^\]|\\p\{/.test(String(value))) odd.push(String(value))
      return value
    })
    expect(odd).toEqual([])
  })

  test('says of every number of the bank what it counts, or its unit', () => {
    const silent = operationsOf(document)
      .filter(({ operation }) => member(operation, 'security', '0', 'basic') && member(operation, 'tags', '0') !== REFERENCE_TAG)
      .flatMap(({ name, operation }) => silentNumbersIn(operation, name))
    expect(silent).toEqual([])
  })

  test('demands nothing that has a default', () => {
    const demanded: string[] = []
    JSON.stringify(document, (_key, value: unknown) => {
      const { properties = {}, required = [] } = (value ?? {}) as { properties?: object; required?: unknown }
      for (const [name, schema] of Object.entries(properties))
        if (Array.isArray(required) && required.includes(name) && member(schema, 'default') !== undefined) demanded.push(name)
      return value
    })
    expect(demanded).toEqual([])
  })

  test('shows an operation for one device beside the others', () => {
    expect(member(document, 'paths', '/v2/operations', 'post', 'tags')).toEqual(['Operations'])
  })

  test('begins with the bank, has a text for each group, and shows what is wrong with a request', () => {
    const tags = member(document, 'tags') as { name: string; description?: string }[]
    expect(tags[0]?.name).toBe('Registration')
    expect(tags.filter(({ description }) => description === undefined)).toEqual([])
    expect(Object.keys(member(document, 'paths') as object)[0]).toBe('/registration')
    const refusal = resolve(document, member(document, 'paths', '/registration', 'post', 'responses', '400'))
    const examples = Object.values(member(refusal, 'content', 'application/json', 'examples') as object)
    expect(examples.flatMap(({ value }) => member(value, 'responseObject', 'violations') ?? [])).not.toEqual([])
    expect(Object.keys(member(document, 'components', 'securitySchemes') as object)[0]).toBe('basic')
  })

  test.each([
    ['tellOperation', 'OPERATION'],
    ['tellActivation', 'ACTIVATION'],
  ] as const)('describes the message %s with every event and attribute', (name, kind) => {
    const body = member(document, 'webhooks', name, 'post', 'requestBody', 'content', 'application/json')
    const schema = resolve(document, member(body, 'schema'))
    expect(member(schema, 'properties', 'event', 'enum')).toEqual(WEBHOOK_EVENTS[kind])
    const members = Object.keys(member(schema, 'properties') as object)
    const id = kind === 'OPERATION' ? 'operationId' : 'activationId'
    expect(members.toSorted()).toEqual(['type', id, 'event', ...attributesOf(kind)].toSorted())
  })

  test('names the address of the phones when they have another listener', () => {
    const settings = { publicUrl: 'https://phones.bank.example', internalPort: 8081 }
    const separate = describeApis(settings)
    expect(member(separate, 'paths', '/pa/v3/status', 'post', 'servers')).toEqual([
      { url: settings.publicUrl, description: 'the public listener' },
    ])
    expect(member(separate, 'paths', '/registration', 'get', 'servers')).toBeUndefined()
  })
})

describe('two listeners', () => {
  const apps = new Map<Surface, FastifyInstance>()
  beforeAll(async () => {
    for (const surface of ['everything', 'public', 'internal'] as const) {
      const app = await buildApp(server.context, surface)
      await app.ready()
      apps.set(surface, app)
    }
  })
  afterAll(async () => {
    for (const app of apps.values()) await app.close()
  })

  const routesOf = (surface: Surface): string[] => listRoutes(apps.get(surface) as FastifyInstance).toSorted()

  test('share the routes of one between them; only health and what they are is on both', () => {
    const [all, open, internal] = [routesOf('everything'), routesOf('public'), routesOf('internal')]
    expect([...new Set([...open, ...internal])].toSorted()).toEqual(all)
    expect(open.filter((route) => internal.includes(route))).toEqual(['GET /', 'GET /health/live', 'GET /health/ready'])
    expect(open.filter((route) => !/^\w+ \/(pa|api|app|health)\//.test(route))).toEqual(['GET /'])
    expect(internal.filter((route) => /^\w+ \/(pa|api|app)\//.test(route))).toEqual([])
  })

  test.each([
    ['public', 'GET', '/registration?userId=a'],
    ['public', 'POST', '/admin/application'],
    ['public', 'GET', '/admin/users'],
    ['public', 'GET', '/openapi.json'],
    ['public', 'GET', '/swagger-ui.html'],
    ['public', 'POST', '/pa/v3/nothing'],
    ['internal', 'POST', '/pa/v3/status'],
    ['internal', 'POST', '/nothing'],
  ] as const)('the %s one does not know %s %s, whoever asks', async (surface, method, url) => {
    const authorization = `Basic ${Buffer.from(`${server.admin.user}:${server.admin.password}`).toString('base64')}`
    const app = apps.get(surface) as FastifyInstance
    for (const headers of [{}, { authorization }]) {
      const reply = await app.inject({ method, url, headers })
      expect(reply.statusCode).toBe(404)
      expect(reply.json()).toMatchObject({ status: 'ERROR', responseObject: { code: 'ERROR_NOT_FOUND' } })
    }
  })
})

describe('the page', () => {
  test('and its files come with headers that allow nothing from elsewhere and nothing inline', async () => {
    for (const path of ['/swagger-ui.html', '/swagger-ui/start.js', '/swagger-ui/swagger-ui.css', '/openapi.json']) {
      const { status, headers } = await sendJson(server.url, 'GET', path)
      expect(status).toBe(200)
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/)
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    }
    const { text } = await sendJson(server.url, 'GET', '/swagger-ui.html')
    expect(text).not.toMatch(/<script>|<style>|style=|https?:/)
  })

  test.each(['nothing.js', 'index.html', '..%2f..%2fpackage.json', '%2e%2e%2f', '%2e%2e%2fopenapi.json'])(
    'has no file %s',
    async (name) => {
      expect((await sendJson(server.url, 'GET', `/swagger-ui/${name}`)).status).toBe(404)
    },
  )
})

/** `METHOD /path/{parameter}` of every route, read from the router's own tree; GET stands for HEAD as well (test/http/head.test.ts). */
function listRoutes(app: FastifyInstance): string[] {
  const names: string[] = []
  const trail: string[] = []
  for (const line of app.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent = '', path = '', methods = ''] = /^((?:[│ ] {3})*)[├└]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? []
    trail.splice(indent.length / 4, trail.length, path)
    const full = trail.join('').replace(/:(\w+)/g, '{$1}')
    for (const method of methods.split(', ').filter((name) => name !== '' && name !== 'HEAD')) names.push(`${method} ${full}`)
  }
  return names
}

/** Where the numbers are below a part of the document that have no description. */
function silentNumbersIn(part: unknown, path: string): string[] {
  const value = resolve(document, part)
  if (typeof value !== 'object' || value === null) return []
  const isSilent = [member(value, 'type')].flat().includes('integer') && member(value, 'description') === undefined
  const below = Object.entries(value).flatMap(([name, inside]) => silentNumbersIn(inside, `${path} ${name}`))
  return isSilent ? [path, ...below] : below
}

interface Exemplified {
  readonly place: string
  readonly schema: unknown
  readonly values: readonly unknown[]
}

function examplesIn(operation: Record<string, unknown>): readonly Exemplified[] {
  const parameters = ((operation['parameters'] ?? []) as Record<string, unknown>[]).map(({ name, schema, example }) => ({
    place: String(name),
    schema,
    values: [example],
  }))
  const bodies = Object.entries({ request: operation['requestBody'], ...(operation['responses'] as object) })
    .map(([place, body]) => ({ place, content: member(resolve(document, body), 'content', 'application/json') }))
    .filter(({ content }) => content !== undefined)
    .map(({ place, content }) => ({
      place,
      schema: member(content, 'schema'),
      values: Object.values((member(content, 'examples') ?? {}) as Record<string, { value: unknown }>).map(({ value }) => value),
    }))
  return [...parameters, ...bodies]
}
