// A web back end of a bank: customers bind a phone with a QR code and log in with it, and the page follows both (examples/backend/page.html).
// Environment: PAWL_URL, PAWL_ADMIN (user:password), PAWL_APP (application), BANK_PORT.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeQR } from 'qr'
import { createPawl, PawlError, readWebhook, take, WebhookError } from './index.ts'

const { PAWL_URL: url = 'http://127.0.0.1:8080', PAWL_ADMIN: admin = '', PAWL_APP: application = 'my-app' } = process.env
const [username = '', ...password] = admin.split(':')
// A bank of its own has a credential with the role `integration` here; this one makes a webhook besides.
const pawl = createPawl({ url, username, password: password.join(':') })
const page = readFileSync(new URL('../../../examples/backend/page.html', import.meta.url))
let secret = ''
/** What webhooks told of the ends of operations, by their ids. A bank of more than one process has a table. */
const told = new Map<string, string>()

interface Call {
  readonly headers: IncomingHttpHeaders
  readonly query: URLSearchParams
  /** As it came. */
  readonly body: Buffer
}

/** Whose browser it is. A real bank takes it from its session, and never from the request. */
function userOf({ body }: Call): string {
  try {
    return String((JSON.parse(body.toString()) as { userId?: unknown }).userId)
  } catch {
    throw new BodyError('the body is no JSON object')
  }
}

class BodyError extends Error {}

/** What is answered as JSON, by method and path. */
const endpoints: Readonly<Record<string, (call: Call) => Promise<object>>> = {
  'POST /register': async (call) => {
    const { activationQrCodeData: text } = take(await pawl.POST('/registration', { body: { userId: userOf(call) } }))
    return { qrCode: encodeQR(text, 'svg', { ecc: 'low', border: 4 }), text }
  },
  'GET /registration': async ({ query }) => {
    const userId = query.get('userId') ?? ''
    const { registration, activationFingerprint } = take(await pawl.GET('/registration', { params: { query: { userId } } }))
    return { registration, ...(activationFingerprint !== undefined && { activationFingerprint }) }
  },
  // The customer says that phone and page show the same number.
  'POST /commit': async (call) => take(await pawl.POST('/registration/commit', { body: { userId: userOf(call) } })),
  // An answer may be lost. Under the same key the second call gets it again, and the customer is asked once.
  'POST /login': async (call) => {
    const asked = { params: { header: { 'idempotency-key': randomUUID() } }, body: { userId: userOf(call), template: 'login' } }
    const ask = () => pawl.POST('/operations', asked)
    const { operationId } = take(await ask().catch(ask))
    return { operationId }
  },
  // Only APPROVED means yes. A webhook may be late, so pawl is asked as long as none told the end.
  'GET /login': async ({ query }) => {
    const operationId = query.get('operationId') ?? ''
    const known = told.get(operationId)
    return { status: known ?? take(await pawl.GET('/operations', { params: { query: { operationId } } })).status }
  },
  // A message may come twice: what it says is stored, and nothing is done.
  'POST /webhook': async ({ headers, body }) => {
    const message = readWebhook(secret, headers, body)
    if (message.type === 'OPERATION' && message.status !== undefined && message.status !== 'PENDING') {
      told.set(message.operationId, message.status)
      console.log(`webhook ${message.event} ${message.operationId}`)
    }
    return {}
  },
}

/** What an endpoint answers; undefined where there is none. Rejects where the caller breaks off, too: thrown in the server, that ends the process. */
async function serve(request: IncomingMessage): Promise<object | undefined> {
  const [pathname = '', query] = (request.url ?? '').split('?')
  const parts: Buffer[] = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  const call = { headers: request.headers, query: new URLSearchParams(query), body: Buffer.concat(parts) }
  return endpoints[`${request.method} ${pathname}`]?.(call)
}

const server = createServer(async (request, response) => {
  if (request.method === 'GET' && request.url === '/') return void response.setHeader('content-type', 'text/html').end(page)
  const [status, answer] = await serve(request)
    .then((result) => (result === undefined ? ([404, {}] as const) : ([200, result] as const)))
    .catch((error: unknown) => {
      // What pawl answers otherwise than with 400, or a balancer in its place, is no fault of the browser.
      const isRefused = error instanceof PawlError && error.status === 400
      const isTheirs = isRefused || error instanceof WebhookError || error instanceof BodyError
      if (!isTheirs) console.error(error)
      return [isTheirs ? 400 : 500, { error: isTheirs ? error.message : 'the bank has a defect' }] as const
    })
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
})
await new Promise<void>((resolve) => server.listen(Number(process.env['BANK_PORT'] ?? 8091), '127.0.0.1', resolve))
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const webhook = take(
  await pawl.POST('/admin/webhooks', {
    body: { application, name: 'backend', kind: 'OPERATION', url: `${address}/webhook`, attributes: ['userId', 'status'] },
  }),
)
secret = webhook.secret
console.log(`The bank is at ${address}`)
process.once('SIGTERM', end).once('SIGINT', end)

async function end(): Promise<void> {
  take(await pawl.DELETE('/admin/webhooks/{id}', { params: { path: { id: webhook.id } } }))
  process.exit(0)
}
