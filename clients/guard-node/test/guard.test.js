import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import fastify from 'fastify'
import { createExpressGuard } from '../dist/express.js'
import { pawlGuard } from '../dist/fastify.js'
import { createGuard } from '../dist/index.js'
import { BANKS, startCarelessBank } from './banks.js'
import { json, startFakePawl, VALID } from './fake-pawl.js'

const closing = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A bank before a pawl that behaves so. */
async function start(startBank, behave, more = {}) {
  const pawl = await startFakePawl(behave)
  closing.push(pawl.close)
  const refusals = []
  const onRefusal = ({ status, reason }) => refusals.push([status, reason])
  const bank = await startBank({ url: pawl.url, username: 'web', password: 'secret', timeoutMs: 60_000, onRefusal, ...more })
  closing.push(bank.close)
  return { pawl, bank, refusals }
}

const CODE = { 'x-powerauth-authorization': 'PowerAuth pa_activation_id="a", pa_nonce="n"' }
const JSON_TYPE = { 'content-type': 'application/json' }
const post = (url, body, headers = {}) => fetch(url, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body })
/** The status of the answer to a signed GET whose target stands on the wire as it is: fetch would leave out what is behind a `#`. */
const askRaw = (url, target) =>
  new Promise((resolve, reject) => {
    const { port } = new URL(url)
    get({ host: '127.0.0.1', port, path: target, headers: CODE, agent: false }, (reply) => resolve(reply.resume().statusCode)).on(
      'error',
      reject,
    )
  })
const REFUSED = '{"status":"ERROR","responseObject":{"code":"ERR_AUTHENTICATION","message":"POWER_AUTH_SIGNATURE_INVALID"}}'
const AWAY = '{"status":"ERROR","responseObject":{"code":"ERROR_GENERIC","message":"POWER_AUTH_UNAVAILABLE"}}'
const valid = ({ body: { method } }, response) => json(response, 200, { ...VALID, covered: method === 'GET' ? 'QUERY' : 'BODY' })

test('a resource id that no code can stand for is refused where the route is set up', async () => {
  const options = { url: 'http://127.0.0.1:1', username: 'web', password: 'secret' }
  const app = fastify()
  await app.register(pawlGuard, options)
  const guard = createExpressGuard(options)
  for (const resourceId of [
    '/pa/signature/validate',
    '/operation/authorize',
    '/api/x',
    '',
    'a\nb',
    'x'.repeat(1_025),
    7,
    undefined,
  ])
    for (const { requireCode, encrypted } of [app, guard]) {
      assert.throws(() => requireCode({ resourceId }), /^TypeError: the resource id .* must not begin with \/pa\/, /)
      assert.throws(() => encrypted({ code: { resourceId } }), TypeError)
    }
  for (const resourceId of ['/pay', '/operations', 'pa/', () => '/pa/'])
    for (const { requireCode } of [app, guard]) assert.ok(requireCode({ resourceId }))
  await app.close()
})

