// The source of a request behind a proxy, in the forms that balancers write (PAWL_TRUSTED_PROXIES).
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { sendJson } from '../../phone/http.ts'
import { startServerWithWorld } from '../helpers/world.ts'

let server: TestServer
let bank: Bank
beforeAll(async () => {
  const env = { PAWL_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8,fd00::/8', PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '8' }
  ;({ server } = await startServerWithWorld({ env, worksInBackground: false }))
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
})
afterAll(() => server.close())

/** The source of a refused login, as the log has it. */
async function sourceSeen(forwarded: string): Promise<unknown> {
  const name = `nobody-${Math.random()}`
  const authorization = `Basic ${Buffer.from(`${name}:wrong`).toString('base64')}`
  const headers = { authorization, 'x-forwarded-for': forwarded }
  const before = server.log().length
  expect(await sendJson(server.url, 'GET', '/admin/users', undefined, headers)).toMatchObject({ status: 401 })
  const lines = server
    .log()
    .slice(before)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  return lines.find(({ msg }) => msg === 'credential refused')?.['source']
}

const PEER = '127.0.0.1'

test.each([
  ['3.3.3.3', '3.3.3.3'],
  ['3.3.3.3:1001', '3.3.3.3'],
  ['3.3.3.3:65535, 10.1.2.3:443', '3.3.3.3'],
  ['[2001:db8::1]:443', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['2001:db8::1', '2001:db8::1'],
  ['2001:DB8:0:0::1', '2001:db8::1'],
  ['"[2001:db8::1]:443"', '2001:db8::1'],
  ['"3.3.3.3:1001"', '3.3.3.3'],
  ['fe80::1%eth0', 'fe80::1'],
  ['[fe80::1%25eth0]:80', 'fe80::1'],
  ['::ffff:3.3.3.3', '3.3.3.3'],
  ['[::ffff:303:303]:9', '3.3.3.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['3.3.3.3, [fd00::1]:80, ::ffff:10.1.2.3', '3.3.3.3'],
  // Nobody but a proxy that is trusted says who stands before it.
  ['9.9.9.9, 3.3.3.3:1001', '3.3.3.3'],
  ['unknown, 3.3.3.3', '3.3.3.3'],
  // Empty members of a list mean nothing.
  ['3.3.3.3:1001, ', '3.3.3.3'],
  [' , 3.3.3.3\t:1001 , ,', PEER],
  [' ,3.3.3.3:1001,\t,', '3.3.3.3'],
  ['', PEER],
  [' , ', PEER],
  // What stands before a member that is no address may be anybody's.
  ['unknown', PEER],
  ['_hidden', PEER],
  ['9.9.9.9, unknown', PEER],
  ['9.9.9.9, unknown, 10.1.2.3:5', '10.1.2.3'],
  ['9.9.9.9, [3.3.3.3]:1, 10.1.2.3', '10.1.2.3'],
  ['3.3.3.3:http', PEER],
  ['3.3.3.03', PEER],
  ['3.3.3', PEER],
  ['50529027', PEER],
  ['0x3.3.3.3', PEER],
  ['[2001:db8::1', PEER],
  ['2001:db8::1]:443', PEER],
  ['for=3.3.3.3', PEER],
  ['bank.example', PEER],
])('%j comes from %s', async (forwarded, source) => {
  expect(await sourceSeen(forwarded)).toBe(source)
})

test('ports and other forms of addresses lock out nobody else, and what cannot be read is told once', async () => {
  const fail = (from: string) =>
    sendJson(server.url, 'GET', '/admin/users', undefined, {
      authorization: `Basic ${Buffer.from(`${server.admin.user}:wrong`).toString('base64')}`,
      'x-forwarded-for': from,
    })
  for (let i = 0; i < 8; i += 1) await fail(`3.3.3.3:${1_000 + i}`)
  expect((await fail('3.3.3.3:2000')).status).toBe(429)
  expect((await fail('[::ffff:303:303]:1')).status).toBe(429)
  const { user, password } = server.admin
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  for (const from of ['4.4.4.4:1001', '[2001:db8::1]:443', '[2001:db8::2]', 'fe80::7%eth1', 'unknown', ''])
    expect(
      (await sendJson(server.url, 'GET', '/admin/users', undefined, { authorization, 'x-forwarded-for': from })).status,
    ).toBe(200)
  expect((await bank.call('GET', '/admin/users')).status).toBe(200)
  expect(server.log().match(/X-Forwarded-For/g)).toHaveLength(1)
})

test('a header of somebody who is no proxy counts for nothing and is not told', async () => {
  const { server: open } = await startServerWithWorld({ worksInBackground: false })
  try {
    const reply = await sendJson(open.url, 'GET', '/admin/users', undefined, { 'x-forwarded-for': 'unknown' })
    expect(reply.status).toBe(401)
    expect(open.log()).not.toContain('X-Forwarded-For')
  } finally {
    await open.close()
  }
})
