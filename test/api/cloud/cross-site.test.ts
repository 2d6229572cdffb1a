// Writes that a foreign page makes a browser send with the credentials it has stored (cloud §1.2).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basicAuthorization } from '../../helpers/bank.ts'
import { expectError } from '../../helpers/expectations.ts'
import { send } from '../../../phone/http.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const sendWith = (headers: Readonly<Record<string, string>>, method: string, path: string, body = '') =>
  send(world.url, {
    method,
    path,
    headers: { ...basicAuthorization(world.bank.credential), ...headers },
    body: Buffer.from(body),
  })
const json = { 'Content-Type': 'application/json' }

/** Writes of both kinds, with bodies that say nothing or all there is to say. */
const writes: [string, string, string][] = [
  ['POST', '/admin/users/target/password', '{}'],
  ['POST', '/admin/webhooks/unknown/secret', '{}'],
  ['POST', '/registration', '{"userId":"x"}'],
  ['POST', '/internal/callback/operation', '{"operationId":"3f2504e0-4f89-41d3-9a0c-0305e82c3301"}'],
  ['PUT', '/registration', '{"userId":"x","change":"BLOCK"}'],
  ['PATCH', '/admin/applications/test-app', '{}'],
]

describe.each(writes)('%s %s', (method, path, body) => {
  test.each<[string, Record<string, string>, string]>([
    ['no type and no body', {}, ''],
    ['no type', {}, body],
    ['the type of a form', { 'Content-Type': 'application/x-www-form-urlencoded' }, body],
    ['the type of a text', { 'Content-Type': 'text/plain;charset=UTF-8' }, body],
    ['a type that begins alike', { 'Content-Type': 'application/jsonp' }, body],
    ['a foreign origin', { ...json, Origin: 'http://127.0.0.1:1' }, body],
    ['no origin of its own', { ...json, Origin: 'null' }, body],
    ['another site', { ...json, 'Sec-Fetch-Site': 'cross-site' }, body],
    ['another host of the site', { ...json, 'Sec-Fetch-Site': 'same-site' }, body],
  ])('is refused with %s', async (_, headers, sent) => {
    expectError(await sendWith(headers, method, path, sent), 400, 'ERROR_REQUEST')
  })

  test('comes through from the own page and from a back end', async () => {
    const own = { Origin: world.url, 'Sec-Fetch-Site': 'same-origin' }
    for (const headers of [json, { 'Content-Type': 'application/json; charset=utf-8' }, { ...json, ...own }]) {
      const { text, status } = await sendWith(headers, method, path, body)
      expect([status, text]).not.toEqual([400, expect.stringMatching(/Origin|Sec-Fetch-Site|Content-Type/)])
    }
  })
})

test('a page of another origin does not reset a password, and the old one lives', async () => {
  const { password } = expectOk(await world.bank.call('POST', '/admin/users', { username: 'target', role: 'admin' })).json as {
    password: string
  }
  const headers = { Origin: 'http://127.0.0.1:1', 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors' }
  expectError(await sendWith(headers, 'POST', '/admin/users/target/password'), 400, 'ERROR_REQUEST')
  expectOk(await world.bank.as(`target:${password}`).call('GET', '/admin/users'))
  expectOk(await sendWith({ ...json, Origin: world.url }, 'POST', '/admin/users/target/password', '{}'))
  expect((await world.bank.as(`target:${password}`).call('GET', '/admin/users')).status).toBe(401)
})

test('DELETE needs no type, and is refused from elsewhere', async () => {
  expectOk(await world.bank.call('POST', '/admin/users', { username: 'deleted', role: 'admin' }))
  expectError(await sendWith({ Origin: 'https://elsewhere.example' }, 'DELETE', '/admin/users/deleted'), 400, 'ERROR_REQUEST')
  expectError(await sendWith({ 'Sec-Fetch-Site': 'cross-site' }, 'DELETE', '/admin/users/deleted'), 400, 'ERROR_REQUEST')
  expectOk(await sendWith({}, 'DELETE', '/admin/users/deleted'))
})

test('reads come through from everywhere: no page of another origin can see them', async () => {
  expectOk(await sendWith({ Origin: 'https://elsewhere.example', 'Sec-Fetch-Site': 'cross-site' }, 'GET', '/admin/users'))
})

test('who shows no credentials is asked for them first', async () => {
  const reply = await send(world.url, { method: 'POST', path: '/admin/users', headers: {}, body: new Uint8Array(0) })
  expect(reply.status).toBe(401)
})
