// The audit log outside of the database: exports that go on where the one before ended, and delivery to receivers that fail.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createAuditDelivery, createAuditSink } from '../../src/domain/audit/deliver.ts'
import { exportAudit } from '../../src/domain/audit/lines.ts'
import { verifyAudit } from '../../src/domain/audit/verification.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { sealAll, writeRow } from '../helpers/audit.ts'
import { createCertificate } from '../helpers/certificates.ts'

type Line = Readonly<Record<string, unknown>>

let server: TestServer
const listeners: Server[] = []
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
})
afterEach(() => {
  for (const one of listeners.splice(0)) one.close()
})
afterAll(() => server.close())

const listen = async (one: Server): Promise<number> => {
  listeners.push(one)
  await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
  return (one.address() as AddressInfo).port
}
const write = async (application: string, ...texts: string[]): Promise<void> => {
  for (const text of texts) await writeRow(server.context, server.context.db, application, text)
  await sealAll(server.context)
}
const parse = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
const rowsOf = (lines: readonly Line[], application: string) =>
  lines.filter(({ chain, head }) => chain === `application:${application}` && head === undefined)
/** The audit log after this test has none of its rows, so that the next one delivers its own alone. */
const forgetDelivered = () => sql`delete from audit_delivery`.execute(server.context.db)
const deliverTo = (url: string, authorization?: string) =>
  createAuditDelivery(server.context, createAuditSink(url, authorization))
const never = new AbortController().signal

test('an export has every row with its place and seal, and the next one goes on from there', async () => {
  await write('exported', 'one', 'two', 'three')
  const run = async (after: Parameters<typeof exportAudit>[1] = []) => {
    const lines: string[] = []
    const chains = await exportAudit(server.context, after, (line) => lines.push(line))
    return { lines: lines.map((line) => JSON.parse(line) as Line), chains }
  }
  const first = await run()
  const rows = rowsOf(first.lines, 'exported')
  expect(rows).toMatchObject([
    { position: 1, applicationId: 'exported', userId: 'alice', activationId: 'a-1', eventType: 'test_row', eventData: 'one' },
    { position: 2, eventData: 'two' },
    { position: 3, eventData: 'three' },
  ])
  const { chains } = await verifyAudit(server.context)
  const head = chains.find(({ chain }) => chain === 'application:exported')
  expect(rows.at(-1)).toMatchObject({ seal: head?.headSeal })
  expect(first.lines).toContainEqual({ chain: 'application:exported', head: { position: 3, seal: head?.headSeal } })
  const after = first.chains
  expect((await run(after)).chains.map(({ rows: count }) => count)).toEqual(after.map(() => 0))
  await write('exported', 'four')
  expect(rowsOf((await run(after)).lines, 'exported')).toMatchObject([{ position: 4, eventData: 'four' }])
  // Another chain under the old name, and an altered row.
  for (const chain of ['application:exported', 'application:gone']) {
    const other = { chain, position: 2, seal: '00'.repeat(32) }
    // The next export refuses again: it begins where the good one ended.
    expect((await run([other])).chains).toContainEqual({ ...other, rows: 0, problem: expect.any(String) as unknown })
  }
  await sql`update audit_log set event_data = 'changed' where event_data = 'three'`.execute(server.context.db)
  const altered = await run()
  expect(rowsOf(altered.lines, 'exported')).toHaveLength(2)
  expect(altered.chains).toContainEqual(expect.objectContaining({ chain: 'application:exported', position: 2, rows: 2 }))
  expect(altered.chains.filter(({ problem }) => problem !== undefined)).toHaveLength(1)
  await sql`update audit_log set event_data = 'three' where event_data = 'changed'`.execute(server.context.db)
})