for (const [name, startBank] of Object.entries(BANKS)) {
  describe(name, () => {
    test('a signed request: pawl gets the bytes as they came, the handler who sent it', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const body = '{ "amount" :  1.10,\n"to":"ž" }'
      const reply = await post(`${bank.url}/transfer?a=1%26b=2&c=+`, body, { ...CODE, 'user-agent': 'app/1' })
      assert.equal(reply.status, 200)
      assert.deepEqual(await reply.json(), { ok: true, secret: 'the balance' })
      const [call] = pawl.calls
      assert.equal(call.path, '/verification/code')
      assert.deepEqual(call.body, {
        authorization: CODE['x-powerauth-authorization'],
        method: 'POST',
        resourceId: '/transfer',
        body: Buffer.from(body).toString('base64'),
        query: 'a=1%26b=2&c=+',
        client: { address: '127.0.0.1', userAgent: 'app/1' },
      })
      assert.equal(call.headers.authorization, `Basic ${Buffer.from('web:secret').toString('base64')}`)
      const [{ pawl: who, body: parsed }] = bank.seen
      assert.deepEqual(parsed, { amount: 1.1, to: 'ž' })
      assert.deepEqual([who.userId, who.activationId, who.factors], ['alice', VALID.activationId, ['POSSESSION_KNOWLEDGE']])
    })

    test('the resource id follows from the path, decoded once, and not from the query', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const headers = { 'X-Svc-Authorization': 'PowerAuth x="y"' }
      const reply = await fetch(`${bank.url}/accounts/a%2520b?id=other`, { headers })
      assert.equal(reply.status, 200)
      const { resourceId, method, query, factors, body } = pawl.calls[0].body
      assert.deepEqual(
        { resourceId, method, query, factors, body },
        { resourceId: '/accounts/a%20b', method: 'GET', query: 'id=other', factors: ['POSSESSION'], body: undefined },
      )
    })

    test('a slash within a parameter of the path is refused: it would make the resource id of another route', async () => {
      const { pawl, bank, refusals } = await start(startBank, valid)
      const reply = await fetch(`${bank.url}/accounts/4711%2Flimit`, { headers: CODE })
      assert.deepEqual([reply.status, await reply.text()], [401, REFUSED])
      assert.deepEqual([pawl.calls, bank.seen, refusals], [[], [], [[401, 'PATH_AMBIGUOUS']]])
    })

    test('a wildcard that holds several parts of the path is refused: written as one text, it would be a resource id of others', async () => {
      const { pawl, bank, refusals } = await start(startBank, valid)
      // A list in Express, a text with a slash in Fastify. `a,b` is what a list of two would become.
      for (const path of ['a/b', 'a/', 'a,b/c', 'a%2Fb']) {
        const reply = await fetch(`${bank.url}/files/${path}`, { headers: CODE })
        assert.deepEqual([path, reply.status, await reply.text()], [path, 401, REFUSED])
      }
      assert.deepEqual([pawl.calls, bank.seen], [[], []])
      assert.deepEqual(refusals, Array(4).fill([401, 'PATH_AMBIGUOUS']))
    })

    test('a log that fails lets nothing through, and the phone has its answer', async () => {
      const { bank } = await start(startBank, (_call, response) => json(response, 200, { isValid: false, reason: 'STATE' }), {
        onRefusal: () => {
          throw new Error('the log is full')
        },
      })
      const reply = await post(`${bank.url}/transfer`, '{}', CODE)
      assert.deepEqual([reply.status, await reply.text(), bank.seen], [401, REFUSED, []])
    })

    test('a path that no code can stand for is a wrong request, and pawl is not asked', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const paths = [
        ['GET', '/accounts/%00'],
        ['GET', '/accounts/a%0Ab'],
        ['HEAD', '/accounts/1'],
        ['GET', '/any/pa/signature'],
        ['GET', '/any/operation/authorize'],
        ['GET', '/any/api/token'],
      ]
      for (const [method, path] of paths) {
        const reply = await fetch(`${bank.url}${path}`, { method, headers: CODE })
        assert.deepEqual([method, path, reply.status], [method, path, 401])
      }
      assert.deepEqual([pawl.calls, bank.seen], [[], []])
    })

    for (const request of [{ method: 'GET' }, { method: 'DELETE', body: 'to=17' }])
      test(`the query of a ${request.method} whose code covers a body is not served: it may be of anybody`, async () => {
        const { bank, refusals } = await start(startBank, (_call, response) => json(response, 200, { ...VALID, covered: 'BODY' }))
        const headers = { ...CODE, 'content-type': 'text/plain' }
        assert.equal((await fetch(`${bank.url}/accounts/1?to=thief`, { ...request, headers })).status, 401)
        assert.deepEqual([bank.seen, refusals], [[], [[401, 'QUERY_NOT_COVERED']]])
        assert.equal((await fetch(`${bank.url}/accounts/1`, { ...request, headers })).status, 200)
      })

    test('a DELETE without a body is served with its query, which no code of 3.x covers', async () => {
      const { bank } = await start(startBank, (_call, response) => json(response, 200, { ...VALID, covered: 'BODY' }))
      assert.equal((await fetch(`${bank.url}/accounts/1?why=moved`, { method: 'DELETE', headers: CODE })).status, 200)
    })

    test('a query that the handler would read otherwise than the code covers it is refused, and pawl is not asked', async () => {
      const { pawl, bank, refusals } = await start(startBank, valid)
      // For pawl they are `to=friend`, `to=friend&amount=1` or `to=f50%`. The handler would read `to=thief`, fewer parts, or a value with its encoding.
      const targets = [
        '/accounts/1#to=thief&x=?to=friend',
        '/accounts/1?to=friend&#&amount=1',
        `/accounts/1?${'x&'.repeat(1_000)}to=friend`,
        '/accounts/1?to=%6650%',
      ]
      for (const target of targets) assert.equal(await askRaw(bank.url, target), 401)
      assert.deepEqual([pawl.calls, bank.seen], [[], []])
      assert.deepEqual(refusals, [...Array(2).fill([401, 'TARGET']), [401, 'QUERY_TOO_LONG'], [401, 'QUERY_MALFORMED']])
      assert.equal(await askRaw(bank.url, `/accounts/1?${'x&'.repeat(999)}to=friend`), 200)
      assert.equal(bank.seen[0].query.to, 'friend')
      // Bytes that are no UTF-8 are encoded, and a code covers them.
      assert.equal(await askRaw(bank.url, '/accounts/1?bad=%FF%C3%28'), 200)
    })

    test('every bad verdict is one answer to the phone; the log learns why', async () => {
      for (const reason of ['CODE_WRONG', 'STATE', 'UNKNOWN', 'FLAGS']) {
        const { bank, refusals } = await start(startBank, (_call, response) => json(response, 200, { isValid: false, reason }))
        const reply = await post(`${bank.url}/transfer`, '{}', CODE)
        assert.deepEqual([reply.status, await reply.text()], [401, REFUSED])
        assert.deepEqual(bank.seen, [])
        assert.deepEqual(refusals, [[401, reason]])
      }
    })

    test('a request without a header, or with two that differ, does not get to pawl', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const twice = { 'x-powerauth-authorization': 'PowerAuth a="1"', 'x-svc-authorization': 'PowerAuth a="2"' }
      for (const headers of [{}, twice, { 'x-powerauth-authorization': `PowerAuth ${'x'.repeat(5_000)}` }]) {
        const reply = await post(`${bank.url}/transfer`, '{}', headers)
        assert.deepEqual([reply.status, await reply.text()], [401, REFUSED])
      }
      const same = { 'x-powerauth-authorization': 'PowerAuth a="1"', 'x-svc-authorization': 'PowerAuth a="1"' }
      assert.equal((await post(`${bank.url}/transfer`, '{}', same)).status, 200)
      assert.equal(pawl.calls.length, 1)
    })

    test('a token', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const reply = await fetch(`${bank.url}/balance`, { headers: { 'X-PowerAuth-Token': 'PowerAuth token_id="t"' } })
      assert.equal(reply.status, 200)
      assert.equal(pawl.calls[0].path, '/verification/token')
      assert.deepEqual(pawl.calls[0].body.isRepeatable, true)
      assert.equal((await fetch(`${bank.url}/balance`)).status, 401)
    })

    test('a body that is too large is refused on a connection that lives', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const reply = await post(`${bank.url}/transfer`, JSON.stringify({ x: 'x'.repeat(200_000) }), CODE)
      assert.equal(reply.status, 413)
      assert.equal((await post(`${bank.url}/transfer`, '{}', CODE)).status, 200)
      assert.equal(pawl.calls.length, 1)
    })

    test('a route without a guard is as it was', async () => {
      const { pawl, bank } = await start(startBank, valid)
      assert.equal((await post(`${bank.url}/open`, '{"a":1}')).status, 200)
      assert.deepEqual(bank.seen, [{ pawl: undefined, body: { a: 1 }, query: bank.seen[0].query }])
      assert.deepEqual(pawl.calls, [])
    })

    test('an empty header is none, and pawl is not asked', async () => {
      const { pawl, bank, refusals } = await start(startBank, valid)
      const replies = [
        await post(`${bank.url}/transfer`, '{}', { 'x-powerauth-authorization': '' }),
        await fetch(`${bank.url}/balance`, { headers: { 'X-PowerAuth-Token': '' } }),
        await post(`${bank.url}/statement`, '{"encryptedData":"x","mac":"y"}', { 'x-powerauth-encryption': '' }),
      ]
      for (const reply of replies) assert.deepEqual([reply.status, await reply.text()], [401, REFUSED])
      assert.deepEqual([pawl.calls, bank.seen, refusals], [[], [], Array(3).fill([401, 'HEADER_MISSING'])])
    })

    const failures = {
      'answers 500': (_call, response) => json(response, 500, { status: 'ERROR' }),
      'answers 503': (_call, response) => json(response, 503, { status: 'ERROR' }),
      'never answers': () => undefined,
      'answers half of it': (_call, response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"isValid":true,"userId":"ali')
      },
      'breaks the connection off': (_call, response) => response.socket.destroy(),
      'breaks it off in the middle': (_call, response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"isValid":true')
        setTimeout(() => response.socket.destroy(), 20)
      },
      'answers no JSON': (_call, response) => response.end('<html>'),
      'answers true': (_call, response) => response.end('true'),
      'answers a list': (_call, response) => response.end('[{"isValid":true}]'),
      'is valid for nobody': (_call, response) => json(response, 200, { isValid: true, protocolVersion: '3.3' }),
      'leads elsewhere': (_call, response) => response.writeHead(302, { location: 'https://example.com/' }).end(),
      'does not know the credential': (_call, response) => json(response, 401, { code: 'ERROR_UNAUTHORIZED' }),
      'refuses the role': (_call, response) => json(response, 403, { code: 'ERROR_FORBIDDEN' }),
      'refuses the request': (_call, response) => json(response, 400, { code: 'ERROR_REQUEST' }),
    }
    for (const [what, behave] of Object.entries(failures)) {
      test(`when pawl ${what}, the phone is told 503 and no handler runs`, async () => {
        const silent = what === 'never answers' || what === 'answers half of it'
        const { bank, refusals } = await start(startBank, behave, silent ? { timeoutMs: 400 } : {})
        const replies = [
          await post(`${bank.url}/transfer`, '{}', CODE),
          await fetch(`${bank.url}/balance`, { headers: { 'X-PowerAuth-Token': 'PowerAuth t="t"' } }),
        ]
        for (const reply of replies) assert.deepEqual([reply.status, await reply.text()], [503, AWAY])
        const encrypted = await post(`${bank.url}/statement`, '{}', { 'x-powerauth-encryption': 'PowerAuth v="3.3"' })
        // Of an envelope it says neither that it opened nor that it did not.
        assert.ok(encrypted.status >= 400)
        assert.deepEqual(bank.seen, [])
        assert.equal(refusals.length, 3)
      })
    }

    test('when pawl is gone, the phone is told 503 and no handler runs', async () => {
      const { pawl, bank } = await start(startBank, valid)
      await pawl.close()
      closing.shift()
      const reply = await post(`${bank.url}/transfer`, '{}', CODE)
      assert.deepEqual([reply.status, await reply.text()], [503, AWAY])
      assert.deepEqual(bank.seen, [])
    })

    test('a lost answer is asked for once more, with the same key; each request has a key of its own', async () => {
      const { pawl, bank } = await start(startBank, (_call, response, count) =>
        count % 2 === 1 ? response.socket.destroy() : json(response, 200, VALID),
      )
      assert.equal(
        (await post(`${bank.url}/transfer`, '{}', { ...CODE, 'idempotency-key': 'of the phone, who may not' })).status,
        200,
      )
      assert.equal((await post(`${bank.url}/transfer`, '{}', CODE)).status, 200)
      const keys = pawl.calls.map(({ headers }) => headers['idempotency-key'])
      assert.equal(keys.length, 4)
      assert.deepEqual([keys[0] === keys[1], keys[2] === keys[3], keys[0] === keys[2]], [true, true, false])
      assert.match(keys[0], /^[\da-f-]{36}$/)
    })

    const opened = (more = {}) => ({
      isOpened: true,
      plaintext: Buffer.from('{"month":"2026-11"}').toString('base64'),
      sealTicket: 'ticket',
      protocolVersion: '3.3',
      activationId: VALID.activationId,
      userId: 'alice',
      isReplayProtected: true,
      ...more,
    })
    const opens = (answer) => (call, response) =>
      json(response, 200, call.path === '/encryption/open' ? answer : { encryptedData: 'sealed', mac: 'mac' })
    const ENVELOPE = '{"encryptedData":"x","mac":"y"}'
    const ENCRYPTION = { 'x-powerauth-encryption': 'PowerAuth version="3.3"' }

    test('an encrypted request: the handler sees the plaintext, the phone a sealed answer', async () => {
      const { pawl, bank } = await start(startBank, opens(opened()))
      const reply = await post(`${bank.url}/statement`, ENVELOPE, ENCRYPTION)
      assert.deepEqual([reply.status, await reply.json()], [200, { encryptedData: 'sealed', mac: 'mac' }])
      assert.deepEqual(bank.seen[0].body, { month: '2026-11' })
      assert.deepEqual([bank.seen[0].pawl.userId, bank.seen[0].pawl.factors], ['alice', []])
      const [open, seal] = pawl.calls
      assert.deepEqual(open.body, {
        scope: 'ACTIVATION',
        encryption: 'PowerAuth version="3.3"',
        envelope: { encryptedData: 'x', mac: 'y' },
        client: open.body.client,
      })
      assert.equal(seal.path, '/encryption/seal')
      assert.equal(seal.body.sealTicket, 'ticket')
      assert.deepEqual(JSON.parse(Buffer.from(seal.body.plaintext, 'base64')), { ok: true, secret: 'the balance' })
    })

    test('what a handler streams is sealed as well', async () => {
      const { pawl, bank } = await start(startBank, opens(opened()))
      const reply = await post(`${bank.url}/stream`, ENVELOPE, ENCRYPTION)
      assert.deepEqual(await reply.json(), { encryptedData: 'sealed', mac: 'mac' })
      assert.equal(Buffer.from(pawl.calls[1].body.plaintext, 'base64').toString(), '{"secret":"the balance"}')
    })

    test('an error of the handler is sent as it is', async () => {
      const { pawl, bank } = await start(startBank, opens(opened()))
      const reply = await post(`${bank.url}/wrong`, ENVELOPE, ENCRYPTION)
      assert.deepEqual([reply.status, await reply.json()], [409, { no: 'limit reached' }])
      assert.equal(pawl.calls.length, 1)
    })

    test('an answer that cannot be sealed is not sent', async () => {
      const { bank } = await start(startBank, (call, response) =>
        call.path === '/encryption/open' ? json(response, 200, opened()) : json(response, 500, {}),
      )
      const reply = await post(`${bank.url}/statement`, ENVELOPE, ENCRYPTION)
      const text = await reply.text()
      assert.deepEqual([reply.status, text], [503, AWAY])
    })

    test('an envelope that does not open is a 400; a wrong code in a right one a 401; nothing runs', async () => {
      const wrong = await start(startBank, opens({ isOpened: false, reason: 'ENVELOPE' }))
      const reply = await post(`${wrong.bank.url}/statement`, ENVELOPE, ENCRYPTION)
      assert.equal(reply.status, 400)
      assert.equal((await reply.json()).responseObject.code, 'ERR_ENCRYPTION')
      const signed = await start(startBank, opens(opened({ verdict: { isValid: false, reason: 'CODE_WRONG' } })))
      const refused = await post(`${signed.bank.url}/limits`, ENVELOPE, CODE)
      assert.deepEqual([refused.status, await refused.text()], [401, REFUSED])
      const missing = await start(startBank, opens(opened()))
      assert.equal((await post(`${missing.bank.url}/limits`, ENVELOPE, CODE)).status, 401)
      assert.equal((await post(`${missing.bank.url}/statement`, 'no JSON', ENCRYPTION)).status, 400)
      for (const { bank } of [wrong, signed, missing]) assert.deepEqual(bank.seen, [])
    })

    test('an envelope that pawl would not read is refused as one that does not open, and pawl is not asked', async () => {
      const { pawl, bank, refusals } = await start(startBank, opens(opened()))
      const deep = '['.repeat(30_000) + ']'.repeat(30_000)
      const members = [`"a":${deep}`, '"__proto__":{"a":1}', '"a":"\\ud800"', '"\\ud800":"a"', '"a":"\\u0000"', '"a":null']
      for (const member of members) {
        const reply = await post(`${bank.url}/statement`, `{"encryptedData":"x",${member}}`, ENCRYPTION)
        assert.deepEqual([member.slice(0, 20), reply.status], [member.slice(0, 20), 400])
      }
      assert.deepEqual([pawl.calls, bank.seen, refusals.length], [[], [], members.length])
    })

    test('signed and encrypted', async () => {
      const { pawl, bank } = await start(startBank, opens(opened({ verdict: VALID })))
      const reply = await post(`${bank.url}/limits`, ENVELOPE, CODE)
      assert.equal(reply.status, 200)
      assert.deepEqual(pawl.calls[0].body.code, { method: 'POST', resourceId: '/limits' })
      assert.deepEqual(bank.seen[0].pawl.factors, ['POSSESSION_KNOWLEDGE'])
    })

    test('a phone that goes away in the middle of its body leaves the bank as it was', async () => {
      const { pawl, bank } = await start(startBank, valid)
      const socket = connect(Number(new URL(bank.url).port), '127.0.0.1')
      await once(socket, 'connect')
      socket.write(
        'POST /transfer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n' +
          'X-PowerAuth-Authorization: PowerAuth a="b"\r\n\r\n{"a":',
      )
      setTimeout(() => socket.destroy(), 50)
      await once(socket, 'close')
      assert.equal((await post(`${bank.url}/transfer`, '{}', CODE)).status, 200)
      assert.equal(pawl.calls.length, 1)
      assert.equal(bank.seen.length, 1)
    })
  })
}

