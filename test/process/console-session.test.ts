// Sessions of the console: who gets one, how it ends, and that a form only counts from a page of it.
import { createHash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, send, sendJson } from '../../phone/http.ts'
import { listLiveSessions } from '../../src/domain/credential/session.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { type ConsoleSession, postForm, startSession, trySignIn } from '../helpers/console-session.ts'
import { expectOk } from '../helpers/world.ts'

const MINUTE = 60_000
let server: TestServer
let bank: Bank
beforeAll(async () => {
  server = await startTestServer({ env: { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '5' } })
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('test-app'))
})
afterAll(() => server.close())

const signIn = (): Promise<ConsoleSession> => startSession(server.url, server.admin.user, server.admin.password)

/** A credential of its own, so that what ends it ends no other session of these tests. */
async function newCredential(username: string, role: string, application?: string): Promise<string> {
  const reply = await bank.call('POST', '/admin/users', { username, role, ...(application && { application }) })
  return String(member(expectOk(reply).json, 'password'))
}

const isOpen = async (session: ConsoleSession): Promise<boolean> => (await session.get('/')).status === 200

/** Where a relative address in the answer of a page leads. */
const leadsTo = (path: string, address: unknown): string => {
  expect(String(address)).toMatch(/^\.\//)
  const { href } = new URL(String(address), server.url + path)
  expect(href.startsWith(`${server.url}/`)).toBe(true)
  return href.slice(server.url.length)
}

describe('signing in', () => {
  test('leads to the page that was asked for, by way of the form', async () => {
    const asked = await send(server.url, { method: 'GET', path: '/console/audit?username=a', headers: {}, body: Buffer.alloc(0) })
    expect([asked.status, leadsTo('/console/audit', asked.headers['location'])]).toEqual([
      303,
      '/console/sign-in?next=%2Fconsole%2Faudit%3Fusername%3Da',
    ])
    const form = { username: server.admin.user, password: server.admin.password, next: '/console/audit?username=a' }
    const reply = await postForm(server.url, '/sign-in', form)
    expect([reply.status, leadsTo('/console/sign-in', reply.headers['location'])]).toEqual([303, '/console/audit?username=a'])
  })

  test.each([
    '//evil.example/',
    'https://evil.example/',
    '/console/../admin',
    '/console//evil.example',
    '/console/\\evil',
    '/admin',
    '/console/../../evil',
    '/console/%2e%2e/%2E%2E/evil',
    '/console/registrations/.%2e/../../admin/users',
    '/console/registrations/..%2f..%2fevil',
    '/console/registrations/..%5cevil',
    '/console/\t/evil.example',
    '/\\evil.example/console/',
    'javascript:alert(1)//console/',
    '/console/nothing',
    '/console/sign-out',
    '/console/assets/style.css',
    '/console',
    '',
  ])('leads nowhere else: %j', async (next) => {
    const form = { username: server.admin.user, password: server.admin.password, next }
    expect(leadsTo('/console/sign-in', (await postForm(server.url, '/sign-in', form)).headers['location'])).toBe('/console/')
    const shown = await send(server.url, {
      method: 'GET',
      path: `/console/sign-in?${new URLSearchParams({ next }).toString()}`,
      headers: {},
      body: Buffer.alloc(0),
    })
    expect(shown.text).toContain('name="next" value="/console/"')
  })

  test.each(['/console/registrations/a%20b?app=x', '/console/../console/audit?username=%22', '/console/new-template'])(
    'leads to a page with what it is asked: %s',
    async (next) => {
      const form = { username: server.admin.user, password: server.admin.password, next }
      const { href } = new URL(next, server.url)
      const { headers } = await postForm(server.url, '/sign-in', form)
      expect(leadsTo('/console/sign-in', headers['location'])).toBe(href.slice(server.url.length))
    },
  )

  test('gives a cookie that scripts and other sites never see, and plain HTTP not where the browser came by TLS', async () => {
    const { user, password } = server.admin
    const plain = String((await trySignIn(server.url, user, password)).headers['set-cookie'])
    // Without a path, a browser takes that of the form: /console, below whatever prefix it knows.
    expect(plain).toMatch(/^pawl_console_\d+=[\w-]{43}; HttpOnly; SameSite=Strict$/)
    const behindTls = await trySignIn(server.url, user, password, { 'X-Forwarded-Proto': 'https', Host: 'pawl.example' })
    expect(String(behindTls.headers['set-cookie'])).toMatch(
      /^__Host-pawl_console=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Secure$/,
    )
  })

  test('gives a cookie by the port that the browser asks, so that two consoles on a host do not end each other', async () => {
    const { user, password } = server.admin
    const cookieAt = async (headers: Record<string, string>): Promise<string> =>
      String((await trySignIn(server.url, user, password, headers)).headers['set-cookie']).split(';')[0] ?? ''
    const statusAt = async (headers: Record<string, string>): Promise<number> =>
      (await send(server.url, { method: 'GET', path: '/console/', headers, body: Buffer.alloc(0) })).status
    const hosts = [
      { Host: 'pawl.example:8081' },
      { Host: '[::1]:9081' },
      { Host: '[::1]' },
      { Host: 'pawl.example:8443', 'X-Forwarded-Proto': 'https' },
    ]
    const cookies = await Promise.all(hosts.map(cookieAt))
    expect(cookies.map((cookie) => cookie.split('=')[0])).toEqual([
      'pawl_console_8081',
      'pawl_console_9081',
      'pawl_console',
      '__Host-pawl_console_8443',
    ])
    // A browser sends all of them everywhere.
    const all = await Promise.all(hosts.map((host) => statusAt({ ...host, Cookie: cookies.join('; ') })))
    expect(all).toEqual([200, 200, 200, 200])
    const [first = '', ...others] = cookies
    expect(await statusAt({ Host: 'pawl.example:8081', Cookie: others.join('; ') })).toBe(303)
    // What was set without TLS is no session with it.
    expect(await statusAt({ Host: 'pawl.example:8081', 'X-Forwarded-Proto': 'https', Cookie: first })).toBe(303)
  })

  test('is for administrators and those who read everything, and refuses others as wrong or as back ends', async () => {
    const reader = await newCredential('reader', 'read-only')
    expect((await trySignIn(server.url, 'reader', reader)).status).toBe(303)
    for (const [name, role] of [
      ['core', 'integration'],
      ['inside', 'internal'],
      ['own-reader', 'read-only'],
    ] as const) {
      const password = await newCredential(name, role, 'test-app')
      const reply = await trySignIn(server.url, name, password)
      expect([reply.status, reply.headers['set-cookie']]).toEqual([403, undefined])
    }
    const wrong = await trySignIn(server.url, 'reader', 'not the password')
    const unknown = await trySignIn(server.url, 'nobody', 'not the password')
    expect([wrong.status, unknown.status, wrong.headers['set-cookie']]).toEqual([401, 401, undefined])
    // A browser must not ask for Basic credentials of its own.
    expect(wrong.headers['www-authenticate']).toBeUndefined()
  })

  test('refuses a user name that the database cannot hold as a wrong one', async () => {
    const reply = await trySignIn(server.url, 'ad\0min', server.admin.password)
    expect([reply.status, reply.headers['set-cookie']]).toEqual([401, undefined])
  })

  test('waits like HTTP Basic after too many wrong passwords, and both count together', async () => {
    const password = await newCredential('guessed', 'admin')
    for (let i = 0; i < 5; i += 1) await trySignIn(server.url, 'guessed', `wrong ${i}`)
    const reply = await trySignIn(server.url, 'guessed', password)
    expect([reply.status, Number(reply.headers['retry-after']) > 0]).toEqual([429, true])
    expect((await createBank(server.url, `guessed:${password}`).call('GET', '/admin/users')).status).toBe(429)
  })

  test('gives a session that is good from the addresses of the credential alone', async () => {
    const password = await newCredential('bound', 'admin')
    const session = await startSession(server.url, 'bound', password)
    const from = async (address: string, own = session): Promise<number> =>
      (await own.get('/', { 'X-Forwarded-For': address })).status
    expect([await from('10.1.2.3'), await from('192.0.2.1')]).toEqual([200, 200])
    const allowedAddresses = ['10.0.0.0/8', '127.0.0.1']
    expectOk(await bank.call('PUT', '/admin/users/bound/allowed-addresses', { allowedAddresses }))
    const bound = await startSession(server.url, 'bound', password)
    expect([await from('10.1.2.3'), await from('10.1.2.3', bound), await from('192.0.2.1', bound)]).toEqual([303, 200, 303])
  })

  test('stands in the audit log of administrators', async () => {
    await signIn()
    const { json } = expectOk(await bank.call('GET', '/admin/audit?action=console%20sign-in&limit=1'))
    expect(member(json, 'items', '0')).toMatchObject({ username: 'admin', target: 'session of admin' })
  })
})

describe('a session ends', () => {
  test('after a quarter of an hour without use; a page that asks for itself is no use, nor is HEAD; the preview of a form is', async () => {
    const [used, typed, polled, watched] = [await signIn(), await signIn(), await signIn(), await signIn()]
    const look = () =>
      send(server.url, {
        method: 'HEAD',
        path: '/console/',
        headers: { Cookie: `${watched.cookie}=${watched.token}` },
        body: Buffer.alloc(0),
      })
    expect((await look()).status).toBe(200)
    for (let minute = 0; minute < 20; minute += 5) {
      server.clock.advance(5 * MINUTE)
      if (minute < 15) expect((await used.get('/')).status).toBe(200)
      expect((await typed.post('/check-template', { action: 'save' }, { 'HX-Request': 'true' })).status).toBe(200)
      await polled.get('/', { 'HX-Request': 'true' })
      await look()
    }
    expect([await isOpen(used), await isOpen(typed)]).toEqual([true, true])
    expect(await isOpen(polled)).toBe(false)
    expect(await isOpen(watched)).toBe(false)
    const reply = await polled.get('/operations', { 'HX-Request': 'true' })
    expect([reply.status, leadsTo('/console/operations', reply.headers['hx-redirect'])]).toEqual([
      200,
      '/console/sign-in?next=%2Fconsole%2Foperations',
    ])
  })

  test('after eight hours, whatever is done', async () => {
    const session = await signIn()
    for (let minute = 0; minute < 8 * 60 - 10; minute += 10) {
      server.clock.advance(10 * MINUTE)
      expect(await isOpen(session)).toBe(true)
    }
    server.clock.advance(10 * MINUTE)
    expect(await isOpen(session)).toBe(false)
  })

  test.each([
    ['ninety seconds', 1.5 * MINUTE],
    ['an hour', 60 * MINUTE],
    ['a day', 1_440 * MINUTE],
  ])('when the clock is set back by %s, because nobody knows for how long it lay idle', async (_, ms) => {
    const session = await signIn()
    server.clock.advance(-ms)
    try {
      expect(await isOpen(session)).toBe(false)
      const next = await signIn()
      expect(await isOpen(next)).toBe(true)
      const seen = (await listLiveSessions(server.context)).map(({ lastSeenAt }) => lastSeenAt.getTime())
      expect(Math.max(...seen)).toBeLessThanOrEqual(server.context.platform.now())
      server.clock.advance(15 * MINUTE)
      expect(await isOpen(next)).toBe(false)
      server.clock.advance(-15 * MINUTE)
    } finally {
      server.clock.advance(ms)
    }
  })

  test('not when the clock is set back by seconds, as clocks are', async () => {
    const session = await signIn()
    server.clock.advance(-30_000)
    expect(await isOpen(session)).toBe(true)
    server.clock.advance(30_000)
    expect(await isOpen(session)).toBe(true)
  })

  test('with a new password, and with the credential', async () => {
    const first = await startSession(server.url, 'changing', await newCredential('changing', 'admin'))
    const { json } = expectOk(await bank.call('POST', '/admin/users/changing/password', { keepPreviousSeconds: 600 }))
    expect(await isOpen(first)).toBe(false)
    const second = await startSession(server.url, 'changing', String(member(json, 'password')))
    expectOk(await bank.call('DELETE', '/admin/users/changing'))
    expect(await isOpen(second)).toBe(false)
  })

  test('that began with the previous password when this password ends, and not later', async () => {
    const previous = await newCredential('rotating', 'admin')
    const reset = { keepPreviousSeconds: 600 }
    const { json } = expectOk(await bank.call('POST', '/admin/users/rotating/password', reset))
    const [late, early] = [
      await startSession(server.url, 'rotating', previous),
      await startSession(server.url, 'rotating', String(member(json, 'password'))),
    ]
    server.clock.advance(9 * MINUTE)
    expect([await isOpen(late), await isOpen(early)]).toEqual([true, true])
    server.clock.advance(MINUTE)
    expect([await isOpen(late), await isOpen(early)]).toEqual([false, true])
    expect((await trySignIn(server.url, 'rotating', previous)).status).toBe(401)
  })

  test('before it begins when the password was replaced while it was checked', async () => {
    const password = await newCredential('hurried', 'admin')
    // This process has just found it right, and remembers that for some seconds; another one replaces it.
    expectOk(await createBank(server.url, `hurried:${password}`).call('GET', '/admin/users'))
    const { credentials, db } = server.context
    const prepared = await credentials.prepare(undefined, 'hurried')
    await inTransaction(db, (tx) => credentials.reset(tx, 'hurried', prepared, 0))
    expect((await createBank(server.url, `hurried:${password}`).call('GET', '/admin/users')).status).toBe(200)
    expect((await trySignIn(server.url, 'hurried', password)).status).toBe(401)
    expect((await trySignIn(server.url, 'hurried', prepared.password)).status).toBe(303)
  })

  test('when its credential is disabled or runs out', async () => {
    const password = await newCredential('short', 'admin')
    const session = await startSession(server.url, 'short', password)
    await sql`update credential set is_disabled = true where username = 'short'`.execute(server.context.db)
    expect(await isOpen(session)).toBe(false)
    const expiresAt = server.context.platform.now() + 5 * MINUTE
    const made = await bank.call('POST', '/admin/users', { username: 'ending', role: 'admin', expiresAt })
    const ending = await startSession(server.url, 'ending', String(member(expectOk(made).json, 'password')))
    expect(await isOpen(ending)).toBe(true)
    server.clock.advance(6 * MINUTE)
    expect(await isOpen(ending)).toBe(false)
  })

  test('once: to end one that is none does nothing', async () => {
    const session = await signIn()
    for (const sessionId of ['', 'x', 'a\0b', session.token])
      expect([sessionId, (await session.post('/credentials', { action: 'end', sessionId })).status]).toEqual([sessionId, 303])
    expect(await isOpen(session)).toBe(true)
  })

  test('by signing out, for whoever has copied the cookie too', async () => {
    const session = await signIn()
    const reply = await session.post('/sign-out', {})
    expect(reply.status).toBe(303)
    expect(String(reply.headers['set-cookie'])).toMatch(/^pawl_console_\d+=; HttpOnly; SameSite=Strict; Max-Age=0$/)
    expect(await isOpen(session)).toBe(false)
  })
})

describe('what changes something', () => {
  const create = { action: 'create', newUserId: 'mallory' }
  const registered = async (): Promise<unknown> =>
    member((await bank.call('GET', '/registration?userId=mallory')).json, 'registration')

  test.each([
    ['no token of the form', { csrf: '' }, {}],
    ['the token of another session', 'other', {}],
    ['a page of another site, by its origin', {}, { Origin: 'https://evil.example' }],
    ['a page of another site, as the browser says', {}, { 'Sec-Fetch-Site': 'cross-site' }],
  ] as const)('does nothing with %s', async (_name, form, headers) => {
    const session = await signIn()
    const given = form === 'other' ? { csrf: (await signIn()).formToken } : form
    const reply = await session.post('/registrations/new', { ...create, ...given }, headers)
    expect(reply.status).toBe(400)
    expect(await registered()).toBe('NONE')
  })

  test('comes as a form and names what is to be done', async () => {
    const session = await signIn()
    expect((await session.post('/registrations/new', { action: 'nothing' })).status).toBe(400)
    expect((await session.post('/registrations/new', create, { 'Content-Type': 'text/plain' })).status).toBe(400)
    expect(await registered()).toBe('NONE')
    const reply = await session.post('/registrations/new', create)
    expect([reply.status, await registered()]).toEqual([303, 'CREATED'])
  })

  test('has as many members as a page can have, and the sign-in as few as it needs', async () => {
    const session = await signIn()
    const form = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, 'x']))
    const replies = [
      await session.post('/registrations/new', { action: 'create', newUserId: 'many', ...form(4_997) }),
      await session.post('/registrations/new', { action: 'create', newUserId: 'more', ...form(4_998) }),
      await session.post('/sign-out', form(16)),
      await postForm(server.url, '/sign-in', { username: 'admin', password: 'wrong', ...form(15) }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([303, 400, 400, 400])
    for (const body of ['&'.repeat(16_384), '%ff', 'a=b&'.repeat(4_096)]) {
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
      const reply = await send(server.url, { method: 'POST', path: '/console/sign-in', headers, body: Buffer.from(body) })
      expect([reply.status, reply.text.includes('<!doctype html>')]).toEqual([body === '%ff' ? 401 : 400, true])
    }
    expect(await isOpen(session)).toBe(true)
  })

  test('is asked for before its form: without a session no form is read, whatever is in it', async () => {
    for (const path of ['/registrations/new', '/check-template', '/sign-out', '/audit']) {
      for (const type of ['application/x-www-form-urlencoded', 'application/json', 'multipart/form-data; boundary=x']) {
        const headers = { 'Content-Type': type, Cookie: `pawl_console_1=${'a'.repeat(43)}` }
        const reply = await send(server.url, {
          method: 'POST',
          path: `/console${path}`,
          headers,
          body: Buffer.from('a=b&'.repeat(62_000)),
        })
        expect([path, type, reply.status]).toEqual([path, type, path === '/sign-out' ? 400 : 303])
      }
    }
  })

  test('is lost without a session, and the sign-in says so, and leads back to the page', async () => {
    const headers = { Cookie: `pawl_console_1=${'a'.repeat(43)}` }
    const sent = await postForm(server.url, '/registrations/new?app=test-app', create, headers)
    const typed = await postForm(server.url, '/check-template', { action: 'save' }, { ...headers, 'HX-Request': 'true' })
    const places = [
      leadsTo('/console/registrations/new', sent.headers['location']),
      leadsTo('/console/check-template', typed.headers['hx-redirect']),
    ]
    for (const path of places) {
      const shown = await send(server.url, { method: 'GET', path, headers, body: Buffer.alloc(0) })
      expect([path, /role="alert">[^<]*nothing was changed/.test(shown.text)]).toEqual([path, true])
    }
    expect(new URL(places[0] ?? '', server.url).searchParams.get('next')).toBe('/console/registrations/new?app=test-app')
    // Nothing is lost with a page that was only looked at.
    const looked = await send(server.url, { method: 'GET', path: '/console/operations', headers, body: Buffer.alloc(0) })
    const path = leadsTo('/console/operations', looked.headers['location'])
    expect((await send(server.url, { method: 'GET', path, headers, body: Buffer.alloc(0) })).text).not.toContain('role="alert"')
  })

  test('is refused to who may only read, by the API itself', async () => {
    const session = await startSession(server.url, 'looking', await newCredential('looking', 'read-only'))
    const reply = await session.post('/registrations/new', { action: 'create', newUserId: 'trudy' })
    expect(reply.status).toBe(403)
    expect(member((await bank.call('GET', '/registration?userId=trudy')).json, 'registration')).toBe('NONE')
  })

  test('names an application that is there', async () => {
    const session = await signIn()
    expect((await session.post('/registrations?app=nothing', create)).status).toBe(404)
  })
})

