// Receives webhooks on this machine, for docs/WEBHOOKS.md: node examples/webhook/receiver.mjs PORT SECRET
import { createServer } from 'node:http'
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Verifies a message. `headers`: with names in lower case; `body`: the unparsed Buffer or string. */
export function isGenuine(secret, headers, body, nowSeconds = Date.now() / 1000) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  if (!(Math.abs(nowSeconds - Number(timestamp)) <= 300)) return false
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  if (key.length === 0) throw new Error('without a secret everybody could sign')
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** Reads the body; undefined when a part of it is missing. It must not throw, because an error in the server below would end the process. */
async function readAll(request) {
  const parts = []
  try {
    for await (const part of request) parts.push(part)
  } catch {
    return undefined
  }
  return Buffer.concat(parts)
}

const [port, secret = ''] = process.argv.slice(2)
const server = createServer(async (request, response) => {
  const body = await readAll(request)
  // The sender has closed the connection.
  if (body === undefined) return
  const isRight = isGenuine(secret, request.headers, body)
  // A real receiver stores the message and its `webhook-id`, which may come twice, answers, and does the work afterwards.
  console.log(`${isRight ? 'genuine' : 'FORGED'}: ${isRight ? body : ''}`)
  response.writeHead(isRight ? 204 : 400).end()
})
server.listen(Number(port), '127.0.0.1', () => console.log(`The receiver listens on http://127.0.0.1:${port}/`))
