// The first stage: it finds the spelling of the headers, and the generation of the protocol that reads them.
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Protocol } from '../../protocol/protocol.ts'
import { type Dialect, type ProtocolHeaders, readProtocolHeaders } from '../headers.ts'

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
  /** The body is JSON: another content type is refused. */
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
  const violations = [{ fieldName: 'Content-Type', hint: 'must be application/json' }]
  throw new PawlError('REQUEST_INVALID', { detail: 'wrong content type', violations })
}

const JSON_CONTENT_TYPE = /^application\/json\s*(;|$)/i
