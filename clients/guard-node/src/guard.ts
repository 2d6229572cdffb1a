// What Fastify and Express share: from a request of a phone to who sent it, or to how it is refused.
import { type AskPawl, createAsk, type PawlOptions, PawlUnavailable } from './pawl.ts'

export type Factors = 'POSSESSION' | 'POSSESSION_KNOWLEDGE' | 'POSSESSION_BIOMETRY'

export interface GuardOptions extends PawlOptions {
  /** Largest body that is read, in bytes; 131072 by default, as pawl judges no larger one. */
  readonly bodyBytesMax?: number
  /** Is told why a request was refused. For the log of the bank: the phone never learns it. */
  readonly onRefusal?: (refusal: Refusal) => void
}

/** A request of a phone, as the bank received it. */
export interface Incoming {
  /** In upper case. */
  readonly method: string
  /** Names in lower case, as Node gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** What stands behind the `?` of the URL, as it came. */
  readonly query: string
  /** The bytes as they came, before anything parsed them. */
  readonly body: Uint8Array
  /** Address of the phone. */
  readonly address: string
}

export interface CodeOptions {
  /** What app and bank agreed on, at most 1024 characters. */
  readonly resourceId: string
  /** POSSESSION_KNOWLEDGE and POSSESSION_BIOMETRY by default. */
  readonly factors?: readonly Factors[]
  /** A registration with one of these flags is refused. */
  readonly refusedFlags?: readonly string[]
  /** A registration without one of these flags is refused. */
  readonly requiredFlags?: readonly string[]
}

export interface TokenOptions extends Omit<CodeOptions, 'resourceId'> {
  /** True for reads that come again and again: the same header is then good for as long as its time is. False by default. */
  readonly isRepeatable?: boolean
}

export interface EncryptionOptions {
  /** ACTIVATION by default. APPLICATION is for phones that are not bound, and its credential needs the right `envelopes:application`. */
  readonly scope?: 'ACTIVATION' | 'APPLICATION'
  /** For a request that is signed as well. */
  readonly code?: CodeOptions
}

/** Parameters of a route's path, decoded once. Nothing of the query is among them. */
export type PathParameters = Readonly<Record<string, string>>

/** As CodeOptions; the resource id may follow from the path. */
export interface RouteCodeOptions extends Omit<CodeOptions, 'resourceId'> {
  readonly resourceId: string | ((path: PathParameters) => string)
}

export interface RouteEncryptionOptions extends Omit<EncryptionOptions, 'code'> {
  readonly code?: RouteCodeOptions
}

/** Who sent a request. `request.pawl` of a handler behind the guard. */
export interface Verified {
  /** Absent for an envelope of the application scope. */
  readonly userId?: string
  readonly activationId?: string
  /** The factors that were proven; none where only an envelope was opened. */
  readonly factors: readonly Factors[]
  readonly protocolVersion: string
  readonly flags: readonly string[]
  readonly applicationVersion?: string
  /** What the code covers: the body, or the query. Absent where there is no code. */
  readonly covered?: 'BODY' | 'QUERY'
  /** False for envelopes of the versions 3.0 and 3.1, which may come a second time; true for everything else. */
  readonly isReplayProtected: boolean
}

/** An opened request, and what seals its answer. */
export interface OpenedRequest {
  readonly verified: Verified
  readonly plaintext: Buffer
  /** Seals the answer, once. Gives the JSON for the phone. Throws PawlUnavailable. */
  readonly seal: (plaintext: Uint8Array) => Promise<string>
}

/** How a phone is answered that is not served. `reason` is for the log alone. */
export class Refusal extends Error {
  readonly status: 400 | 401 | 413 | 503
  readonly body: string
  readonly reason: string
  constructor(status: Refusal['status'], reason: string, options?: ErrorOptions) {
    super(`refused with ${status}: ${reason}`, options)
    this.name = 'Refusal'
    this.status = status
    this.reason = reason
    this.body = BODIES[status]
  }
}

