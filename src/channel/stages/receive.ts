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
  /** Address of the caller, behind trusted proxies the one they name. */
  readonly ip: string
}

/** Who sends a request, beside what it proves. */
export interface Client {
  readonly ip: string
  readonly userAgent: string | undefined
  readonly acceptLanguage: string | undefined
}

/** A request whose headers agree. */
export interface Received {
  readonly request: DeviceRequest
  readonly headers: ProtocolHeaders
  /** The generation of the protocol that the headers speak. */
  readonly protocol: Protocol
  readonly dialect: Dialect
  readonly client: Client
}

interface ReceiveTerms {
  /** The body is JSON: another content type is refused. */
  readonly isJson: boolean
  /** How headers that contradict each other are refused; undefined where the endpoint reads none of them. */
  readonly contradiction: ErrorCode | undefined
}

/** Refuses another content type than JSON (REQUEST_INVALID), and headers that contradict each other (`contradiction`). */
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

/** The generation that reads the first of the headers; the first generation where none does. */
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

/** No code covers the content type, so it is refused before anything is checked. None at all is taken for JSON. */
function refuseContentType({ contentType, body }: DeviceRequest): void {
  if (body.length === 0 || contentType === undefined || JSON_CONTENT_TYPE.test(contentType)) return
  const violations = [{ fieldName: 'Content-Type', hint: 'must be application/json' }]
  throw new PawlError('REQUEST_INVALID', { detail: 'wrong content type', violations })
}

const JSON_CONTENT_TYPE = /^application\/json\s*(;|$)/i