describe('nobody comes in', () => {
  test('by a row that was written to the database', async () => {
    const session = await signIn()
    const token = randomBytes(32)
    const { db } = server.context
    await sql`
      insert into console_session (session_id, token_hash, username, credential_mac, source, created_at, last_seen_at, expires_at, mac)
      select 'forged', ${createHash('sha256').update(token).digest()}, username, credential_mac, source, created_at, last_seen_at,
        expires_at, mac from console_session order by created_at desc limit 1`.execute(db)
    const forged = await send(server.url, {
      method: 'GET',
      path: '/console/',
      headers: { Cookie: `${session.cookie}=${token.toString('base64url')}` },
      body: Buffer.alloc(0),
    })
    expect([forged.status, await isOpen(session)]).toEqual([303, true])
  })

  test('by a session that was given to another user, or longer life, in the database', async () => {
    const session = await startSession(server.url, 'climber', await newCredential('climber', 'read-only'))
    expect(await isOpen(session)).toBe(true)
    await sql`
      update console_session set username = 'admin', credential_mac = (select mac from credential where username = 'admin')
      where username = 'climber'`.execute(server.context.db)
    expect(await isOpen(session)).toBe(false)
  })

  test('to the API by a ticket that was never given', async () => {
    for (const ticket of ['', 'x', randomBytes(16).toString('base64url')]) {
      expect((await sendJson(server.url, 'GET', '/admin/users', undefined, { 'X-Pawl-Ticket': ticket })).status).toBe(401)
    }
  })

  test('by the database: neither the cookie nor the token of forms is in it', async () => {
    const { token, formToken } = await signIn()
    const { rows } = await sql`select * from console_session`.execute(server.context.db)
    const stored = rows
      .flatMap((row) => Object.values(row as object))
      .map((value) => (Buffer.isBuffer(value) ? value.toString('base64url') : String(value)))
    expect(stored.length).toBeGreaterThan(0)
    expect(stored.filter((text) => text.includes(token) || text.includes(formToken))).toEqual([])
  })
})

