// An administrator who gives a name that nothing has, or that is taken already, gets the kind of the thing and a sentence (cloud §10).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { member } from '../../../phone/http.ts'
import type { Kind } from '../../../src/lib/errors.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError } from '../../helpers/expectations.ts'
import { plainTemplate } from '../../helpers/operations.ts'
import { expectOk } from '../../helpers/world.ts'

const WEBHOOK = { name: 'core', url: 'https://bank.example/pawl' }
const PROVIDER = { issuer: 'https://login.bank.example', clientId: 'pawl', clientSecret: 's', redirectUri: 'app://login' }
const RULE = { platform: 'ANDROID', requiredVersion: '2.0.0' }
const CREDENTIAL = { username: 'ann', role: 'read-only' }

let server: TestServer
let bank: Bank
let webhook: string
beforeAll(async () => {
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('my-app'))
  expectOk(await bank.call('POST', '/admin/templates', plainTemplate('login2')))
  expectOk(await bank.call('POST', '/admin/users', CREDENTIAL))
  expectOk(await bank.call('POST', '/admin/applications/my-app/versions', { name: '1.0' }))
  const made = expectOk(await bank.call('POST', '/admin/webhooks', { ...WEBHOOK, application: 'my-app', kind: 'OPERATION' }))
  webhook = String(member(made.json, 'id'))
})
afterAll(() => server.close())

type Call = readonly [call: string, hint: string, body?: unknown]

const ABSENT_APPLICATION = 'there is no application x'
const ABSENT_USER = 'there is no user x'
const ABSENT_WEBHOOK = 'there is no webhook x'

