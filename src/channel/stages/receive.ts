// Receives a request, as the first stage: finds the spelling of the headers, and the generation of the protocol that reads them. Also reads the
// authorization header, and the factors that it names.
import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorCode, PawlError, requestRefused } from '../../lib/errors.ts'
import type { AuthorizationHeader, Factors, Protocol } from '../../protocol/protocol.ts'

/** A request as it came over HTTP. */
export interface DeviceRequest {
  readonly method: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly contentType: string | undefined
  /** Raw bytes, empty when there is no body. */
  readonly body: Uint8Array
  /** Raw query string without its question mark. */
  readonly query: string | undefined
  /** The address of the caller; behind trusted proxies, the one that they name. */
  readonly ip: string
}

/** The sender of a request, as the network and the headers show it. */
export interface Client {
  readonly ip: string
  readonly userAgent: string | undefined
  readonly acceptLanguage: string | undefined
}

/** A request whose headers agree. */
export interface Received {
  readonly request: DeviceRequest
  readonly headers: ProtocolHeaders
  /** The generation of the protocol in which the headers are written. */
  readonly protocol: Protocol
  readonly dialect: Dialect
  readonly client: Client
}

interface ReceiveTerms {
  /** Whether the body is JSON. Another content type is then refused. */
  readonly isJson: boolean
  /** The error code for headers that contradict each other; undefined when the endpoint reads none of them. */
  readonly contradiction: ErrorCode | undefined
}

/**
 * Receives a request. Throws REQUEST_INVALID for a content type other than JSON, and `contradiction` for headers that contradict each other.
 */
export function receive(protocols: readonly Protocol[], request: DeviceRequest, terms: ReceiveTerms): Received {
  const { headers, ip } = request
  if (terms.isJson) refuseContentType(request)
  const protocolHeaders = readProtocolHeaders(headers)
  if (terms.contradiction !== undefined && protocolHeaders.isMalformed)
    throw new PawlError(terms.contradiction, { detail: 'protocol headers contradict each other' })
  const protocol = selectProtocol(protocols, protocolHeaders)
  const client = { ip, userAgent: headers['user-agent']?.toString(), acceptLanguage: headers['accept-language']?.toString() }
  return { request, headers: protocolHeaders, protocol, dialect: protocolHeaders.dialect, client }
}

/** The generation that can parse the first of the headers; the first generation if none can. */
function selectProtocol(
  protocols: readonly Protocol[],
  { authorization, token, encryption, schemes }: ProtocolHeaders,
): Protocol {
  const [first, ...others] = protocols
  if (first === undefined) throw new TypeError('an endpoint without a generation of the protocol')
  if (others.length === 0) return first
  const reads = (candidate: Protocol): boolean => {
    if (authorization !== undefined) return candidate.parseAuthorizationHeader(authorization, schemes) !== undefined
    if (token !== undefined) return candidate.parseTokenHeader(token, schemes) !== undefined
    return encryption !== undefined && candidate.parseEncryptionHeader(encryption, schemes) !== undefined
  }
  return protocols.find(reads) ?? first
}

/**
 * Refuses a content type other than JSON before any check, because no code covers the content type. A body without a content type counts as
 * JSON.
 */
function refuseContentType({ contentType, body }: DeviceRequest): void {
  if (body.length === 0 || contentType === undefined || JSON_CONTENT_TYPE.test(contentType)) return
  throw requestRefused('Content-Type', 'must be application/json')
}

const JSON_CONTENT_TYPE = /^application\/json\s*(;|$)/i

/** The parsed authorization header. Throws `malformed` for one that cannot be parsed, and refuses a request without one. */
export function readAuthorization(received: Received, malformed: ErrorCode, missing = malformed): AuthorizationHeader {
  const header = readAnyAuthorization(received, malformed)
  if (header === undefined) throw new PawlError(missing, { detail: 'no authorization header' })
  return header
}

/** The parsed authorization header of a request without a code; undefined without a header. Its envelope may be bound to values of the header. */
export function readAnyAuthorization({ protocol, headers }: Received, malformed: ErrorCode): AuthorizationHeader | undefined {
  const { authorization, schemes } = headers
  if (authorization === undefined) return undefined
  const header = protocol.parseAuthorizationHeader(authorization, schemes)
  if (header === undefined) throw new PawlError(malformed, { detail: 'malformed authorization header' })
  return header
}

/** Refuses factors that the endpoint does not take, before anything is computed. Counter and failures stay (v3 §10.5). */
export function checkFactors({ factors }: AuthorizationHeader, allowed: readonly Factors[], code: ErrorCode): void {
  if (!allowed.includes(factors)) throw new PawlError(code, { detail: `factors ${factors} are not allowed here` })
}

/** The spelling of headers: `svc` is that of the API contract, `powerauth` that of the published SDKs. Without headers it is `powerauth`. */
export type Dialect = 'svc' | 'powerauth'

interface ProtocolHeaders {
  readonly dialect: Dialect
  /** The scheme words that the dialect accepts at the start of a value. */
  readonly schemes: readonly string[]
  readonly authorization: string | undefined
  readonly token: string | undefined
  readonly encryption: string | undefined
  /** Whether one header came in both spellings with different values, or two headers in different spellings. */
  readonly isMalformed: boolean
}

/** Reads the headers; values are not parsed yet. */
export function readProtocolHeaders(headers: IncomingHttpHeaders): ProtocolHeaders {
  const spellings = new Set<Dialect>()
  let conflicts = false
  const read = (name: string): string | undefined => {
    const svc = headers[`x-svc-${name}`]
    const powerAuth = headers[`x-powerauth-${name}`]
    if (svc !== undefined && powerAuth !== undefined) {
      conflicts ||= svc !== powerAuth
      return String(powerAuth)
    }
    const value = svc ?? powerAuth
    if (value === undefined) return undefined
    spellings.add(svc === undefined ? 'powerauth' : 'svc')
    return String(value)
  }
  const [authorization, token, encryption] = [read('authorization'), read('token'), read('encryption')]
  const isMalformed = conflicts || spellings.size > 1
  const dialect: Dialect = !isMalformed && spellings.has('svc') ? 'svc' : 'powerauth'
  return { dialect, schemes: SCHEMES[dialect], authorization, token, encryption, isMalformed }
}

const SCHEMES: Record<Dialect, readonly string[]> = { svc: ['Svc', 'PowerAuth'], powerauth: ['PowerAuth'] }