describe('answers', () => {
  test('allow nothing from elsewhere and nothing inline, and no cache keeps them', async () => {
    const session = await signIn()
    for (const path of ['/', '/sign-in', '/nothing', '/registrations']) {
      const { headers, text } = await session.get(path)
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; .*form-action 'self'; frame-ancestors 'none'$/)
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-frame-options': 'DENY', 'referrer-policy': 'same-origin' })
      expect(text).not.toMatch(/<script>|<style>| style=|(?:src|href)="(?:https?:)?\/\//)
    }
  })

  test('name assets by their content, which may be kept for ever', async () => {
    const { text } = await (await signIn()).get('/')
    const addresses = [...text.matchAll(/(?:href|src)="(\.\/assets\/[^"]+)"/g)].map(([, address = '']) => address)
    expect(addresses).toHaveLength(4)
    for (const path of addresses.map((address) => leadsTo('/console/', address))) {
      const { status, headers } = await send(server.url, { method: 'GET', path, headers: {}, body: Buffer.alloc(0) })
      expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
    }
    expect((await sendJson(server.url, 'GET', '/console/assets/style.css')).status).toBe(404)
  })

  test('say who asks which page there is none of, without an error of the server', async () => {
    const session = await signIn()
    for (const path of ['/nothing', '/registrations/unknown', '/operations/3f2504e0-4f89-41d3-9a0c-0305e82c3301']) {
      const { status, text } = await session.get(path)
      expect([path, status >= 400 && status < 500]).toEqual([path, true])
      expect(text).toContain('<!doctype html>')
    }
  })
})

test('PAWL_CONSOLE=false leaves it away', async () => {
  const without = await startTestServer({ env: { PAWL_CONSOLE: 'false' } })
  expect((await sendJson(without.url, 'GET', '/console/')).status).toBe(404)
  expect((await sendJson(without.url, 'GET', '/console/sign-in')).status).toBe(404)
  await without.close()
})
