// The callers of the reference's back-end API, its refusals, and its absence unless a setting switches it on (cloud §15.1, §15.4).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendJson } from '../../../phone/http.ts'
import { describeApis } from '../../../src/description.ts'
import { type Bank, basicAuthorization } from '../../helpers/bank.ts'
import { createCaller } from '../../helpers/door.ts'
import { expectError } from '../../helpers/expectations.ts'
import { callReference, DIALECTS } from '../../helpers/reference.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
const callers = new Map<string, Bank>()
const ROLES = ['integration', 'verification', 'internal', 'read-only'] as const
beforeAll(async () => {
  v4 = await startWorldV4({ env: { PAWL_REFERENCE_API: 'true', PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '1000' } })
  for (const role of ROLES) callers.set(role, await createCaller(v4.world.bank, `role-${role}`, role, v4.world.applicationId))
})
afterAll(() => v4.close())

const callerOf = (role: string): Bank => callers.get(role) ?? v4.world.bank

/** Below /rest/v3 and /rest/v4. */
const COMMON = [
  'activation/block',
  'activation/commit',
  'activation/flags/create',
  'activation/flags/list',
  'activation/flags/remove',
  'activation/flags/update',
  'activation/history',
  'activation/init',
  'activation/list',
  'activation/lookup',
  'activation/name/update',
  'activation/otp/update',
  'activation/remove',
  'activation/status',
  'activation/status/update',
  'activation/unblock',
  'application/detail',
  'application/detail/version',
  'operation/cancel',
  'operation/create',
  'operation/detail',
  'operation/list',
  'operation/list/pending',
]
const VERIFYING = {
  v3: ['ecies/decryptor', 'signature/ecdsa/verify', 'signature/offline/verify', 'signature/verify', 'token/validate'],
  v4: ['auth/offline/verify', 'auth/verify', 'dsa/verify', 'jwt/verify', 'token/validate'],
}
/** Texts of QR codes. */
const TEXTS = { v3: 'signature/offline', v4: 'auth/offline' }
const textsOf = (dialect: 'v3' | 'v4') => ['personalized', 'non-personalized'].map((kind) => `${TEXTS[dialect]}/${kind}/create`)
const ALL = DIALECTS.flatMap((dialect) =>
  [...COMMON, ...VERIFYING[dialect], ...textsOf(dialect)].map((path) => [dialect, path] as const),
)

test('the description has these endpoints and no others, and none of them without the setting', () => {
  const pathsOf = (referenceApi: boolean) =>
    Object.keys(describeApis({ referenceApi })['paths'] as object)
      .filter((path) => path.startsWith('/rest/'))
      .toSorted()
  expect(pathsOf(true)).toEqual(
    [...ALL, ...DIALECTS.map((dialect) => [dialect, 'status'] as const)]
      .map(([dialect, path]) => `/rest/${dialect}/${path}`)
      .toSorted(),
  )
  expect(pathsOf(false)).toEqual([])
})

test.each(ALL)('%s %s: roles, credentials and malformed requests', async (dialect, path) => {
  const isVerifying = VERIFYING[dialect].includes(path)
  for (const role of ROLES) {
    const reply = await callReference(callerOf(role), dialect, path, {})
    if (role === 'integration' || (role === 'verification' && isVerifying)) expectError(reply, 400, 'ERR0024')
    else expectError(reply, 403, 'HTTP_403')
  }
  const bank = callerOf('integration')
  const url = `/rest/${dialect}/${path}`
  const wrong = basicAuthorization('role-integration:wrong')
  for (const headers of [{}, wrong])
    expectError(await sendJson(bank.url, 'POST', url, { requestObject: {} }, headers), 401, 'HTTP_401')
  for (const requestObject of [undefined, null, [], 7, 'x'])
    expectError(await callReference(bank, dialect, path, requestObject), 400, 'ERR0024')
  const send = (body: string) =>
    fetch(`${bank.url}${url}`, {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json', ...basicAuthorization(bank.credential) },
    })
  for (const body of ['', '{', '{"requestObject":', '[]', 'null', '"\\u0000"']) {
    const reply = await send(body)
    expect([body, reply.status, await reply.json()]).toMatchObject([
      body,
      400,
      { status: 'ERROR', responseObject: { code: 'ERR0024' } },
    ])
  }
  const got = await fetch(`${bank.url}${url}`, { headers: basicAuthorization(bank.credential) })
  expect(got.status).toBe(404)
})

test('what signs, hands out secrets or is talk of the library with the core is not served', async () => {
  for (const dialect of DIALECTS)
    for (const path of [
      'encryptor',
      'dsa/sign',
      'jwt/sign',
      'operation/approve',
      'operation/reject',
      'operation/claim',
      'token/create',
      'vault/unlock',
      'activation/prepare',
      'application/list',
      'recovery/create',
      'integration/list',
      'x',
    ])
      expect([path, (await callReference(callerOf('integration'), dialect, path, {})).status]).toEqual([path, 404])
  expect((await callReference(callerOf('integration'), 'v3', 'auth/verify', {})).status).toBe(404)
  expect((await callReference(callerOf('integration'), 'v4', 'signature/verify', {})).status).toBe(404)
})

test('a credential without application acts on none', async () => {
  const outside = await createCaller(v4.world.bank, 'outside', 'integration')
  for (const dialect of DIALECTS)
    expectError(await callReference(outside, dialect, 'activation/status', { activationId: 'x' }), 400, 'ERR0015')
})

test('errors say which member is wrong', async () => {
  const reply = await callReference(callerOf('integration'), 'v3', 'activation/flags/create', {
    activationId: 'x',
    activationFlags: ['low'],
  })
  expect(JSON.stringify(reply.json)).toContain('activationFlags')
})

describe('without the setting', () => {
  let off: WorldV4
  beforeAll(async () => {
    off = await startWorldV4()
  })
  afterAll(() => off.close())

  test('there is nothing below /rest', async () => {
    for (const [dialect, path] of ALL) expect((await callReference(off.world.bank, dialect, path, {})).status).toBe(404)
    expect((await callReference(off.world.bank, 'v3', 'status', null)).status).toBe(404)
  })
})
