// Limits the wrong codes of one activation from one source.
import { PawlError } from '../../lib/errors.ts'
import { sourceOf } from '../../lib/address.ts'
import type { ChannelParts } from '../parts.ts'
import type { CodeAttempt } from './attempt.ts'
import type { CodeVerdict } from './decision.ts'
import type { Received } from './receive.ts'

/**
 * Runs `check` unless there were too many wrong codes of this activation from this source within the minute. Beyond the limit nothing is read,
 * computed or stored, and every code is refused like a wrong one (AUTHENTICATION_CODE_INVALID). A wrong code uses up one place of the budget.
 */
export async function withinFailureBudget<T extends { readonly verdict: CodeVerdict }>(
  parts: ChannelParts,
  { client }: Received,
  attempt: CodeAttempt,
  check: () => Promise<T>,
): Promise<T> {
  const { header, resourceId, atDoor } = attempt
  const { activationId, version, factors } = header
  const place = parts.codeFailures.takeIfLeft(keyOf(attempt, client.ip), parts.platform.monotonic())
  if (place === undefined) {
    parts.events.authenticationChecked({ version, type: factors.toLowerCase(), result: 'too_many_failures' })
    parts.events.authenticationFailed({ activationId, resourceId, reason: 'too_many_failures' })
    throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: 'too_many_failures' })
  }
  let isWrong = false
  try {
    const checked = await check()
    const { verdict } = checked
    isWrong = !verdict.isRight && (atDoor?.isSourceUnknown !== true || verdict.isGuess || factors === UNCOUNTED)
    return checked
  } finally {
    // A failure of pawl itself says nothing about the code.
    if (isWrong) place.keep()
    else place.giveBack()
  }
}

/**
 * The key of the budget. At a door it contains the credential's application, so that other applications are not affected. When the source is
 * unknown, codes of possession alone have a budget of their own, so that a stranger who guesses at them does not affect codes of two factors.
 */
function keyOf({ header: { activationId, factors }, atDoor }: CodeAttempt, ip: string): string {
  if (atDoor === undefined) return `${sourceOf(ip)} ${activationId}`
  const { applicationId, isSourceUnknown } = atDoor
  const source = isSourceUnknown === true ? `anywhere ${factors === UNCOUNTED ? factors : ''}` : sourceOf(ip)
  return JSON.stringify(['door', applicationId, source, activationId])
}

/** A wrong code of possession alone is never a guess that counts (v3 §10.5). */
const UNCOUNTED = 'POSSESSION'
