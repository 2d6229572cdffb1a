// Limits the refused requests of one source in a minute. Beyond the limit, pawl refuses requests of the source unchecked for the rest of the
// minute, so that a sender who can prove nothing does not keep the process busy.
import { type ErrorCode, PawlError } from '../lib/errors.ts'
import { sourceOf } from '../lib/address.ts'
import type { ChannelParts } from './parts.ts'

/**
 * Serves a request if its source has failures left; else throws TOO_MANY_REQUESTS. A request that is refused for something that a stranger
 * could have sent uses up one failure, and one more for every 16 KiB of its body. Passes on what `serve` throws.
 */
export async function serveWithinBudget<T>(
  { platform, sourceFailures }: Pick<ChannelParts, 'platform' | 'sourceFailures'>,
  { ip, body }: { readonly ip: string; readonly body: Uint8Array },
  serve: () => Promise<T>,
): Promise<T> {
  const now = platform.monotonic()
  const source = sourceOf(ip)
  const place = sourceFailures.takeIfLeft(source, now, 1 + Math.floor(body.length / BYTES_OF_A_FAILURE))
  if (place === undefined) {
    const retryAfterSeconds = sourceFailures.secondsLeft(source, now)
    throw new PawlError('TOO_MANY_REQUESTS', { detail: 'too many refused requests of one source', retryAfterSeconds })
  }
  let isFailure = false
  try {
    return await serve()
  } catch (error) {
    isFailure = error instanceof PawlError && STRANGERS_FAILURES.has(error.code)
    throw error
  } finally {
    if (isFailure) place.keep()
    else place.giveBack()
  }
}

const BYTES_OF_A_FAILURE = 16 * 1024
/**
 * The error codes of requests without a right code, token or envelope. Refusals that need a right code, and failures of pawl, are not among
 * them.
 */
const STRANGERS_FAILURES: ReadonlySet<ErrorCode> = new Set([
  'REQUEST_INVALID',
  'AUTHENTICATION_CODE_INVALID',
  'AUTHENTICATION_REQUEST_INVALID',
  'AUTHENTICATION_HEADER_MISSING',
  'TOKEN_FAILED',
  'ENCRYPTION_FAILED',
  'ACTIVATION_FAILED',
  'TEMPORARY_KEY_FAILED',
  'VAULT_FAILED',
  'PASSWORD_CHANGE_FAILED',
  'BIOMETRY_FAILED',
  'UPGRADE_FAILED',
  'STATUS_FAILED',
])