export interface Guard {
  /** Who signed the request. Throws Refusal. */
  readonly checkCode: (incoming: Incoming, options: CodeOptions) => Promise<Verified>
  /** Whose token the request carries. The token covers neither the body nor the query: use it for reads alone. Throws Refusal. */
  readonly checkToken: (incoming: Incoming, options?: TokenOptions) => Promise<Verified>
  /** Opens an encrypted request. Throws Refusal. */
  readonly open: (incoming: Incoming, options?: EncryptionOptions) => Promise<OpenedRequest>
  /** The refusal that anything thrown means: whatever it is, the request is not served. */
  readonly refusalOf: (thrown: unknown) => Refusal
  readonly bodyBytesMax: number
}

/** The guard in front of the bank's endpoints. Every failure is a refusal; nothing lets a request through but a verdict of pawl. */
export function createGuard(options: GuardOptions): Guard {
  const ask = createAsk(options)
  const { bodyBytesMax = 131_072, onRefusal } = options
  return {
    checkCode: (incoming, code) => checkCode(ask, incoming, code),
    checkToken: (incoming, token = {}) => checkToken(ask, incoming, token),
    open: (incoming, encryption = {}) => openEnvelope(ask, incoming, encryption),
    refusalOf: (thrown) => {
      const refusal = toRefusal(thrown)
      try {
        onRefusal?.(refusal)
      } catch {
        // The phone is refused, whatever a log does. In Express 4 it would end the process.
      }
      return refusal
    },
    bodyBytesMax,
  }
}

/**
 * What a route asks of the code. `params`: of the path, as the framework decoded them. Throws Refusal for one that is a list or holds a slash:
 * `a/b` as one parameter of a route and as two of another would make one resource id, and a code for the one would be good at the other.
 */
export function codeOfRoute({ resourceId, ...code }: RouteCodeOptions, params: unknown): CodeOptions {
  if (typeof resourceId === 'string') return { ...code, resourceId }
  const path = recordOf(params)
  const isAmbiguous = Object.values(path).some((value) => typeof value !== 'string' || value.includes('/'))
  if (isAmbiguous) throw new Refusal(401, 'PATH_AMBIGUOUS')
  return { ...code, resourceId: resourceId(path as PathParameters) }
}

/** Call it where a route is set up: it throws TypeError when no code can stand for the resource id. */
export function requireResourceId({ resourceId }: RouteCodeOptions): void {
  if (typeof resourceId !== 'function' && !isResourceId(resourceId))
    throw new TypeError(`the resource id ${JSON.stringify(resourceId)} ${RESOURCE_ID_RULE}`)
}

async function checkCode(ask: AskPawl, incoming: Incoming, options: CodeOptions): Promise<Verified> {
  const authorization = headerOf(incoming, 'authorization')
  const { method, body, query } = incoming
  // pawl would call a longer one a mistake of the bank. Node gives none, unless its `maxHeaderSize` was raised.
  if (query.length > QUERY_MAX) throw new Refusal(401, 'QUERY_TOO_LONG')
  if (method === 'GET' || body.length === 0) refuseMisread(query)
  const verdict = await ask('/verification/code', {
    authorization,
    ...composeCode(method, options),
    ...(body.length > 0 && { body: base64(body) }),
    ...(query !== '' && { query }),
    client: clientOf(incoming),
  })
  const verified = readVerdict(verdict)
  // A GET and a DELETE are asked by their query. Where the code covers a body (4.0), whoever moved the signed text there chose the query. A DELETE
  // without a body is served: in 3.x no code covers its query, and published clients send such requests.
  const isMoved = method === 'GET' || (method === 'DELETE' && body.length > 0)
  if (isMoved && verified.covered === 'BODY' && query !== '') throw new Refusal(401, 'QUERY_NOT_COVERED')
  return verified
}

