// The three header values of the device API: authorization, token, encryption (v4 §6).
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import {
  type AuthorizationHeader,
  type EncryptionHeader,
  FACTOR_COMBINATIONS,
  type Factors,
  type TokenHeader,
} from '../protocol.ts'
import { parseUuid } from './identifier.ts'
import { VERSION } from './versions.ts'

/** Undefined when the scheme is none of `schemes`, or a member is missing or malformed. */
export function parseAuthorizationHeader(value: string, schemes: readonly string[]): AuthorizationHeader | undefined {
  const pairs = parsePairs(value, schemes)
  const version = parseVersion(pairs?.get('pa_version'))
  const activationId = parseUuid(pairs?.get('pa_activation_id'))
  const applicationKey = parseApplicationKey(pairs?.get('pa_application_key'))
  const nonce = parseBytes(pairs?.get('pa_nonce'), NONCE_LENGTH)
  const factors = parseFactors(pairs?.get('pa_auth_code_type'))
  const code = parseCode(pairs?.get('pa_auth_code'))
  if (!version || !activationId || !applicationKey || !nonce || !factors || !code) return undefined
  return { version, activationId, applicationKey, nonce, factors, code }
}

/** Undefined when the scheme is none of `schemes`, or a member is missing or malformed. */
export function parseTokenHeader(value: string, schemes: readonly string[]): TokenHeader | undefined {
  const pairs = parsePairs(value, schemes)
  const version = parseVersion(pairs?.get('version'))
  const tokenId = parseUuid(pairs?.get('token_id'))
  const digest = parseBytes(pairs?.get('token_digest'), DIGEST_LENGTH)
  const nonce = parseBytes(pairs?.get('nonce'), NONCE_LENGTH)
  const timestamp = parseTimestamp(pairs?.get('timestamp'))
  if (!version || !tokenId || !digest || !nonce || timestamp === undefined) return undefined
  return { version, tokenId, digest, nonce, timestamp }
}

/**
 * Undefined when the scheme is none of `schemes`, or a member is missing or malformed. Whether activation_id has to be there
 * depends on the scope, which only the endpoint knows; one that is there and malformed is refused.
 */
export function parseEncryptionHeader(value: string, schemes: readonly string[]): EncryptionHeader | undefined {
  const pairs = parsePairs(value, schemes)
  const version = parseVersion(pairs?.get('version'))
  const applicationKey = parseApplicationKey(pairs?.get('application_key'))
  const activationIdText = pairs?.get('activation_id')
  const activationId = parseUuid(activationIdText)
  if (!version || !applicationKey || (activationIdText !== undefined && !activationId)) return undefined
  return { version, applicationKey, activationId }
}

/**
 * `scheme key="text", key="text"`; undefined when the value has any other form or names a key twice. Sticky expressions: each
 * one either moves on or ends the scan, so the time is linear in the length of the value.
 */
function parsePairs(value: string, schemes: readonly string[]): ReadonlyMap<string, string> | undefined {
  const text = value.trim()
  const scheme = schemes.find((word) => text.startsWith(`${word} `))
  if (scheme === undefined) return undefined
  const pairs = new Map<string, string>()
  let position = skipSeparators(text, scheme.length)
  while (position < text.length) {
    PAIR.lastIndex = position
    const [pair, key, content] = PAIR.exec(text) ?? []
    if (pair === undefined || key === undefined || content === undefined || pairs.has(key)) return undefined
    pairs.set(key, content)
    const end = position + pair.length
    position = skipSeparators(text, end)
    if (position === end && end < text.length) return undefined
  }
  return pairs
}

function skipSeparators(text: string, position: number): number {
  SEPARATORS.lastIndex = position
  SEPARATORS.exec(text)
  return SEPARATORS.lastIndex
}

const parseVersion = (text: string | undefined): string | undefined => (text === VERSION ? text : undefined)

const parseApplicationKey = (text: string | undefined): string | undefined => parseBytes(text, APPLICATION_KEY_LENGTH) && text

/** Strict: the nonce enters what a code covers as text, so only the one text that encodes the bytes is accepted (v4 §7.1). */
function parseBytes(text: string | undefined, length: number): Uint8Array | undefined {
  const bytes = text === undefined ? undefined : parseBase64(text, length)
  return bytes && toBase64(bytes) === text ? bytes : undefined
}

function parseFactors(text: string | undefined): Factors | undefined {
  const upper = text?.toUpperCase()
  return FACTOR_COMBINATIONS.find((factors) => factors === upper)
}

// The length is not compared with the factors here: a code of the wrong length fails verification, and counts as a failure.
const parseCode = (text: string | undefined): string | undefined =>
  CODE_LENGTHS.some((length) => parseBytes(text, length)) ? text : undefined

// The digest covers the text of the timestamp: without a leading zero the number has only one.
const parseTimestamp = (text: string | undefined): number | undefined =>
  text !== undefined && TIMESTAMP.test(text) ? Number(text) : undefined

const PAIR = /([A-Za-z0-9_-]+)="([^"]*)"/y
const SEPARATORS = /[\s,]*/y
const TIMESTAMP = /^[1-9]\d{8,14}$/
const APPLICATION_KEY_LENGTH = 16
const NONCE_LENGTH = 16
const DIGEST_LENGTH = 32
const CODE_LENGTHS = [32, 64, 96]
