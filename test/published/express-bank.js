// The endpoints of examples/bank on Express, for the phones of the published libraries. It stands in a copy of clients/guard-node, whose
// packages it uses, and prints its address.
import express from 'express'
import { createExpressGuard } from '../dist/express.js'

const { PAWL_URL: url, GUARD_USERNAME: username, GUARD_PASSWORD: password } = process.env
// A machine that checks is busier than a bank's.
const guard = createExpressGuard({ url, username, password, timeoutMs: 30_000 })
const app = express()
const limits = new Map()

app.post('/login', guard.requireCode({ resourceId: '/login' }), ({ pawl }, response) => {
  response.json({ hello: pawl.userId, provenBy: pawl.factors })
})

const token = guard.requireToken({ isRepeatable: true, factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE'] })
app.get('/accounts', token, (_request, response) => {
  response.json({ accounts: ['DE89370400440532013000', 'DE02120300000000202051'] })
})

const transfer = guard.requireCode({ resourceId: ({ account }) => `/accounts/${account}/transfers` })
app.post('/accounts/:account/transfers', transfer, ({ pawl, body: { to, amount } }, response) => {
  const limit = limits.get(pawl.userId) ?? 1_000
  if (amount > limit) response.status(409).json({ error: `the limit is ${limit}` })
  else response.json({ done: true, to, amount })
})

app.get('/payments', guard.requireCode({ resourceId: '/payments' }), ({ pawl, query }, response) => {
  if (pawl.covered === 'QUERY') response.json({ asked: query, payments: [] })
  else response.status(400).json({ error: 'no body' })
})

const name = guard.requireCode({ resourceId: ({ account }) => `/accounts/${account}/name` })
app.put('/accounts/:account/name', name, ({ body, params: { account } }, response) => {
  response.json({ account, name: body.name })
})

const payee = guard.requireCode({ resourceId: ({ id }) => `/payees/${id}` })
app.delete('/payees/:id', payee, ({ params: { id } }, response) => {
  response.json({ removed: id })
})

app.post('/statement', guard.encrypted(), ({ body: { month } }, response) => {
  response.json({
    month,
    lines: [
      { text: 'Salary', amount: 2_500 },
      { text: 'Rent', amount: -900 },
    ],
  })
})

app.post('/limits', guard.encrypted({ code: { resourceId: '/limits' } }), ({ pawl, body: { daily } }, response) => {
  limits.set(pawl.userId, daily)
  response.json({ daily })
})

const server = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
// Longer than its callers keep a connection: one that ends while a request is on its way to it would lose that request.
server.keepAliveTimeout = 75_000
