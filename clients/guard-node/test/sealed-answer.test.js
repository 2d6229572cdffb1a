// What of an answer to an encrypted request may be sent as it is.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import express from 'express'
import fastify from 'fastify'
import { createExpressGuard } from '../dist/express.js'
import { pawlGuard } from '../dist/fastify.js'
import { json, startFakePawl, VALID } from './fake-pawl.js'

const closing = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function startPawl() {
  const opened = { ...VALID, isOpened: true, plaintext: 'e30=', sealTicket: 'ticket', isReplayProtected: true }
  const pawl = await startFakePawl((call, response) =>
    json(response, 200, call.path === '/encryption/open' ? opened : { encryptedData: 'sealed' }),
  )
  closing.push(pawl.close)
  return { url: pawl.url, username: 'web', password: 'secret' }
}

const ask = (port, path) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'x-powerauth-encryption': 'PowerAuth version="3.3"', 'content-type': 'application/json' },
    body: '{"encryptedData":"x","mac":"y"}',
  })

test('Express: what a handler wrote before it failed is not sent with the error', async () => {
  const guard = createExpressGuard(await startPawl())
  const app = express()
  app.post('/throws', guard.encrypted(), (_request, response) => {
    response.write('{"secret":"the balance')
    throw new Error('the rest is missing')
  })
  app.post('/ends', guard.encrypted(), (_request, response) => {
    response.write('{"secret":"the balance')
    response.status(500).end('{"no":"rest"}')
  })
  app.use((_error, _request, response, _next) => response.status(500).json({ no: 'rest' }))
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  for (const path of ['/throws', '/ends']) {
    const reply = await ask(server.address().port, path)
    assert.deepEqual([path, reply.status, await reply.text()], [path, 500, '{"no":"rest"}'])
  }
})

test('Fastify: the hash of an answer that is sealed is not sent', async () => {
  const app = fastify({ forceCloseConnections: true })
  closing.push(() => app.close())
  // As @fastify/etag does.
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('etag', `"hash of ${payload.length}"`)
    return payload
  })
  await app.register(pawlGuard, await startPawl())
  app.post('/statement', app.encrypted(), async () => ({ secret: 'the balance' }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const reply = await ask(app.server.address().port, '/statement')
  assert.deepEqual([reply.status, reply.headers.get('etag'), await reply.json()], [200, null, { encryptedData: 'sealed' }])
})