async function checkToken(ask: AskPawl, incoming: Incoming, options: TokenOptions): Promise<Verified> {
  const token = headerOf(incoming, 'token')
  return readVerdict(await ask('/verification/token', { token, ...options, client: clientOf(incoming) }))
}

async function openEnvelope(ask: AskPawl, incoming: Incoming, options: EncryptionOptions): Promise<OpenedRequest> {
  const { scope = 'ACTIVATION', code } = options
  const envelope = readEnvelope(incoming.body)
  const header = code
    ? { authorization: headerOf(incoming, 'authorization'), code: composeCode(incoming.method, code) }
    : { encryption: headerOf(incoming, 'encryption') }
  const answer = await ask('/encryption/open', { scope, ...header, envelope, client: clientOf(incoming) })
  if (answer['isOpened'] !== true) throw new Refusal(400, wordOf(answer['reason']))
  // A right envelope with a wrong code is a wrong request.
  const proven = code ? readVerdict(recordOf(answer['verdict'])) : undefined
  const { plaintext, sealTicket } = answer
  if (typeof plaintext !== 'string' || typeof sealTicket !== 'string') throw new PawlUnavailable('pawl opened nothing')
  return {
    verified: {
      ...describeSender(answer),
      factors: proven?.factors ?? [],
      flags: proven?.flags ?? [],
      ...(proven?.covered && { covered: proven.covered }),
      isReplayProtected: answer['isReplayProtected'] !== false,
    },
    plaintext: Buffer.from(plaintext, 'base64'),
    seal: async (bytes) => JSON.stringify(await ask('/encryption/seal', { sealTicket, plaintext: base64(bytes) })),
  }
}

/** The verdict of a door, when it is a good one. Throws Refusal for every other, and for one that cannot be read. */
function readVerdict(verdict: Readonly<Record<string, unknown>>): Verified {
  if (verdict['isValid'] !== true) throw new Refusal(401, wordOf(verdict['reason']))
  const { covered } = verdict
  const sender = describeSender(verdict)
  if (sender.userId === undefined || sender.activationId === undefined) throw new PawlUnavailable('a verdict of nobody')
  return {
    ...sender,
    // The API writes one word for the factors of a code, and so does the token.
    factors: [verdict['factors']].flat().filter((factor): factor is Factors => typeof factor === 'string'),
    flags: [verdict['flags']].flat().filter((flag) => typeof flag === 'string'),
    ...((covered === 'BODY' || covered === 'QUERY') && { covered }),
    isReplayProtected: true,
  }
}

function describeSender({ userId, activationId, protocolVersion, applicationVersion }: Readonly<Record<string, unknown>>) {
  if (typeof protocolVersion !== 'string') throw new PawlUnavailable('an answer without a protocol version')
  return {
    ...(typeof userId === 'string' && { userId }),
    ...(typeof activationId === 'string' && { activationId }),
    ...(typeof applicationVersion === 'string' && { applicationVersion }),
    protocolVersion,
  }
}

/** Throws Refusal for what no code can stand for: pawl would call it a mistake of the bank. */
function composeCode(method: string, { resourceId, factors, refusedFlags, requiredFlags }: CodeOptions) {
  if (!METHODS.has(method)) throw new Refusal(401, 'METHOD')
  if (!isResourceId(resourceId)) throw new Refusal(401, 'RESOURCE_ID')
  return {
    method,
    resourceId,
    ...(factors && { factors }),
    ...(refusedFlags && { refusedFlags }),
    ...(requiredFlags && { requiredFlags }),
  }
}

/** Throws Refusal for a query that the parser of a framework may read otherwise than the code covers it. */
function refuseMisread(query: string): void {
  // The code covers parts in any order, and none without an equals sign. So anybody could push a signed part to where the parser ends.
  if (query.split('&').length > QUERY_PARTS_MAX) throw new Refusal(401, 'QUERY_TOO_LONG')
  // For the code a percent sign that encodes nothing stands for itself. Parsers leave the whole value encoded.
  if (/%(?![\dA-Fa-f]{2})/.test(query)) throw new Refusal(401, 'QUERY_MALFORMED')
}

