// The key set (JWKS) of an authorization server, as it gives it now.
import { isJsonObject, JsonFault, parseForeignObject } from '../../lib/json.ts'
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
  try {
    return parseKeySet(body)
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw new OutboundError(`${origin} answered with ${fault.message}: look at the path of PAWL_JWT_JWKS_URL`)
  }
}

/** Throws JsonFault. */
function parseKeySet(body: Uint8Array): KeySet {
  const { keys } = parseForeignObject(body)
  if (Array.isArray(keys) && keys.every(isJsonObject)) return { keys }
  throw new JsonFault('no key set')
}

const TIMEOUT_MS = 5_000
const BYTES_MAX = 262_144
