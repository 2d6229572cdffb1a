// Opens connections to addresses that people configure. The name is resolved once, the resulting address is checked, and the connection goes to
// exactly that address. A name server that answers differently a second time changes nothing.
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { createRanges } from './address.ts'
import { failureOf, startSpan } from './trace.ts'

/** Thrown when a target is forbidden or did not answer properly. The message is for the log and for administrators. */
export class OutboundError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OutboundError'
  }
}

/** True for addresses of the public internet: not loopback, private, link-local, shared, multicast, reserved or mapped to one of these. */
export const isPublicAddress = (address: string): boolean => isIP(address) !== 0 && !isInnerAddress(address)

/** Finds the address to connect to for a host name or a literal address. Throws OutboundError when one of its addresses is not public. */
export async function resolveTarget(host: string, arePrivateAllowed: boolean): Promise<string> {
  const name = host.replace(/^\[(.*)\]$/, '$1')
  const found = await lookUp(name).catch((cause: unknown) => {
    throw new OutboundError(`${host} ${describeConnectionFailure(cause)}`, { cause })
  })
  const [first] = found
  if (first === undefined) throw new OutboundError(`${host} has no address`)
  const refused = found.find(({ address }) => !arePrivateAllowed && !isPublicAddress(address))
  if (refused) throw new OutboundError(`${host} leads to ${refused.address}, which is not a public address`)
  return first.address
}

/**
 * Finds all addresses of a name. A process resolves names in two threads, which the database's name needs as well, and a look-up cannot be cancelled.
 * Therefore callers that ask for the same name at once share one look-up.
 */
function lookUp(name: string): Promise<LookupAddress[]> {
  const running = lookUps.get(name)
  if (running !== undefined) return running
  const begun = lookup(name, { all: true }).finally(() => lookUps.delete(name))
  lookUps.set(name, begun)
  return begun
}

const lookUps = new Map<string, Promise<LookupAddress[]>>()

