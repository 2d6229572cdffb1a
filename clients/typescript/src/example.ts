// The life of one payment from the bank's side: register a user, commit the phone, ask for an approval, wait, check the webhook.
// Environment: PAWL_URL, PAWL_ADMIN (user:password), PAWL_APP (application). A phone has to use the printed code and approve.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { createPawl, readWebhook, take, waitForOperation, WebhookError } from './index.ts'

const { PAWL_URL: url = 'http://127.0.0.1:8080', PAWL_ADMIN: admin = '', PAWL_APP: application = '' } = process.env
const [username = '', ...password] = admin.split(':')
const pawl = createPawl({ url, username, password: password.join(':') })

let secret = ''
const told = Promise.withResolvers<string>()
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    try {
      const message = readWebhook(secret, request.headers, body)
      // The library of the convention finds the same.
      new Webhook(secret).verify(body.toString('utf8'), request.headers as Record<string, string>)
      if (message.type === 'OPERATION' && message.event !== 'created') told.resolve(`${message.event} ${message.operationId}`)
      response.writeHead(204).end()
    } catch (error) {
      if (!(error instanceof WebhookError)) told.reject(error)
      response.writeHead(400).end()
    }
  })
})
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
const { port } = receiver.address() as AddressInfo

const webhook = take(
  await pawl.POST('/admin/webhooks', {
    body: { application, name: 'example', kind: 'OPERATION', url: `http://127.0.0.1:${port}/`, attributes: ['userId', 'status'] },
  }),
)
secret = webhook.secret

const userId = `ts-${Date.now()}`
const { activationQrCodeData } = take(await pawl.POST('/registration', { body: { userId } }))
console.log(`code ${activationQrCodeData}`)

for (;;) {
  const { registration } = take(await pawl.GET('/registration', { params: { query: { userId } } }))
  if (registration === 'PENDING_COMMIT') break
  await new Promise((resolve) => setTimeout(resolve, 200))
}
take(await pawl.POST('/registration/commit', { body: { userId } }))

const parameters = { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' }
const created = take(await pawl.POST('/operations', { body: { userId, template: 'payment', parameters } }))
console.log(`operation ${created.operationId}`)

const { status } = await waitForOperation(pawl, created.operationId, { everyMs: 200, timeoutMs: 60_000 })
console.log(`status ${status}`)
console.log(`webhook ${await told.promise}`)

// What somebody else made is refused.
const forged = { 'webhook-id': 'a', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': 'v1,AAAA' }
try {
  readWebhook(secret, forged, '{}')
  throw new Error('a forged message was taken')
} catch (error) {
  if (!(error instanceof WebhookError)) throw error
}
take(await pawl.DELETE('/admin/webhooks/{id}', { params: { path: { id: webhook.id } } }))
receiver.close()
console.log('done')
