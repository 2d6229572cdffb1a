// Fetches the key set (JWKS) of an authorization server or OpenID provider, and remembers it for a while.
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose'
import * as errors from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { isJsonObject, JsonFault, parseForeignObject } from '../../lib/json.ts'
import { keepAnswer } from '../../lib/kept-answer.ts'
import { describeStatus, OutboundError, sendOutbound, type TargetRules } from '../../lib/outbound.ts'

interface KeySet {
  readonly keys: readonly object[]
}

/** The address of a key set, and its name in errors. */
interface KeySetAddress {
  readonly name: string
  readonly url: string
  readonly rules: TargetRules
}

/** Finds keys for jose. */
export interface FoundKeys {
  readonly find: JWTVerifyGetKey
  /** Throws KeysMissing when `find` would throw it because no key set is known. */
  readonly ready: () => Promise<void>
}

/** The error when the key set could not be fetched. Nothing is known about the token then. */
export class KeysMissing extends Error {}

/**
 * Finds keys in a key set that is remembered for ten minutes. For an unknown key it is fetched again at most twice a minute, and after a failure at
 * most every five seconds. Throws KeysMissing. jose's own cache goes by the wall clock, so it is not used.
 */
export function findKeys(ask: () => Promise<KeySet>, { name }: Pick<KeySetAddress, 'name'>, monotonic: () => number): FoundKeys {
  const askOrRefuse = (): Promise<KeySet> =>
    ask().catch((cause: unknown) => {
      throw new KeysMissing(`${name}: ${cause instanceof OutboundError ? cause.message : 'no key set'}`, { cause })
    })
  const kept = keepAnswer(async () => createLocalJWKSet((await askOrRefuse()) as JSONWebKeySet), monotonic, FAILURE_MS)
  return {
    ready: async () => void (await kept.read(CACHE_MS)),
    find: async (header, token) => {
      const known = await kept.read(CACHE_MS)
      try {
        return await known.value(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || monotonic() - known.at < COOL_DOWN_MS) throw error
        return (await kept.read(COOL_DOWN_MS)).value(header, token)
      }
    },
  }
}

/** Fetches a key set. Throws OutboundError when the address gives none. */
export async function fetchKeySet({ name, url, rules }: KeySetAddress): Promise<KeySet> {
  const { origin } = new URL(url)
  const { status, body } = await sendOutbound({
    url,
    method: 'GET',
    headers: { accept: 'application/json, application/jwk-set+json' },
    body: '',
    timeoutMs: TIMEOUT_MS,
    answerBytesMax: BYTES_MAX + 1,
    rules,
  })
  if (status !== 200) throw new OutboundError(`${origin} ${describeStatus(status, name)}`)
  if (body.length > BYTES_MAX) throw new OutboundError(`${origin} answered with more than ${BYTES_MAX} bytes`)
  try {
    return parseKeySet(body)
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw new OutboundError(`${origin} answered with ${fault.message}: look at the path of ${name}`)
  }
}

/** Parses a key set. Throws JsonFault. */
function parseKeySet(body: Uint8Array): KeySet {
  const { keys } = parseForeignObject(body)
  if (Array.isArray(keys) && keys.every(isJsonObject)) return { keys }
  throw new JsonFault('no key set')
}

const CACHE_MS = 600_000
const COOL_DOWN_MS = 30_000
const FAILURE_MS = 5_000
const TIMEOUT_MS = 5_000
const BYTES_MAX = 262_144