/** The target of a connection, and the limits of the connection. */
export interface OutboundTarget {
  /** The name of the target in error messages. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** Options of TLS; undefined for plain TCP. */
  readonly tls?: ConnectionOptions
  readonly arePrivateAllowed: boolean
  /** Limits the time from the look-up of the name to the last byte. */
  readonly timeoutMs: number
  /** Limits all received bytes, those of TLS included. */
  readonly bytesMax: number
  /** Ends the connection early. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Opens a connection to a checked address, lets `speak` use it, and closes it. Throws OutboundError, with the cause and a hint, when the connection
 * cannot be opened, when `speak` or the connection fails, and when the target sends too much. A target thus cannot exhaust memory or processor.
 */
export async function withConnection<T>(target: OutboundTarget, speak: (socket: Socket) => Promise<T>): Promise<T> {
  const { name, host, port, tls, arePrivateAllowed, timeoutMs, bytesMax, signal } = target
  const { promise: broken, reject } = Promise.withResolvers<never>()
  const isConnected = Promise.withResolvers<void>()
  const sockets: Socket[] = []
  let overdue = OVERDUE.name
  let reads = 0
  const timer = setTimeout(() => {
    const [what, todo] = overdue
    reject(new OutboundError(`${name} ${what} within ${timeoutMs / 1000} s: ${todo}`))
  }, timeoutMs)
  const stop = (): void => reject(new OutboundError(`${name} was not waited for`))
  signal?.addEventListener('abort', stop)
  if (signal?.aborted === true) stop()
  let watch: NodeJS.Timeout | undefined
  try {
    const address = await Promise.race([resolveTarget(host, arePrivateAllowed), broken])
    overdue = OVERDUE.connection
    // Not imported, for the reason at node:http below.
    const raw = process.getBuiltinModule('node:net').connect(port, address)
    const socket = tls === undefined ? raw : process.getBuiltinModule('node:tls').connect({ ...tls, socket: raw })
    sockets.push(socket, raw)
    const look = (): void => {
      if (raw.bytesRead > bytesMax || reads > READS_MAX)
        reject(new OutboundError(`${name} sent more, or in smaller pieces, than an answer has`))
    }
    // Tickets and other messages of TLS cause no `data` event; only the byte count of the raw socket shows them.
    watch = setInterval(look, LOOK_MS)
    socket.on('data', () => {
      reads += 1
      look()
    })
    for (const one of sockets) one.on('error', reject)
    socket.on('close', () => reject(new OutboundError(`${name} closed the connection too early: its log may say why`)))
    raw.on('connect', () => {
      overdue = tls === undefined ? OVERDUE.answer : OVERDUE.handshake
    })
    socket.on(tls === undefined ? 'connect' : 'secureConnect', () => {
      overdue = OVERDUE.answer
      isConnected.resolve()
    })
    await Promise.race([isConnected.promise, broken])
    return await Promise.race([speak(socket), broken])
  } catch (error) {
    throw error instanceof OutboundError
      ? error
      : new OutboundError(`${name} ${describeConnectionFailure(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
    clearInterval(watch)
    signal?.removeEventListener('abort', stop)
    for (const one of sockets) one.destroy()
  }
}

/** For each step that can exceed the time: the words for the step that did not end, and advice. */
const OVERDUE: Readonly<Record<'name' | 'connection' | 'handshake' | 'answer', readonly [string, string]>> = {
  name: ['was not resolved', "look at this machine's name servers"],
  connection: ['took no connection', 'it is down, or a firewall drops what is sent there'],
  handshake: ['did not end the handshake of TLS', 'look at whether its port speaks TLS'],
  answer: ['did not answer', 'it has too much to do, or waits for somebody itself'],
}

/** The meaning of a status beyond 2xx, and advice. `authorization`: the setting with the credential that pawl sends to this server. */
export function describeStatus(status: number, authorization: string): string {
  const answered = `answered with status ${status}`
  if (status === 401 || status === 403) return `${answered}: look at ${authorization}, and at what it allows`
  if (status >= 300 && status < 400) return `${answered}: redirects are not followed, name the address that it leads to`
  return status === 404 || status === 405 ? `${answered}: look at the path` : `${answered}: its log may say why`
}

/**
 * The meaning of an error's code, and advice. `authority`: the setting for a certificate authority of the operator. Only codes are repeated, because
 * messages of OpenSSL name threads and source files.
 */
export function describeConnectionFailure(error: unknown, authority = NODE_AUTHORITY): string {
  const code = codeOf(error)
  const [, says = 'broke the connection'] = MEANINGS.find(([codes]) => codes.test(code)) ?? []
  return says.replace(/(?=:|$)/, ` (${code})`).replace(NODE_AUTHORITY, authority)
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no code'

const NODE_AUTHORITY = 'NODE_EXTRA_CA_CERTS'
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_FAIL)$/, "cannot be resolved: look at its name, and at this machine's name servers"],
  [/^ECONNREFUSED$/, 'refuses connections: nothing listens there, or a firewall is between'],
  [/^(ECONNRESET|EPIPE|ECONNABORTED)$/, 'broke the connection: its log may say why, or that of a proxy between'],
  [
    /^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|ETIMEDOUT|EADDRNOTAVAIL|EACCES|EPERM)$/,
    'cannot be reached from here: look at routes and firewalls',
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'shows the certificate of another name: call it by a name that its certificate has'],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, 'shows a certificate that does not hold now: renew it, or set the clock'],
  [
    /CERT|SIGNATURE|ISSUER|^(INVALID_CA|PATH_LENGTH_EXCEEDED|INVALID_PURPOSE|HOSTNAME_MISMATCH)$/,
    `shows a certificate that nobody vouches for: ${NODE_AUTHORITY} names your own authority, and it must send its whole chain`,
  ],
  [/^(ERR_SSL_|ERR_TLS_|EPROTO)/, 'does not speak this TLS: look at its port, versions, and whether it asks for a certificate'],
  [/^HPE_/, 'does not answer in HTTP: look at its port, and whether it wants https'],
]

export interface OutboundRequest {
  readonly url: string
  readonly method: 'POST' | 'GET'
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
  /** Limits the time from the look-up of the name to the last byte. */
  readonly timeoutMs: number
  /** The number of bytes to keep of the answer's body. The rest is not read. */
  readonly answerBytesMax: number
  readonly rules: TargetRules
}

export interface OutboundAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Cut at `answerBytesMax`. */
  readonly body: Buffer
}

/**
 * Sends one request to an address that is checked by the current rules. The request joins the trace of its cause. Redirects are returned like other
 * answers. Throws OutboundError for a forbidden address, and when there is no answer.
 */
export async function sendOutbound(outbound: OutboundRequest): Promise<OutboundAnswer> {
  const { method, url } = outbound
  // The path is left out, because it may name a user.
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
  const { method, headers, timeoutMs, rules } = outbound
  const url = new URL(outbound.url)
  const isTls = url.protocol === 'https:'
  // A stored address may be older than the current rules.
  if (!isTls && !rules.webhookAllowHttp) throw new OutboundError('http is not allowed')
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const target: OutboundTarget = {
    name: url.origin,
    host,
    port: Number(url.port || (isTls ? 443 : 80)),
    ...(isTls && { tls: { ...shownAs(host), ALPNProtocols: ['http/1.1'] } }),
    arePrivateAllowed: rules.webhookAllowPrivateAddresses,
    timeoutMs,
    // A small answer becomes large by chunks of few bytes, by headers and by certificates.
    bytesMax: 2 * outbound.answerBytesMax + OVERHEAD_BYTES_MAX,
  }
  // Not imported, because an import of node:http reads all its members and so loads Node's fetch: 15 MB and a tenth of the time of a start.
  const { request } = process.getBuiltinModule(isTls ? 'node:https' : 'node:http')
  return withConnection(
    target,
    (socket) =>
      new Promise((resolve, reject) => {
        const { answerBytesMax } = outbound
        const options = { method, headers, createConnection: () => socket, maxHeaderSize: HEADER_BYTES_MAX }
        const outgoing = request(url, options, (incoming) => {
          const { statusCode: status = 0 } = incoming
          const chunks: Buffer[] = []
          let length = 0
          const finish = () => {
            // A refusal may come before the whole request is sent. A success cannot: a server that has not read the request has not carried it out.
            if (status < 300 && !outgoing.writableFinished)
              reject(new OutboundError(`${url.origin} answered before it had the whole request`))
            else resolve({ status, headers: incoming.headers, body: Buffer.concat(chunks).subarray(0, answerBytesMax) })
          }
          incoming.on('data', (chunk: Buffer) => {
            // The parser may pass on chunks that it read before the answer was complete.
            if (length >= answerBytesMax) return
            chunks.push(chunk)
            length += chunk.length
            if (length < answerBytesMax) return
            finish()
            incoming.destroy()
          })
          incoming.on('end', finish)
          incoming.on('error', reject)
        })
        let informations = 0
        outgoing.on('information', () => {
          informations += 1
          if (informations <= INFORMATIONS_MAX) return
          reject(new OutboundError(`${url.origin} sends interim answers without end`))
          socket.destroy()
        })
        outgoing.on('error', reject)
        outgoing.end(outbound.body)
      }),
  )
}

/** The server name that TLS sends and checks. Absent for an address (RFC 6066 §3). */
export const shownAs = (host: string): ConnectionOptions => (isIP(host) === 0 ? { host, servername: host } : { host })

/** The number of interim answers (1xx) that may precede the answer. */
const INFORMATIONS_MAX = 8
const HEADER_BYTES_MAX = 16_384
const OVERHEAD_BYTES_MAX = 262_144
/** An answer of 256 KiB comes in some 500 reads if each read gets one packet of 536 bytes. */
const READS_MAX = 2_000
const LOOK_MS = 50

const isInnerAddress = createRanges([
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
  // All but global unicast. Also the global ranges that embed or document other addresses: 6to4, Teredo, benchmarking, documentation.
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
])

/** The operator's settings PAWL_WEBHOOK_ALLOW_HTTP and PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES. */
export interface TargetRules {
  readonly webhookAllowHttp: boolean
  readonly webhookAllowPrivateAddresses: boolean
}

/** The rules for addresses that the operator configures, because the bank's servers are in the same network as pawl. */
export const OF_OPERATOR: TargetRules = { webhookAllowHttp: true, webhookAllowPrivateAddresses: true }

/** The problem with an address that an administrator configures as a target; undefined without one. Names are looked up when something is sent. */
export function findTargetProblem(text: string, rules: TargetRules): string | undefined {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return 'must be a URL'
  const { protocol, username, password, hash, hostname } = new URL(text)
  const isHttp = protocol === 'http:'
  if (protocol !== 'https:' && !(isHttp && rules.webhookAllowHttp)) return 'must be an https URL'
  if (username !== '' || password !== '') return 'must not contain credentials'
  if (hash !== '') return 'must not contain a fragment'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const isInner = (isIP(host) > 0 && !isPublicAddress(host)) || /(^|\.)localhost\.?$/.test(host)
  return isInner && !rules.webhookAllowPrivateAddresses ? 'must not lead to a private address' : undefined
}
