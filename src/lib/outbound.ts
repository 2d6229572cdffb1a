// Connections that pawl opens itself, to addresses that people configure: the name is resolved once, what it resolves to is checked, and
// exactly that address is connected to, so that a name that answers differently a second time leads nowhere.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { failureOf, startSpan } from './trace.ts'

/** The target may not be connected to, or did not answer as it should. The message is for the log and for administrators. */
export class OutboundError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OutboundError'
  }
}

/** True for addresses of the public internet: not loopback, private, link-local, shared, multicast, reserved or mapped to one of these. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !inner4.check(address, 'ipv4')
  return family === 6 && !inner6.check(address, 'ipv6')
}

/** The address to connect to for a host name or literal address. Throws OutboundError when one of its addresses is not public. */
export async function resolveTarget(host: string, arePrivateAllowed: boolean): Promise<string> {
  const name = host.replace(/^\[(.*)\]$/, '$1')
  const found = await lookup(name, { all: true }).catch((cause: unknown) => {
    throw new OutboundError(`${host} cannot be resolved`, { cause })
  })
  const [first] = found
  if (first === undefined) throw new OutboundError(`${host} has no address`)
  const refused = found.find(({ address }) => !arePrivateAllowed && !isPublicAddress(address))
  if (refused) throw new OutboundError(`${host} leads to ${refused.address}, which is not a public address`)
  return first.address
}

export interface OutboundRequest {
  readonly url: string
  readonly method: 'POST' | 'GET'
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
  /** For everything from the connection to the last byte. */
  readonly timeoutMs: number
  /** What is kept of the answer; the rest is not read. */
  readonly answerBytesMax: number
  readonly arePrivateAllowed: boolean
}

export interface OutboundAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Cut at `answerBytesMax`. */
  readonly body: Buffer
}

/**
 * Sends one request to a checked address, as part of the trace of what causes it. Redirects are answers like any other. Throws OutboundError
 * when there is no answer.
 */
export async function sendOutbound(outbound: OutboundRequest): Promise<OutboundAnswer> {
  const { method, url } = outbound
  // The path may hold what names a user.
  const attributes = { 'http.request.method': method, 'server.address': new URL(url).hostname }
  const span = startSpan(method, { kind: 'client', attributes })
  if (span === undefined) return send(outbound)
  try {
    const answer = await send({ ...outbound, headers: { ...outbound.headers, ...span.headers() } })
    const failure = answer.status >= 400 ? String(answer.status) : undefined
    span.end({ failure, attributes: { 'http.response.status_code': answer.status } })
    return answer
  } catch (error) {
    span.end({ failure: failureOf(error) })
    throw error
  }
}

async function send(outbound: OutboundRequest): Promise<OutboundAnswer> {
  const url = new URL(outbound.url)
  const signal = AbortSignal.timeout(outbound.timeoutMs)
  const address = await untilAborted(
    resolveTarget(url.hostname, outbound.arePrivateAllowed),
    signal,
    `${url.origin} was not resolved in time`,
  )
  const toAddress: LookupFunction = (_host, options, done) => {
    const family = isIP(address)
    if (options.all) done(null, [{ address, family }])
    else done(null, address, family)
  }
  // Not imported: an import of node:http reads every member of it and so loads Node's fetch, 15 MB and a tenth of the time of a start.
  const { request } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) => reject(new OutboundError(`no answer from ${url.origin}`, { cause }))
    const { method, headers, answerBytesMax } = outbound
    const outgoing = request(url, { method, headers, signal, lookup: toAddress, agent: false }, (incoming) => {
      const chunks: Buffer[] = []
      let length = 0
      const finish = () => {
        const body = Buffer.concat(chunks).subarray(0, answerBytesMax)
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body })
      }
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length < answerBytesMax) return
        finish()
        incoming.destroy()
      })
      incoming.on('end', finish)
      incoming.on('error', fail)
    })
    outgoing.on('error', fail)
    // A reply that is not an answer, such as a switch of protocols, ends the connection without an error.
    outgoing.on('close', () => fail('closed'))
    outgoing.end(outbound.body)
  })
}

/** The resolver of the system cannot be stopped, but waiting for it can. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal, message: string): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new OutboundError(message)), { once: true })
  })
  return Promise.race([work, aborted])
}

const INNER_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]
// Everything but global unicast, and of that what embeds or documents other addresses: 6to4, Teredo, benchmarking, documentation.
const INNER_IPV6 = ['::/3', '4000::/2', '8000::/1', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

// Two lists: one with both would take every IPv4 address for its form inside IPv6.
const inner4 = createList(INNER_IPV4, 'ipv4')
const inner6 = createList(INNER_IPV6, 'ipv6')

function createList(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), family)
  }
  return list
}