test('an application that has parsed the body and kept no bytes is refused, whatever the code', async () => {
  const { pawl, bank, refusals } = await start(startCarelessBank, valid)
  const reply = await post(`${bank.url}/transfer`, '{"a":1}', CODE)
  assert.deepEqual([reply.status, await reply.text()], [503, AWAY])
  assert.match(refusals[0][1], /keepRawBody/)
  assert.deepEqual([bank.seen, pawl.calls], [[], []])
})

test('a query that is longer than pawl reads is refused, and pawl is not asked', async () => {
  const guard = createGuard({ url: 'http://127.0.0.1:1', username: 'web', password: 'secret' })
  const incoming = { method: 'POST', headers: CODE, query: 'x'.repeat(16_385), body: Buffer.from('{}'), address: '192.0.2.1' }
  await assert.rejects(guard.checkCode(incoming, { resourceId: '/transfer' }), { status: 401, reason: 'QUERY_TOO_LONG' })
})

test('an application of Fastify whose queries may begin at a semicolon does not start', async () => {
  const app = fastify({ routerOptions: { useSemicolonDelimiter: true } })
  closing.push(() => app.close())
  await assert.rejects(async () => app.register(pawlGuard, { url: 'http://127.0.0.1:1', username: 'web', password: 'secret' }), {
    message: /useSemicolonDelimiter/,
  })
})
