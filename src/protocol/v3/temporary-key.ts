// Request and answer of the temporary key exchange, both compact JWS (v3 §7; RFC 7515).
import type { KeyObject } from 'node:crypto'
import { SignJWT } from 'jose'
import { hmac } from '../../crypto/hmac.ts'
import { exportPrivateKey, generateKeyPair } from '../../crypto/key.ts'
import { parseBase64, toBase64, toBase64Url } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { TemporaryKeyRequest, TemporaryKeyTerms } from '../protocol.ts'
import { parseUuid } from './identifier.ts'
import { type ActivationKeys, kdfInternal } from './key-schedule.ts'

/** What the answer to a temporary key request says (v3 §7.2). */
export interface TemporaryKeyAnswer extends Omit<TemporaryKeyTerms, 'salt'> {
  readonly applicationKey: string
  readonly activationId: string | undefined
  readonly challenge: string
  /** Uncompressed point, 65 bytes. */
  readonly publicKey: Uint8Array
}

/** Undefined when the JWT does not parse, lacks a claim, or uses another algorithm than HS256 (v3 §7.1). */
export function parseTemporaryKeyRequest(jwt: string): TemporaryKeyRequest<Pick<ActivationKeys, 'keyTransport'>> | undefined {
  const [headerText, payloadText, macText, ...rest] = jwt.split('.')
  if (headerText === undefined || payloadText === undefined || macText === undefined || rest.length > 0) return undefined
  const header = parseJson(headerText)
  // RFC 7515 §4.1.11: a critical extension that is not understood makes the JWS invalid; none is understood here.
  if (header?.['alg'] !== 'HS256' || header['crit'] !== undefined) return undefined
  const mac = parseBase64Url(macText)
  const claims = parseJson(payloadText)
  const applicationKey = claims?.['applicationKey']
  const challenge = claims?.['challenge']
  if (!mac || typeof applicationKey !== 'string' || typeof challenge !== 'string') return undefined
  const activationIdClaim = claims?.['activationId'] ?? undefined
  const activationId = parseUuid(activationIdClaim)
  if (!parseBase64(applicationKey, 16) || (activationIdClaim !== undefined && !activationId)) return undefined
  const covered = utf8(`${headerText}.${payloadText}`)
  return {
    applicationKey,
    activationId,
    challenge,
    algorithm: 'EC_P256',
    verify: (applicationSecret, activationKeys) => {
      // The claim decides the scope: without this line, a key of the wrong scope would be tried.
      if ((activationId === undefined) !== (activationKeys === undefined)) return false
      const key = deriveRequestKey(applicationSecret, activationKeys?.keyTransport)
      return key !== undefined && equalConstantTime(mac, hmac(key, covered))
    },
    issue: async (terms, { ecdsa }) => {
      const { privateKey, publicKey } = generateKeyPair('P-256')
      const answer = { ...terms, applicationKey, activationId, challenge, publicKey }
      return { envelopeKey: exportPrivateKey(privateKey), jwt: await createTemporaryKeyAnswer(answer, ecdsa) }
    },
  }
}

/** HS256 key, 16 bytes, from the decoded application secret; in activation scope derived with KEY_TRANSPORT (v3 §7.1). */
export function deriveRequestKey(applicationSecret: string, keyTransport: Uint8Array | undefined): Uint8Array | undefined {
  const secret = parseBase64(applicationSecret)
  return secret && keyTransport ? kdfInternal(keyTransport, secret) : secret
}

/** ES256, signed with the master key or KEY_SERVER_PRIVATE (v3 §7.2). */
export function createTemporaryKeyAnswer(answer: TemporaryKeyAnswer, signingKey: KeyObject): Promise<string> {
  const { temporaryKeyId, applicationKey, activationId, challenge, publicKey, issuedAt, expiresAt } = answer
  const claims = {
    sub: temporaryKeyId,
    applicationKey,
    ...(activationId === undefined ? {} : { activationId }),
    challenge,
    publicKey: toBase64(publicKey),
    iat: Math.floor(issuedAt / 1000),
    exp: Math.floor(expiresAt / 1000),
    iat_ms: issuedAt,
    exp_ms: expiresAt,
  }
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', typ: 'JWT' }).sign(signingKey)
}

function parseJson(base64Url: string): Record<string, unknown> | undefined {
  const bytes = parseBase64Url(base64Url)
  try {
    const value: unknown = bytes && JSON.parse(utf8Decoder.decode(bytes))
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

/** Strict: only the one text that encodes the bytes is accepted. */
function parseBase64Url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return toBase64Url(bytes) === text ? bytes : undefined
}

const utf8Decoder = new TextDecoder('utf-8', { fatal: true })
