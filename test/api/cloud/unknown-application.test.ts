// A token of the bank's authorization server may name an application that pawl does not have: everywhere that is the caller's mistake.
import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TSchema } from '@sinclair/typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendJson } from '../../../phone/http.ts'
import { cloudEndpoints } from '../../../src/api/cloud/endpoints.ts'
import { doors } from '../../../src/api/door/index.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError } from '../../helpers/expectations.ts'
import { startServerWithWorld, type World } from '../../helpers/world.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
let keys: Server
let server: TestServer
let world: World
beforeAll(async () => {
  keys = createServer((_request, response) =>
    response.end(JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k' }] })),
  )
  await new Promise<void>((resolve) => keys.listen(0, '127.0.0.1', resolve))
  const env = {
    PAWL_JWT_JWKS_URL: `http://127.0.0.1:${(keys.address() as AddressInfo).port}/`,
    PAWL_JWT_ISSUER: 'bank',
    PAWL_JWT_AUDIENCE: 'pawl',
  }
  ;({ server, world } = await startServerWithWorld({ env }))
  await world.activePhone('3.3')
})
afterAll(async () => {
  await world.close()
  keys.close()
})

function tokenOf(role: string, application: unknown, sub: string): string {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: 'bank', aud: 'pawl', sub, exp: now + 60, scope: `pawl:${role}`, pawl_application: application }
  const input = [{ alg: 'ES256', kid: 'k' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** A value that a schema takes, or nearly: what it refuses is no 500 either. */
function sample(schema: TSchema, name: string): unknown {
  const { type, properties, items, examples, anyOf, minimum = 1, const: value } = schema as Record<string, never> & TSchema
  if (value !== undefined) return value
  if (SAMPLES[name] !== undefined) return SAMPLES[name]
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (Array.isArray(examples)) return examples[0]
  if (Array.isArray(anyOf)) return sample(anyOf[0] as TSchema, name)
  if (type === 'object')
    return Object.fromEntries(
      Object.entries((properties ?? {}) as Record<string, TSchema>).map(([key, one]) => [key, sample(one, key)]),
    )
  if (type === 'array') return items === undefined ? [] : [sample(items as TSchema, name)]
  if (type === 'integer' || type === 'number') return minimum
  return type === 'boolean' ? false : 'x'
}
const SAMPLES: Readonly<Record<string, unknown>> = { userId: 'alice', template: 'login' }

test.each([
  ['no-such-app', 'back-end'],
  ['x'.repeat(200), 'auth0|5c8:x'],
  ['ä\u202e', '\u{10000}'.repeat(200)],
  ["a'; --", "a'; --"],
  [undefined, '\u202e\ufeff'],
])('no endpoint fails for a caller of the application %s', async (application, sub) => {
  const bad: string[] = []
  for (const endpoint of [...cloudEndpoints, ...doors])
    for (const role of endpoint.roles) {
      const params = endpoint.params ? (sample(endpoint.params, '') as Record<string, unknown>) : {}
      const path = endpoint.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])))
      const query = endpoint.query ? (sample(endpoint.query, '') as Record<string, unknown>) : {}
      const search = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]))
      const body = endpoint.body && sample(endpoint.body, '')
      const reply = await sendJson(
        world.url,
        endpoint.method,
        `${path}?${search.toString()}`,
        body ?? (endpoint.method === 'GET' ? undefined : {}),
        {
          Authorization: `Bearer ${tokenOf(role, application, sub)}`,
        },
      )
      if (reply.status >= 500) bad.push(`${role} ${endpoint.method} ${path}`)
    }
  expect(bad).toEqual([])
  expect(server.log()).not.toContain('violates foreign key')
})

test('a message for an application that is not there says so', async () => {
  const message = { userId: 'alice', subject: 's', summary: 's', body: 'b' }
  const reply = await sendJson(world.url, 'POST', '/inbox/messages', message, {
    Authorization: `Bearer ${tokenOf('integration', 'gone', 's')}`,
  })
  expectError(reply, 400, 'ERROR_REGISTRATION_NOT_FOUND')
  expect(reply.text).toContain('GET /admin/applications')
})
