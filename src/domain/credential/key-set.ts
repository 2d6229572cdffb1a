// The key set (JWKS) of an authorization server, as it gives it now.
import { fromUtf8 } from '../../lib/bytes.ts'
import { describeStatus, OutboundError, sendOutbound } from '../../lib/outbound.ts'

export interface KeySet {
  readonly keys: readonly object[]
}

/** Throws OutboundError when there is none at the address, which is one of the operator. */
export async function fetchKeySet(url: string): Promise<KeySet> {
  const { status, body } = await sendOutbound({
    url,
    method: 'GET',
    headers: { accept: 'application/json, application/jwk-set+json' },
    body: '',
    timeoutMs: TIMEOUT_MS,
    answerBytesMax: BYTES_MAX + 1,
    arePrivateAllowed: true,
  })
  const { origin } = new URL(url)
  if (status !== 200) throw new OutboundError(`${origin} ${describeStatus(status, 'PAWL_JWT_JWKS_URL')}`)
  if (body.length > BYTES_MAX) throw new OutboundError(`${origin} answered with more than ${BYTES_MAX} bytes`)
  const set = parseKeySet(body)
  if (set === undefined) throw new OutboundError(`${origin} answered with no key set: look at the path of PAWL_JWT_JWKS_URL`)
  return set
}

function parseKeySet(body: Uint8Array): KeySet | undefined {
  try {
    const set: unknown = JSON.parse(fromUtf8(body))
    const isSet = isObject(set) && 'keys' in set && Array.isArray(set.keys) && set.keys.every(isObject)
    return isSet ? (set as unknown as KeySet) : undefined
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

const TIMEOUT_MS = 5_000
const BYTES_MAX = 262_144
