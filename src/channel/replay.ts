// Checks time windows, and composes the values that may be used only once within them (v3 §14).
import { hashUniqueValue } from '../domain/secrets/secrets.ts'
import type { Envelope, EnvelopeContext, TokenHeader } from '../protocol/protocol.ts'
import type { UniqueValue } from '../storage/activation/unique-values.ts'

/** Whether a timestamp (ms) lies within `windowSeconds` of now, on either side. */
export const isInWindow = (now: number, timestamp: number, windowSeconds: number): boolean =>
  Math.abs(now - timestamp) <= windowSeconds * 1000

/**
 * The value that an envelope uses up, stored until its window is over. It names the activation or, in application scope, the application key: the
 * decryptor uses up values whose MAC nobody has checked (cloud §15.3), and must not use up those of another application. Undefined if the version of
 * the envelope has no replay protection.
 */
export function envelopeValue(context: EnvelopeContext, envelope: Envelope, windowSeconds: number): UniqueValue | undefined {
  if (envelope.uniqueValue === undefined || envelope.timestamp === undefined) return undefined
  const identifier = context.activationId ?? context.applicationKey
  return {
    valueHash: hashUniqueValue(`envelope/${context.scope}`, identifier, envelope.uniqueValue),
    expiresAt: new Date(envelope.timestamp + (windowSeconds + CLOCK_SKEW_SECONDS) * 1000),
  }
}

/**
 * The value that the keys of an envelope use up at a door. A door does not verify nonce and timestamp, because they come from the bank. The value is
 * stored as long as any envelope that is in the window now. `owner` is the activation or the application. Undefined if the version has no replay
 * protection, and in 4.0.
 */
export function envelopeKeyValue(
  { keyValue }: Envelope,
  scope: EnvelopeContext['scope'],
  owner: string,
  { now, windowSeconds }: { readonly now: number; readonly windowSeconds: number },
): UniqueValue | undefined {
  return (
    keyValue && {
      valueHash: hashUniqueValue(`envelope-keys/${scope}`, owner, keyValue),
      expiresAt: new Date(now + (2 * windowSeconds + CLOCK_SKEW_SECONDS) * 1000),
    }
  )
}

/** The value that a token header uses up, stored until its window is over. */
export const tokenValue = (header: TokenHeader, windowSeconds: number): UniqueValue => ({
  valueHash: hashUniqueValue('token', header.tokenId, header.nonce),
  expiresAt: new Date(header.timestamp + (windowSeconds + CLOCK_SKEW_SECONDS) * 1000),
})

// Values are stored this much longer than their window, for processes whose clocks differ.
const CLOCK_SKEW_SECONDS = 60
