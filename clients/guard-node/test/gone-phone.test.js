// What a phone does that goes away while it is refused.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import express from 'express'
import fastify from 'fastify'
import { createExpressGuard } from '../dist/express.js'
import { pawlGuard } from '../dist/fastify.js'
import { json, startFakePawl } from './fake-pawl.js'

/** A pawl that refuses every code once `refuse` was called; `asked` ends when it was asked. */
async function startSlowPawl() {
  const asked = Promise.withResolvers()
  const refused = Promise.withResolvers()
  const pawl = await startFakePawl(async (_call, response) => {
    asked.resolve()
    await refused.promise
    json(response, 200, { isValid: false, reason: 'CODE_WRONG' })
  })
  closing.push(pawl.close)
  return { ...pawl, asked: asked.promise, refuse: refused.resolve }
}

const closing = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

test('Fastify: a phone that goes away before it is refused gets nothing done, also where hooks of the bank are slow', async () => {
  const pawl = await startSlowPawl()
  const app = fastify({ forceCloseConnections: true })
  closing.push(() => app.close())
  await app.register(pawlGuard, { url: pawl.url, username: 'web', password: 'secret' })
  // As those of sessions and compression.
  app.addHook('onSend', async (_request, _reply, payload) => {
    await wait(30)
    return payload
  })
  let served = 0
  const serve = async () => {
    served += 1
    return {}
  }
  app.delete('/cards/:id', app.requireCode({ resourceId: '/cards' }), serve)
  const connections = []
  app.server.on('connection', (connection) => connections.push(connection))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect(app.server.address().port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write('DELETE /cards/1 HTTP/1.1\r\nHost: x\r\nX-PowerAuth-Authorization: PowerAuth a="b"\r\n\r\n')
  await pawl.asked
  const [accepted] = connections
  socket.destroy()
  await once(accepted, 'close')
  pawl.refuse()
  await wait(400)
  assert.equal(pawl.calls.length, 1)
  assert.equal(served, 0)
})

test('Express: a request that was answered meanwhile is no error of the application', async () => {
  const pawl = await startSlowPawl()
  const app = express()
  const errors = []
  // As connect-timeout does.
  app.use((_request, response, next) => {
    setTimeout(() => response.status(503).end('late'), 30)
    next()
  })
  const guard = createExpressGuard({ url: pawl.url, username: 'web', password: 'secret' })
  app.get('/cards', guard.requireCode({ resourceId: '/cards' }), (_request, response) => response.end('served'))
  app.use((error, _request, _response, _next) => errors.push(error.message))
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const reply = await fetch(`http://127.0.0.1:${server.address().port}/cards`, {
    headers: { 'X-PowerAuth-Authorization': 'PowerAuth a="b"' },
  })
  assert.deepEqual([reply.status, await reply.text()], [503, 'late'])
  pawl.refuse()
  await wait(300)
  assert.deepEqual(errors, [])
})
