// Checks the example of a web back end as a browser and a phone use it: a phone is bound with the QR code of the page, approves a login, and
// the webhook tells the page.
import { type ChildProcess, spawn } from 'node:child_process'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeQR } from 'qr/decode.js'
import { type HttpReply, member, sendJson } from '../../phone/http.ts'
import { createPhone, type VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { type Bank, createBank, readApplication } from '../../test/helpers/bank.ts'
import type { CheckedServer } from './server.ts'
import { openWay, type Way } from './way.ts'

/** Runs the back end that `command` starts in `place`. Throws when a browser or the phone gets another answer than it should. */
export async function checkBackend(
  name: string,
  [command, ...args]: readonly [string, ...string[]],
  place: string,
  { url, credential }: CheckedServer,
): Promise<void> {
  const way = await openWay(url)
  const env = { ...process.env, PAWL_URL: way.url, PAWL_ADMIN: credential, PAWL_APP: 'my-app', BANK_PORT: '0' }
  const child = spawn(command, args, { cwd: place, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = endOf(child)
  const said = readLines(name, child, ended)
  try {
    const bank = createBank(url, credential)
    const app = readApplication(await bank.call('GET', '/admin/application?id=my-app'))
    const address = (await said('The bank is at ')).trim()
    const userId = `${name}-user`
    const phone = createPhone({ url, app, version: '3.3' })
    expect('the page', (await sendJson(address, 'GET', '/')).text.includes('Bind a phone'), true)
    await bind(address, userId, phone)
    const operationId = await login(address, userId, phone)
    expect('the webhook', await said('webhook approved '), operationId)
    await refuseForged(address, operationId)
    await loginWhileWebhooksAreOff(address, userId, phone, bank)
    await loginWhilePawlIsAway(address, userId, way)
    child.kill('SIGTERM')
    await ended
    const left = member((await bank.call('GET', '/admin/webhooks')).json, 'webhooks') as { readonly name: string }[]
    expect('webhooks that are left', left.filter((webhook) => webhook.name === 'backend').length, 0)
  } finally {
    child.kill('SIGKILL')
    await ended.catch(() => undefined)
    await way.close()
  }
}

async function bind(address: string, userId: string, phone: VirtualPhone): Promise<void> {
  const registered = await post(address, '/register', { userId })
  const text = String(member(registered, 'text'))
  expect('the QR code', scan(String(member(registered, 'qrCode'))), text)
  const path = `/registration?userId=${encodeURIComponent(userId)}`
  expect('before the scan', await get(address, path), { registration: 'CREATED' })
  const { fingerprint } = await phone.activate(text.split('#')[0] ?? '')
  expect('after the scan', await get(address, path), { activationFingerprint: fingerprint, registration: 'PENDING_COMMIT' })
  await post(address, '/commit', { userId })
  expect('after the commit', await get(address, path), { registration: 'ACTIVE' })
  expect('a second phone', (await sendJson(address, 'POST', '/register', { userId })).status, 400)
}

async function login(address: string, userId: string, phone: VirtualPhone): Promise<string> {
  const id = String(member(await post(address, '/login', { userId }), 'operationId'))
  const path = `/login?operationId=${id}`
  expect('before the approval', await get(address, path), { status: 'PENDING' })
  const reply = await phone.send(phone.prepareAuthorize({ id, data: await readData(phone, id) }))
  expect('the approval', reply.status, 200)
  expect('after the approval', await get(address, path), { status: 'APPROVED' })
  return id
}

/** Reads the data that the code covers, which only the phone's list of operations has. */
async function readData(phone: VirtualPhone, id: string): Promise<string | undefined> {
  const listed = await phone.send(await phone.prepareTokenCall('list', await phone.createToken('possession')))
  const operations = member(listed.json, 'responseObject') as { readonly id: string; readonly data: string }[]
  return operations.find((operation) => operation.id === id)?.data
}

/** Checks that the page asks pawl: a webhook tells it of a failed attempt, and nothing tells it of the approval that follows. */
async function loginWhileWebhooksAreOff(address: string, userId: string, phone: VirtualPhone, bank: Bank): Promise<void> {
  const id = String(member(await post(address, '/login', { userId }), 'operationId'))
  const data = await readData(phone, id)
  expect('a failed approval', (await phone.send(phone.prepareAuthorize({ id, data: `${data}*Nother` }))).status, 401)
  const webhooks = member((await bank.call('GET', '/admin/webhooks')).json, 'webhooks') as Readonly<Record<string, unknown>>[]
  const { id: webhookId, ...webhook } = webhooks.find(({ name }) => name === 'backend') ?? {}
  const deliveries = `/admin/webhooks/${String(webhookId)}/deliveries?objectId=${id}`
  const isTold = (reply: HttpReply): boolean =>
    (member(reply.json, 'deliveries') as { readonly status: string }[]).every(({ status }) => status === 'DELIVERED')
  while (!isTold(await bank.call('GET', deliveries))) await sleep(50)
  expect(
    'webhooks off',
    (await bank.call('PUT', `/admin/webhooks/${String(webhookId)}`, { ...webhook, isEnabled: false })).status,
    200,
  )
  expect('the approval', (await phone.send(phone.prepareAuthorize({ id, data }))).status, 200)
  expect('after an approval that nobody told', await get(address, `/login?operationId=${id}`), { status: 'APPROVED' })
}

/** Checks that the browser gets an error in JSON when a balancer answers in place of pawl. */
function loginWhilePawlIsAway(address: string, userId: string, way: Way): Promise<void> {
  const answerOfBalancer = (response: ServerResponse): unknown =>
    response.writeHead(502, { 'content-type': 'text/html' }).end('<html>Bad Gateway</html>')
  return way.with(answerOfBalancer, async () => {
    const { status, json } = await sendJson(address, 'POST', '/login', { userId })
    expect('a login while pawl is away', [status, typeof member(json, 'error')], [500, 'string'])
  })
}

/** Checks that the page refuses a message that pawl did not send, and that it changes nothing. */
async function refuseForged(address: string, operationId: string): Promise<void> {
  const message = { type: 'OPERATION', operationId, event: 'rejected', status: 'REJECTED' }
  const now = String(Math.floor(Date.now() / 1000))
  const headers = { 'webhook-id': 'a', 'webhook-timestamp': now, 'webhook-signature': 'v1,AAAA' }
  for (const some of [headers, {}])
    expect('a forged message', (await sendJson(address, 'POST', '/webhook', message, some)).status, 400)
  expect('after a forged message', await get(address, `/login?operationId=${operationId}`), { status: 'APPROVED' })
}

const get = async (address: string, path: string): Promise<unknown> => accept(path, await sendJson(address, 'GET', path))
const post = async (address: string, path: string, body: unknown): Promise<unknown> =>
  accept(path, await sendJson(address, 'POST', path, body))

function accept(path: string, { status, text, json }: HttpReply): unknown {
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
  return json
}

function expect(what: string, found: unknown, expected: unknown): void {
  const [is, should] = [found, expected].map((value) =>
    JSON.stringify(typeof value === 'object' && value !== null ? Object.entries(value).toSorted() : value),
  )
  if (is !== should) throw new Error(`${what}: ${is} in place of ${should}`)
}

/** The text of a QR code whose SVG has a box of modules and a path of squares. */
function scan(svg: string): string {
  const [, size = '0'] = /viewBox="0 0 (\d+) \d+"/.exec(svg) ?? []
  const side = Number(size) * PIXELS
  const data = new Uint8Array(side * side * 4).fill(255)
  let [x, y] = [0, 0]
  for (const [, how, right, down] of svg.matchAll(/([Mm])(-?\d+) (\d+)h1v1/g)) {
    ;[x, y] = how === 'M' ? [Number(right), Number(down)] : [x + Number(right), y + Number(down)]
    for (let dy = 0; dy < PIXELS; dy += 1)
      for (let dx = 0; dx < PIXELS; dx += 1) {
        const place = (y * PIXELS + dy) * side + x * PIXELS + dx
        data.fill(0, place * 4, place * 4 + 3)
      }
  }
  return decodeQR({ width: side, height: side, data }, { effort: Number.POSITIVE_INFINITY, timeLimit: Number.POSITIVE_INFINITY })
}

/** Side of a module. */
const PIXELS = 4

/** Waits for a line that begins with `start`, and returns the rest of it. Throws when the process ends before. */
function readLines(name: string, child: ChildProcess, ended: Promise<unknown>): (start: string) => Promise<string> {
  const lines: string[] = []
  let rest = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split(/\r?\n/)
    rest = parts.pop() ?? ''
    for (const line of parts) process.stdout.write(`${name}: ${line}\n`)
    lines.push(...parts)
  })
  let isOver = false
  void ended.catch(() => undefined).then(() => (isOver = true))
  return async (start) => {
    const end = performance.now() + WAIT_MS
    for (;;) {
      const line = lines.find((one) => one.startsWith(start))
      if (line !== undefined) return line.slice(start.length)
      if (isOver || performance.now() > end) throw new Error(`the back end did not say "${start}…"`)
      await sleep(50)
    }
  }
}

const WAIT_MS = 120_000

/** Resolves with the exit code after all output was read; the event `exit` may come before. */
function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
}