test('a receiver over HTTP gets every row at least once and in order, whatever it answers in between', async () => {
  await forgetDelivered()
  const requests: { readonly headers: IncomingHttpHeaders; readonly lines: readonly Line[] }[] = []
  let status = 503
  const port = await listen(
    createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        requests.push({ headers: request.headers, lines: parse(Buffer.concat(chunks).toString()) })
        response.writeHead(status).end()
      })
    }),
  )
  const deliver = deliverTo(`http://127.0.0.1:${port}/audit`, 'Splunk marked')
  await write('http', ...Array.from({ length: 3 }, (_, i) => `row ${i}`))
  await expect(deliver(never)).rejects.toThrow(
    `the receiver of PAWL_AUDIT_SINK_URL did not take the lines: http://127.0.0.1:${port} answered with status 503: its log may say why`,
  )
  status = 200
  await deliver(never)
  await deliver(never)
  const taken = requests.slice(1).flatMap(({ lines }) => lines)
  expect(requests[0]?.headers).toMatchObject({ authorization: 'Splunk marked', 'content-type': 'application/x-ndjson' })
  expect(rowsOf(taken, 'http').map(({ position }) => position)).toEqual([1, 2, 3])
  expect(taken).toContainEqual(
    expect.objectContaining({ chain: 'application:http', head: expect.objectContaining({ position: 3 }) as unknown }),
  )
  // More than fits in one request, and nothing of before.
  requests.length = 0
  await sql`insert into audit_pending (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select 'http', 'u', 'a', 'bulk', i::text, now() from generate_series(1, 1100) i`.execute(server.context.db)
  await sealAll(server.context)
  await Promise.all([deliver(never), deliverTo(`http://127.0.0.1:${port}/audit`)(never)])
  const more = requests.flatMap(({ lines }) => rowsOf(lines, 'http').map(({ position }) => position))
  expect(more).toEqual(Array.from({ length: 1100 }, (_, i) => i + 4))
  expect(requests).toHaveLength(3)
})

test('what was sent and not noted is sent again; behind an altered row nothing is', async () => {
  await forgetDelivered()
  await write('again', 'one', 'two', 'three')
  const got: Line[] = []
  let fails = true
  const deliver = createAuditDelivery(server.context, async (lines) => {
    got.push(...lines.map((line) => JSON.parse(line) as Line))
    if (fails) throw new Error('the answer was lost')
  })
  await expect(deliver(never)).rejects.toThrow('lost')
  fails = false
  got.length = 0
  await sql`update audit_log set event_type = 'changed' where event_data = 'three' and application_id = 'again'`.execute(
    server.context.db,
  )
  await deliver(never)
  expect(rowsOf(got, 'again').map(({ position }) => position)).toEqual([1, 2])
  expect(server.log()).toContain('an audit chain was altered')
  await sql`update audit_log set event_type = 'test_row' where event_type = 'changed'`.execute(server.context.db)
  got.length = 0
  await deliver(never)
  expect(rowsOf(got, 'again').map(({ position }) => position)).toEqual([3])
})

test.each(['tcp', 'tls'] as const)(
  'syslog over %s gets messages of RFC 5424, and is asked again when it breaks off',
  async (transport) => {
    await forgetDelivered()
    await write(`syslog-${transport}`, 'ünïcode', 'two\nlines')
    let text = ''
    let breaks = true
    const { pem, privateKeyPem } = createCertificate(['IP:127.0.0.1'])
    const onSocket = (socket: Socket): void => {
      socket.on('error', () => undefined)
      if (breaks) return void socket.once('data', () => socket.destroy())
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    }
    const port = await listen(
      transport === 'tcp' ? createTcpServer(onSocket) : createTlsServer({ key: privateKeyPem, cert: pem }, onSocket),
    )
    const deliver = deliverTo(`syslog+${transport}://127.0.0.1:${port}`)
    // Nobody vouches for the certificate.
    if (transport === 'tls') {
      await expect(deliver(never)).rejects.toThrow('did not take')
      setDefaultCACertificates([...getCACertificates('default'), pem])
    }
    await expect(deliver(never)).rejects.toThrow('did not take')
    breaks = false
    await deliver(never)
    const messages: Line[] = []
    for (let rest = Buffer.from(text, 'latin1'); rest.length > 0; ) {
      const [prefix = '', length = ''] = /^(\d+) /.exec(rest.subarray(0, 10).toString()) ?? []
      const message = rest.subarray(prefix.length, prefix.length + Number(length)).toString()
      const [, json = ''] = /^<109>1 - \S+ pawl - audit - (\{.*\})$/s.exec(message) ?? []
      messages.push(JSON.parse(json) as Line)
      rest = rest.subarray(prefix.length + Number(length))
    }
    expect(rowsOf(messages, `syslog-${transport}`)).toMatchObject([{ eventData: 'ünïcode' }, { eventData: 'two\nlines' }])
  },
)
