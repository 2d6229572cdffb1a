// Reads and writes the parts of a temporary key exchange that both generations share: the signed request, and the claims of the answer (v3 §7, v4 §4;
// RFC 7515).
import { parseBase64, parseBase64Url, toBase64Url } from '../../lib/base64.ts'
import { parseUtf8, utf8 } from '../../lib/bytes.ts'
import { findMemberTwice, isJsonObject } from '../../lib/json.ts'
import type { TemporaryKeyTerms } from '../protocol.ts'
import { parseUuid } from './members.ts'

/** A compact JWS that asks for a temporary key, its MAC not yet checked. */
interface TemporaryKeyJws {
  readonly applicationKey: string
  readonly activationId: string | undefined
  readonly challenge: string
  readonly claims: Readonly<Record<string, unknown>>
  /** The bytes that the MAC covers (RFC 7515 §5.2). */
  readonly covered: Uint8Array
  /** Any number of bytes, as sent. Compare it in constant time. */
  readonly mac: Uint8Array
}

/**
 * Parses a temporary key request. Undefined when the text is not a compact JWS, lacks a claim, has a member twice, or uses another algorithm than
 * `alg` (v3 §7.1, v4 §4.1).
 */
export function parseTemporaryKeyJws(jwt: string, alg: 'HS256' | 'HS384'): TemporaryKeyJws | undefined {
  const [headerText, payloadText, macText, ...rest] = jwt.split('.')
  if (headerText === undefined || payloadText === undefined || macText === undefined || rest.length > 0) return undefined
  const header = parseJwsPart(headerText)
  // RFC 7515 §4.1.11: a critical extension that is not understood makes the JWS invalid; none is understood here.
  if (header?.['alg'] !== alg || header['crit'] !== undefined) return undefined
  const claims = parseJwsPart(payloadText)
  const applicationKey = claims?.['applicationKey']
  const challenge = claims?.['challenge']
  const mac = parseBase64Url(macText)
  if (!mac || !claims || typeof applicationKey !== 'string' || typeof challenge !== 'string') return undefined
  const activationIdClaim = claims['activationId'] ?? undefined
  const activationId = parseUuid(activationIdClaim)
  if (!parseBase64(applicationKey, 16) || (activationIdClaim !== undefined && !activationId)) return undefined
  return { applicationKey, activationId, challenge, claims, covered: utf8(`${headerText}.${payloadText}`), mac }
}

/** A JSON value as a part of a JWS (RFC 7515 §3). */
export const toJwsPart = (value: object): string => toBase64Url(utf8(JSON.stringify(value)))

/** The values of an answer to a temporary key request, except the key itself (v3 §7.2, v4 §4.3). */
export interface TemporaryKeyTermsAnswer extends Omit<TemporaryKeyTerms, 'salt'> {
  readonly applicationKey: string
  readonly activationId: string | undefined
  readonly challenge: string
}

/** The claims of an answer. `key` is the member that a generation adds. */
export const composeTemporaryKeyClaims = <Key extends object>(answer: TemporaryKeyTermsAnswer, key: Key) => ({
  sub: answer.temporaryKeyId,
  applicationKey: answer.applicationKey,
  ...(answer.activationId !== undefined && { activationId: answer.activationId }),
  challenge: answer.challenge,
  ...key,
  iat: Math.floor(answer.issuedAt / 1000),
  exp: Math.floor(answer.expiresAt / 1000),
  iat_ms: answer.issuedAt,
  exp_ms: answer.expiresAt,
})

/** Parses a part of a JWS that is a JSON object. Undefined for any other text, and for an object with the same member twice. */
export function parseJwsPart(base64Url: string): Record<string, unknown> | undefined {
  const bytes = parseBase64Url(base64Url)
  const text = bytes && parseUtf8(bytes)
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) && findMemberTwice(text) === undefined ? value : undefined
  } catch {
    return undefined
  }
}
