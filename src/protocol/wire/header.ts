// Parses the three protocol headers: authorization, token, encryption (v3 §5.2, v4 §6). A generation passes in its own rules.
import { FACTOR_COMBINATIONS, type Factors, type HeaderParsers } from '../protocol.ts'
import { parseUuid } from './members.ts'

/** The rules of a generation for the values in a header. */
interface HeaderRules {
  /** Names of factors and code in the authorization header. */
  readonly factorsName: string
  readonly codeName: string
  /** If true, a name may repeat, and its last value counts. Otherwise such a header is invalid. */
  readonly mayRepeatNames: boolean
  readonly isVersion: (text: string) => boolean
  /** Bytes of Base64 of this length; undefined for anything else. */
  readonly parseBytes: (text: string, length: number) => Uint8Array | undefined
  readonly isCode: (text: string) => boolean
  /** Milliseconds as the text of a token header. */
  readonly timestamp: RegExp
}

/** The parsers of a generation. */
export function createHeaderParsers(rules: HeaderRules): HeaderParsers {
  const keep = (text: string | undefined, isGood: (text: string) => boolean) =>
    text !== undefined && isGood(text) ? text : undefined
  const parseBytes = (text: string | undefined, length: number) =>
    text === undefined ? undefined : rules.parseBytes(text, length)
  const parseVersion = (text: string | undefined) => keep(text, rules.isVersion)
  const parseApplicationKey = (text: string | undefined) => parseBytes(text, APPLICATION_KEY_LENGTH) && text
  return {
    parseAuthorizationHeader: (value, schemes) => {
      const pairs = parsePairs(value, schemes, rules)
      const version = parseVersion(pairs?.get('pa_version'))
      const activationId = parseUuid(pairs?.get('pa_activation_id'))
      const applicationKey = parseApplicationKey(pairs?.get('pa_application_key'))
      const nonce = parseBytes(pairs?.get('pa_nonce'), NONCE_LENGTH)
      const factors = parseFactors(pairs?.get(rules.factorsName))
      const code = keep(pairs?.get(rules.codeName), rules.isCode)
      if (!version || !activationId || !applicationKey || !nonce || !factors || !code) return undefined
      return { version, activationId, applicationKey, nonce, factors, code }
    },
    parseTokenHeader: (value, schemes) => {
      const pairs = parsePairs(value, schemes, rules)
      const version = parseVersion(pairs?.get('version'))
      const tokenId = parseUuid(pairs?.get('token_id'))
      const digest = parseBytes(pairs?.get('token_digest'), DIGEST_LENGTH)
      const nonce = parseBytes(pairs?.get('nonce'), NONCE_LENGTH)
      const timestamp = keep(pairs?.get('timestamp'), (text) => rules.timestamp.test(text))
      if (!version || !tokenId || !digest || !nonce || timestamp === undefined) return undefined
      return { version, tokenId, digest, nonce, timestamp: Number(timestamp) }
    },
    parseEncryptionHeader: (value, schemes) => {
      const pairs = parsePairs(value, schemes, rules)
      const version = parseVersion(pairs?.get('version'))
      const applicationKey = parseApplicationKey(pairs?.get('application_key'))
      const activationIdText = pairs?.get('activation_id')
      const activationId = parseUuid(activationIdText)
      if (!version || !applicationKey || (activationIdText !== undefined && !activationId)) return undefined
      return { version, applicationKey, activationId }
    },
  }
}

/** Whether a version of the protocol is older than another one, across generations. Every version text is one digit, a dot and one digit. */
export const isOlderVersion = (version: string, other: string): boolean => version < other

/**
 * `scheme key="text", key="text"`; undefined when the value has any other form. The expression is sticky: each match moves on or ends the scan, so
 * the time is linear in the length of the value.
 */
function parsePairs(
  value: string,
  schemes: readonly string[],
  { mayRepeatNames }: HeaderRules,
): ReadonlyMap<string, string> | undefined {
  const text = value.trim()
  const scheme = schemes.find((word) => text.startsWith(`${word} `))
  if (scheme === undefined) return undefined
  const pairs = new Map<string, string>()
  for (PAIR.lastIndex = scheme.length; PAIR.lastIndex < text.length; ) {
    const match = PAIR.exec(text)
    if (match === null) return undefined
    const [, key, content] = match
    // The rest is separators with no pair behind them.
    if (key === undefined || content === undefined) break
    if (pairs.has(key) && !mayRepeatNames) return undefined
    pairs.set(key, content)
  }
  return pairs
}

function parseFactors(text: string | undefined): Factors | undefined {
  // The text must be ASCII, because other letters change their length in upper case: ß would become SS.
  const upper = text !== undefined && /^[A-Za-z_]+$/.test(text) ? text.toUpperCase() : undefined
  return FACTOR_COMBINATIONS.find((factors) => factors === upper)
}

const PAIR = /[\s,]+(?:([A-Za-z0-9_-]+)="([^"]*)"|$)/y
const APPLICATION_KEY_LENGTH = 16
const NONCE_LENGTH = 16
const DIGEST_LENGTH = 32
