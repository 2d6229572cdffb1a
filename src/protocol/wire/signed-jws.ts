// Parses a JWS that a phone signed with its device keys: compact, or in the general JSON serialisation with a signature of each key (RFC 7515 §7.1,
// §7.2.1). The parser is strict, because another reader might interpret ignored parts differently.
import { parseBase64Url } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import { findMemberTwice, isJsonObject } from '../../lib/json.ts'
import type { SignatureAlgorithm } from '../protocol.ts'
import { parseJwsPart } from './jws.ts'

/** One signature of a JWS, not yet verified. */
interface JwsSignature {
  readonly algorithm: SignatureAlgorithm
  /** The bytes that the signature covers (RFC 7515 §5.2). */
  readonly covered: Uint8Array
  /** As many bytes as the algorithm prescribes. ECDSA is r ‖ s. */
  readonly signature: Uint8Array
}

/** A JWS, its signatures not yet verified. */
interface SignedJws {
  /** At least one byte. */
  readonly payload: Uint8Array
  /** At least one signature, each by another algorithm. */
  readonly signatures: readonly JwsSignature[]
}

/** Parses a JWS. Undefined for a text that is no such JWS, and for one that two readers could read differently. */
export function parseSignedJws(text: string): SignedJws | undefined {
  const { payload: payloadText, parts } = text.includes('{') ? parseGeneral(text) : parseCompact(text)
  const payload = payloadText === undefined ? undefined : parseBase64Url(payloadText)
  // An empty payload indicates a detached one (RFC 7515, appendix F). It is refused, because the signed bytes are then not in the text.
  if (payloadText === undefined || payload === undefined || payload.length === 0) return undefined
  const signatures = parts.map((part) => parseSignature(part, payloadText))
  if (signatures.length === 0 || !signatures.every((signature) => signature !== undefined)) return undefined
  const isOneTwice = new Set(signatures.map(({ algorithm }) => algorithm)).size < signatures.length
  return isOneTwice ? undefined : { payload, signatures }
}

/** The texts of a JWS before they are decoded. */
interface JwsTexts {
  readonly payload: string | undefined
  readonly parts: readonly JwsPart[]
}

interface JwsPart {
  readonly header: string
  readonly signature: string
}

const NONE: JwsTexts = { payload: undefined, parts: [] }

function parseCompact(text: string): JwsTexts {
  const [header, payload, signature, ...rest] = text.split('.')
  return header === undefined || payload === undefined || signature === undefined || rest.length > 0
    ? NONE
    : { payload, parts: [{ header, signature }] }
}

/** Refuses other members, also a header that no signature covers, and a single signature without a list. */
function parseGeneral(text: string): JwsTexts {
  const { payload, signatures } = parseExactly(text, ['payload', 'signatures']) ?? {}
  if (typeof payload !== 'string' || !Array.isArray(signatures) || signatures.length > SIGNATURES_MAX) return NONE
  const parts = signatures.map((entry: unknown) => {
    const { protected: header, signature } = hasExactly(entry, ['protected', 'signature']) ? entry : {}
    return typeof header === 'string' && typeof signature === 'string' ? { header, signature } : undefined
  })
  return parts.every((part) => part !== undefined) ? { payload, parts } : NONE
}

function parseExactly(text: string, names: readonly string[]): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return hasExactly(value, names) && findMemberTwice(text) === undefined ? value : undefined
  } catch {
    return undefined
  }
}

const hasExactly = (value: unknown, names: readonly string[]): value is Record<string, unknown> =>
  isJsonObject(value) && Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name))

function parseSignature({ header, signature: text }: JwsPart, payload: string): JwsSignature | undefined {
  const { alg, ...others } = parseJwsPart(header) ?? {}
  const algorithm = [...SIGNATURE_LENGTHS.keys()].find((name) => name === alg)
  const signature = parseBase64Url(text)
  if (algorithm === undefined || signature === undefined || signature.length !== SIGNATURE_LENGTHS.get(algorithm))
    return undefined
  if (REFUSED_HEADERS.some((name) => Object.hasOwn(others, name))) return undefined
  return { algorithm, covered: utf8(`${header}.${payload}`), signature }
}

/** Lengths in bytes (RFC 7518 §3.4, FIPS 204 §4). */
const SIGNATURE_LENGTHS: ReadonlyMap<SignatureAlgorithm, number> = new Map([
  ['ES256', 64],
  ['ES384', 96],
  ['ML-DSA-65', 3309],
  ['ML-DSA-87', 4627],
])

/**
 * Headers for an extension that must be understood, for another form of the payload, and for keys that the sender brings along (RFC 7515 §4.1, RFC
 * 7797 §3).
 */
const REFUSED_HEADERS = ['crit', 'b64', 'jwk', 'jku', 'x5c', 'x5u']
/** No phone has more than two device keys. */
const SIGNATURES_MAX = 2
