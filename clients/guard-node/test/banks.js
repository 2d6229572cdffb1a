// The same small bank on each framework: what its handlers saw is in `seen`.
import express from 'express'
import fastify from 'fastify'
import { createExpressGuard, keepRawBody } from '../dist/express.js'
import { pawlGuard } from '../dist/fastify.js'

const TRANSFER = { resourceId: '/transfer' }
const FILE = { resourceId: (path) => `/files/${path.path ?? path['*']}`, factors: ['POSSESSION'] }
/** A route whose parameters may make any resource id. */
const ANY = { resourceId: (path) => `/${path.first}/${path.second}`, factors: ['POSSESSION'] }
const ACCOUNT = { resourceId: (path) => `/accounts/${path.id}`, factors: ['POSSESSION'] }

async function startFastify(options) {
  const app = fastify({ forceCloseConnections: true })
  const seen = []
  await app.register(pawlGuard, options)
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  const serve = async (request) => {
    seen.push({ pawl: request.pawl, body: request.body, query: request.query })
    return { ok: true, secret: 'the balance' }
  }
  app.post('/transfer', app.requireCode(TRANSFER), serve)
  app.get('/accounts/:id', app.requireCode(ACCOUNT), serve)
  app.delete('/accounts/:id', app.requireCode(ACCOUNT), serve)
  app.get('/files/*', app.requireCode(FILE), serve)
  app.get('/any/:first/:second', app.requireCode(ANY), serve)
  app.get('/balance', app.requireToken({ isRepeatable: true }), serve)
  app.post('/statement', app.encrypted(), serve)
  app.post('/limits', app.encrypted({ code: { resourceId: '/limits' } }), serve)
  app.post('/wrong', app.encrypted(), async (request, reply) => {
    seen.push({ pawl: request.pawl })
    return reply.code(409).send({ no: 'limit reached' })
  })
  app.post('/stream', app.encrypted(), async (_request, reply) => {
    const { Readable } = await import('node:stream')
    return reply.type('application/json').send(Readable.from(['{"secret":', '"the balance"}']))
  })
  app.post('/open', serve)
  await app.listen({ host: '127.0.0.1', port: 0 })
  return { url: `http://127.0.0.1:${app.server.address().port}`, seen, close: () => app.close() }
}

async function startExpress(options, prepare = () => undefined) {
  const app = express()
  const seen = []
  const guard = createExpressGuard(options)
  prepare(app)
  const serve = (request, response) => {
    seen.push({ pawl: request.pawl, body: request.body, query: request.query })
    response.json({ ok: true, secret: 'the balance' })
  }
  app.post('/transfer', guard.requireCode(TRANSFER), express.json(), serve)
  app.get('/accounts/:id', guard.requireCode(ACCOUNT), serve)
  app.delete('/accounts/:id', guard.requireCode(ACCOUNT), serve)
  app.get('/files/*path', guard.requireCode(FILE), serve)
  app.get('/any/:first/:second', guard.requireCode(ANY), serve)
  app.get('/balance', guard.requireToken({ isRepeatable: true }), serve)
  app.post('/statement', guard.encrypted(), serve)
  app.post('/limits', guard.encrypted({ code: { resourceId: '/limits' } }), serve)
  app.post('/wrong', guard.encrypted(), (request, response) => {
    seen.push({ pawl: request.pawl })
    response.status(409).json({ no: 'limit reached' })
  })
  app.post('/stream', guard.encrypted(), (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    response.write('{"secret":')
    response.end('"the balance"}')
  })
  app.post('/open', express.json(), serve)
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${server.address().port}`, seen, close }
}

export const BANKS = {
  Fastify: startFastify,
  Express: startExpress,
  'Express that parses every body first': (options) =>
    startExpress(options, (app) => app.use(express.json({ verify: keepRawBody, limit: '1mb' }))),
}

/** Parses every body and keeps none as it came. */
export const startCarelessBank = (options) => startExpress(options, (app) => app.use(express.json({ limit: '1mb' })))
