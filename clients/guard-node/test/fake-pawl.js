// Stands in for pawl where a test is about how it fails. What it does with a right request is tested against pawl itself.
import { createServer } from 'node:http'

/** Starts on a free port of this machine. `behave(call, response)`: answers one request; `calls` are those that came. */
export async function startFakePawl(behave) {
  const calls = []
  const server = createServer(async (request, response) => {
    const parts = []
    for await (const part of request) parts.push(part)
    const { url, headers } = request
    const call = { path: url, headers, body: JSON.parse(Buffer.concat(parts).toString()) }
    calls.push(call)
    behave(call, response, calls.length)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${server.address().port}`, calls, close }
}

export const json = (response, status, value) => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

export const VALID = {
  isValid: true,
  userId: 'alice',
  activationId: '5a6b1e0c-0000-4000-8000-000000000001',
  factors: 'POSSESSION_KNOWLEDGE',
  protocolVersion: '3.3',
  flags: [],
  applicationVersion: 'default',
  covered: 'BODY',
}