/** The value of a protocol header, by either of its names. A request with two that differ has none. Throws Refusal. */
function headerOf({ headers }: Incoming, kind: keyof typeof HEADERS): string {
  const values = new Set(HEADERS[kind].map((name) => headers[name]).filter((value) => value !== undefined))
  const [value] = values
  // pawl takes neither an empty one nor a longer one than this, and would call it a mistake of the bank.
  if (values.size !== 1 || typeof value !== 'string' || value === '') throw new Refusal(401, 'HEADER_MISSING')
  if (value.length > HEADER_MAX) throw new Refusal(401, 'HEADER_MALFORMED')
  return value
}

function readEnvelope(body: Uint8Array): object {
  try {
    const envelope: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    if (typeof envelope === 'object' && envelope !== null && !Array.isArray(envelope) && Object.entries(envelope).every(isMember))
      return envelope
  } catch {
    // Refused below.
  }
  throw new Refusal(400, 'ENVELOPE')
}

/** Members of every envelope are words with Base64 or a number. Others pawl would call a mistake of the bank. */
const isMember = ([name, value]: readonly [string, unknown]): boolean =>
  /^[a-zA-Z]+$/.test(name) && (typeof value === 'number' || (typeof value === 'string' && /^[\x20-\x7E]*$/.test(value)))

function clientOf({ address, headers }: Incoming) {
  const userAgent = headers['user-agent']
  return { address, ...(typeof userAgent === 'string' && { userAgent: userAgent.slice(0, USER_AGENT_MAX) }) }
}

function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new Refusal(503, message, { cause: thrown })
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
const wordOf = (reason: unknown): string => (typeof reason === 'string' ? reason : 'UNKNOWN')
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const errorBody = (code: string, message: string): string =>
  JSON.stringify({ status: 'ERROR', responseObject: { code, message } })

/** As phones know them from pawl's own endpoints. One body for whatever is wrong with a code, a token or a registration. */
const BODIES: Readonly<Record<Refusal['status'], string>> = {
  400: errorBody('ERR_ENCRYPTION', 'POWER_AUTH_ENCRYPTION_FAILED'),
  401: errorBody('ERR_AUTHENTICATION', 'POWER_AUTH_SIGNATURE_INVALID'),
  413: errorBody('ERR_VALIDATION', 'POWER_AUTH_REQUEST_INVALID'),
  503: errorBody('ERROR_GENERIC', 'POWER_AUTH_UNAVAILABLE'),
}

const HEADERS = {
  authorization: ['x-powerauth-authorization', 'x-svc-authorization'],
  token: ['x-powerauth-token', 'x-svc-token'],
  encryption: ['x-powerauth-encryption', 'x-svc-encryption'],
} as const

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** Whether pawl takes a text for a resource id. Those with these beginnings belong to its own endpoints. */
const isResourceId = (text: unknown): boolean =>
  typeof text === 'string' && RESOURCE_ID.test(text) && !RESERVED.some((beginning) => text.startsWith(beginning))
// oxlint-disable-next-line no-control-regex -- they are what is refused
const RESOURCE_ID = /^[^\u0000-\u001F\u007F]{1,1024}$/
const RESERVED = ['/pa/', '/operation/', '/api/']
const RESOURCE_ID_RULE = `must have 1 to 1024 characters, no control characters, and must not begin with ${RESERVED.join(', ')}`
const HEADER_MAX = 4_096
const QUERY_MAX = 16_384
/** What the parsers of Express read; they leave out the rest. */
const QUERY_PARTS_MAX = 1_000
const USER_AGENT_MAX = 255
