// A bound on wrong codes of one activation from one source.
import { PawlError } from '../../lib/errors.ts'
import { sourceOf } from '../../lib/source.ts'
import type { ChannelParts } from '../parts.ts'
import type { CodeAttempt } from './attempt.ts'
import type { CodeVerdict } from './decision.ts'
import type { Received } from './receive.ts'

/**
 * After too many wrong codes of one activation from one source nothing is read, computed or stored for a while: whatever the code is, it is
 * refused like a wrong one (AUTHENTICATION_CODE_INVALID). What `check` finds wrong takes one place of the budget.
 */
export async function withinFailureBudget<T extends { readonly verdict: CodeVerdict }>(
  parts: ChannelParts,
  { client }: Received,
  { header: { activationId, version, factors }, resourceId, atDoor }: CodeAttempt,
  check: () => Promise<T>,
): Promise<T> {
  const place = parts.codeFailures.takeIfLeft(`${sourceOf(client.ip)} ${activationId}`, parts.platform.monotonic())
  if (place === undefined) {
    parts.events.authenticationChecked({ version, type: factors.toLowerCase(), result: 'too_many_failures' })
    parts.events.authenticationFailed({ activationId, resourceId, reason: 'too_many_failures' })
    throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: 'too_many_failures' })
  }
  let isWrong = false
  try {
    const checked = await check()
    const { verdict } = checked
    isWrong = !verdict.isRight && (atDoor?.isSourceUnknown !== true || verdict.isGuess)
    return checked
  } finally {
    // A failure of our own tells nothing about the code.
    if (isWrong) place.keep()
    else place.giveBack()
  }
}