/** Every call that is answered so, by the kind of what it named. WEBHOOK stands for the id of the webhook that there is. */
const CALLS: Readonly<Record<Kind, readonly Call[]>> = {
  activation: [
    ['GET /admin/applications/my-app/registrations/x', 'there is no activation x in my-app'],
    ['PUT /admin/activations/x/flags', 'there is no activation x that is live', { flags: ['VIP'] }],
    ['GET /admin/activations/x/config', 'there is no activation x'],
    ['PUT /admin/activations/x/config/limit', 'there is no activation x', { value: 1 }],
    ['DELETE /admin/activations/x/config/limit', 'there is no activation x'],
  ],
  application: [
    ['GET /admin/application?id=x', ABSENT_APPLICATION],
    ['POST /admin/application', 'application my-app exists already', { id: 'my-app' }],
    ['GET /admin/applications/x', ABSENT_APPLICATION],
    ['PATCH /admin/applications/x', ABSENT_APPLICATION, { isDefault: true }],
    ['POST /admin/applications/x/versions', ABSENT_APPLICATION, { name: '1.0' }],
    ['GET /admin/applications/x/registrations', ABSENT_APPLICATION],
    ['POST /admin/applications/x/registrations', ABSENT_APPLICATION, { userId: 'ann' }],
    ['POST /admin/applications/x/registrations/commit', ABSENT_APPLICATION, { userId: 'ann' }],
    ['GET /admin/applications/x/operations', ABSENT_APPLICATION],
    ['GET /admin/applications/x/audit?userId=ann', ABSENT_APPLICATION],
    ['GET /admin/applications/x/config', ABSENT_APPLICATION],
    ['PUT /admin/applications/x/config/limit', ABSENT_APPLICATION, { value: 1 }],
    ['GET /admin/applications/x/claims/ann', ABSENT_APPLICATION],
    ['PUT /admin/applications/x/claims/ann', ABSENT_APPLICATION, { given_name: 'Ann' }],
    ['DELETE /admin/applications/x/claims/ann', ABSENT_APPLICATION],
    ['GET /admin/applications/x/oidc-providers', ABSENT_APPLICATION],
    ['PUT /admin/applications/x/oidc-providers/bank', ABSENT_APPLICATION, PROVIDER],
    ['POST /admin/apps', 'application my-app exists already', { name: 'my-app' }],
    ['GET /admin/apps/x', ABSENT_APPLICATION],
    ['GET /admin/apps/x/versions', ABSENT_APPLICATION],
    ['POST /admin/apps/x/versions', ABSENT_APPLICATION, RULE],
    ['POST /admin/apps/x/certificates/auto', ABSENT_APPLICATION, { domain: 'bank.example' }],
    ['POST /admin/apps/x/certificates/pem', ABSENT_APPLICATION, { domain: 'bank.example', pem: 'x' }],
    [
      'POST /admin/apps/x/certificates/fingerprint',
      ABSENT_APPLICATION,
      { domain: 'bank.example', fingerprint: 'ab'.repeat(32), expires: 4_000_000_000 },
    ],
    ['POST /admin/users', ABSENT_APPLICATION, { username: 'bob', role: 'integration', application: 'x' }],
    ['POST /admin/webhooks', ABSENT_APPLICATION, { ...WEBHOOK, application: 'x', kind: 'OPERATION' }],
  ],
  certificate: [
    [
      `DELETE /admin/apps/my-app/certificates?domain=bank.example&fingerprint=${'ab'.repeat(32)}`,
      'there is no certificate with this fingerprint for bank.example in my-app',
    ],
  ],
  claim: [
    ['GET /admin/applications/my-app/claims/ann', 'there is no claim about ann'],
    ['DELETE /admin/applications/my-app/claims/ann', 'there is no claim about ann'],
  ],
  'configuration item': [['DELETE /admin/applications/my-app/config/limit', 'there is no configuration item limit']],
  delivery: [
    ['GET /admin/webhooks/WEBHOOK/deliveries/x', 'there is no delivery x of webhook WEBHOOK'],
    ['POST /admin/webhooks/WEBHOOK/deliveries', 'there is no delivery x of webhook WEBHOOK', { deliveryId: 'x' }],
  ],
  domain: [['DELETE /admin/apps/my-app/domains?domain=bank.example', 'there is no domain bank.example in my-app']],
  provider: [
    ['GET /admin/applications/my-app/oidc-providers/x', 'there is no provider x of my-app'],
    ['DELETE /admin/applications/my-app/oidc-providers/x', 'there is no provider x of my-app'],
  ],
  template: [
    ['POST /admin/templates', 'template login2 exists already', plainTemplate('login2')],
    ['GET /admin/templates/x', 'there is no template x'],
    ['PUT /admin/templates/x', 'there is no template x', plainTemplate('x')],
    ['DELETE /admin/templates/x', 'there is no template x'],
  ],
  text: [
    ['GET /admin/texts/x/en', 'there is no text x in en'],
    ['DELETE /admin/texts/x/en', 'there is no text x in en'],
  ],
  user: [
    ['POST /admin/users', 'user ann exists already', CREDENTIAL],
    ['POST /admin/users/x/password', ABSENT_USER, {}],
    ['PUT /admin/users/x/allowed-addresses', ABSENT_USER, { allowedAddresses: [] }],
    ['PATCH /admin/users/x', ABSENT_USER, { rights: [] }],
    ['PUT /admin/users/x/certificates', ABSENT_USER, { certificates: [] }],
    ['DELETE /admin/users/x', ABSENT_USER],
  ],
  version: [
    ['POST /admin/applications/my-app/versions', 'version 1.0 of my-app exists already', { name: '1.0' }],
    ['PATCH /admin/applications/my-app/versions/x', 'there is no version x of my-app', { isSupported: false }],
    ['GET /admin/application?id=my-app&version=x', 'there is no version x of my-app'],
  ],
  'version rule': [
    ['GET /admin/apps/my-app/versions/7', 'there is no version rule 7 of my-app'],
    ['DELETE /admin/apps/my-app/versions/7', 'there is no version rule 7 of my-app'],
  ],
  webhook: [
    ['GET /admin/webhooks/x', ABSENT_WEBHOOK],
    ['PUT /admin/webhooks/x', ABSENT_WEBHOOK, WEBHOOK],
    ['DELETE /admin/webhooks/x', ABSENT_WEBHOOK],
    ['POST /admin/webhooks/x/secret', ABSENT_WEBHOOK, {}],
    ['POST /admin/webhooks/x/test', ABSENT_WEBHOOK, {}],
    ['GET /admin/webhooks/x/deliveries', ABSENT_WEBHOOK],
    ['POST /admin/webhooks/x/deliveries', ABSENT_WEBHOOK, { status: 'DEAD' }],
  ],
}

/** `fieldName` of the kinds that have two words, and of no other. */
const FIELD_NAMES: Partial<Record<Kind, string>> = { 'configuration item': 'configurationItem', 'version rule': 'versionRule' }

const rows = Object.entries(CALLS).flatMap(([kind, calls]) =>
  calls.map(([call, hint, body]) => [kind as Kind, call, hint, body] as const),
)

test.each(rows)('of the kind %s: %s is answered: %s', async (kind, call, hint, body) => {
  const [method = '', path = ''] = call.replace('WEBHOOK', webhook).split(' ')
  const reply = await bank.call(method, path, body ?? (method === 'GET' ? undefined : {}))
  expectError(reply, 400, 'ERROR_ADMIN')
  const fieldName = FIELD_NAMES[kind] ?? kind
  expect(member(reply.json, 'responseObject', 'violations')).toEqual([{ fieldName, hint: hint.replace('WEBHOOK', webhook) }])
})

test('a target of transfers that there is not is the fault of the member transfers', async () => {
  const body = { transfers: [{ targets: ['x'], type: 'SPAWN' }] }
  const reply = await bank.call('PATCH', '/admin/applications/my-app', body)
  expectError(reply, 400, 'ERROR_ADMIN')
  const violation = { fieldName: 'transfers', hint: ABSENT_APPLICATION }
  expect(member(reply.json, 'responseObject', 'violations')).toEqual([violation])
})
