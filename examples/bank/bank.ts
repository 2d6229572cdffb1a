// Runs a small mobile bank whose endpoints only its customers' phones can use. Each route declares the proof that the phone must give, and
// pawl-guard has pawl verify it. In a project of your own the import is 'pawl-guard/fastify'.
import fastify, { type FastifyInstance } from 'fastify'
import { pawlGuard } from '../../clients/guard-node/src/fastify.ts'
import type { GuardOptions } from '../../clients/guard-node/src/guard.ts'
import { type BankEvent, drawPage } from './page.ts'

/** Makes the bank. `guard`: the address of pawl, and the credential of this back end. */
export async function createBank(guard: GuardOptions): Promise<FastifyInstance> {
  const app = fastify({ forceCloseConnections: true })
  const events: BankEvent[] = []
  const limits = new Map<string, number>()
  const note = (what: string, userId = 'nobody'): void => {
    events.unshift({ at: new Date(), userId, what })
    events.length = Math.min(events.length, EVENTS_MAX)
  }
  await app.register(pawlGuard, {
    ...guard,
    // Only the bank learns the reason for a refusal; the phone does not.
    onRefusal: ({ status, reason }) => note(`a request was refused with ${status}: ${reason}`),
  })

  // Signed: the phone proves possession and the PIN or biometry, over exactly this body.
  app.post('/login', app.requireCode({ resourceId: '/login' }), async ({ pawl }) => {
    note('logged in', pawl?.userId)
    return { hello: pawl?.userId, provenBy: pawl?.factors }
  })

  // A token: the phone makes it once, and then needs no PIN. It covers no part of the request, so it is for reads only.
  app.get(
    '/accounts',
    app.requireToken({ isRepeatable: true, factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE'] }),
    async ({ pawl }) => {
      note('looked at the accounts', pawl?.userId)
      return { accounts: ACCOUNTS }
    },
  )

  // Signed, with the account of the path in the resource id: a signature for one account fails for another.
  app.post<{ Body: { to?: unknown; amount?: unknown } }>(
    '/accounts/:account/transfers',
    app.requireCode({ resourceId: ({ account }) => `/accounts/${account}/transfers` }),
    async ({ pawl, body, params }, reply) => {
      const { account } = params as { account: string }
      const { to, amount } = body
      const limit = limits.get(pawl?.userId ?? '') ?? LIMIT
      if (typeof to !== 'string' || typeof amount !== 'number' || !(amount > 0))
        return reply.code(400).send({ error: 'to and amount' })
      if (amount > limit) return reply.code(409).send({ error: `the limit is ${limit}` })
      note(`sent ${amount.toFixed(2)} EUR from ${account} to ${to}`, pawl?.userId)
      return { done: true, to, amount }
    },
  )

  // A signed read: old payments tell much about a customer, so they ask for the PIN, and the code covers the query.
  app.get<{ Querystring: Record<string, string | string[]> }>(
    '/payments',
    app.requireCode({ resourceId: '/payments' }),
    async ({ pawl, query }, reply) => {
      // From 4.0 on, the code of a request with a body covers the body. Anybody could then change the query.
      if (pawl?.covered !== 'QUERY') return reply.code(400).send({ error: 'no body' })
      note('looked for old payments', pawl.userId)
      return { asked: query, payments: [] }
    },
  )

  // The account is in the resource id, the name in the body: neither can be changed on the way.
  app.put<{ Body: { name?: unknown } }>(
    '/accounts/:account/name',
    app.requireCode({ resourceId: ({ account }) => `/accounts/${account}/name` }),
    async ({ pawl, body: { name }, params }, reply) => {
      const { account } = params as { account: string }
      if (typeof name !== 'string' || name === '') return reply.code(400).send({ error: 'name' })
      note(`named ${account} "${name}"`, pawl?.userId)
      return { account, name }
    },
  )

  // No body and no query: the code covers the method and the resource id, and the handler reads nothing else.
  app.delete('/payees/:id', app.requireCode({ resourceId: ({ id }) => `/payees/${id}` }), async ({ pawl, params }) => {
    const { id } = params as { id: string }
    note(`removed the payee ${id}`, pawl?.userId)
    return { removed: id }
  })

  // Encrypted: whoever ends TLS before the bank sees neither the question nor the answer.
  app.post<{ Body: { month?: unknown } }>('/statement', app.encrypted(), async ({ pawl, body }) => {
    note(`read the statement of ${String(body.month)}`, pawl?.userId)
    return {
      month: body.month,
      lines: [
        { text: 'Salary', amount: 2_500 },
        { text: 'Rent', amount: -900 },
      ],
    }
  })

  // Signed and encrypted: the code covers the plaintext.
  app.post<{ Body: { daily?: unknown } }>(
    '/limits',
    app.encrypted({ code: { resourceId: '/limits' } }),
    async ({ pawl, body: { daily } }, reply) => {
      if (typeof daily !== 'number' || !(daily > 0)) return reply.code(400).send({ error: 'daily' })
      limits.set(pawl?.userId ?? '', daily)
      note(`set the daily limit to ${daily}`, pawl?.userId)
      return { daily }
    },
  )

  // The page for the customer's browser. A real bank asks for a login here, too.
  app.get('/', (_request, reply) => reply.type('text/html').send(drawPage(events)))
  return app
}

const ACCOUNTS = [
  { iban: 'DE89370400440532013000', name: 'Current account', balance: '1 204.50 EUR' },
  { iban: 'DE02120300000000202051', name: 'Savings', balance: '10 000.00 EUR' },
]
/** The limit of one transfer in euros, until the customer sets another. */
const LIMIT = 1_000
const EVENTS_MAX = 100
