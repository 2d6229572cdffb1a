// Makes and compares the one-time passwords of the proximity check, which a phone must scan from the screen in front of its user (v3 §15.3, cloud
// §6.8).
import { equalConstantTime, u64, utf8 } from '../../lib/bytes.ts'
import { ifOpens, type KeyParts, places, unlessAltered } from '../secrets/secrets.ts'
import { hmac } from '../../crypto/hash.ts'

/** The columns of an operation for its proximity check. The seed is null without a check. */
interface HasProximitySeed {
  readonly operationId: string
  /** sealed, 16 bytes */
  readonly proximitySeed: Uint8Array | null
}

/** Makes a seed of 16 random bytes, sealed for its operation. */
export const createProximitySeed = (
  { recordKeys, platform }: Pick<KeyParts, 'platform' | 'recordKeys'>,
  operationId: string,
): Buffer => recordKeys.seal(places.proximitySeed(operationId), platform.randomBytes(16))

/** Returns the password to show now, eight digits. Undefined without a proximity check, and when the seed does not open. */
export const readProximityOtp = (
  parts: Pick<KeyParts, 'platform' | 'recordKeys'>,
  operation: HasProximitySeed,
): string | undefined => ifOpens(() => listProximityOtps(parts, operation))?.[0]

/**
 * Returns the passwords that are accepted now, newest first. Undefined without a proximity check; an empty list when the seed was altered in the
 * database.
 */
export function listProximityOtps(
  { platform, recordKeys }: Pick<KeyParts, 'platform' | 'recordKeys'>,
  { operationId, proximitySeed }: HasProximitySeed,
): readonly string[] | undefined {
  if (proximitySeed === null) return undefined
  const seed = unlessAltered(() => recordKeys.open(places.proximitySeed(operationId), proximitySeed))
  return seed === undefined ? [] : listProximityOtpsOf(seed, platform.now())
}

/** The same for a seed of 16 bytes. `now` is in milliseconds since 1970. */
export const listProximityOtpsOf = (seed: Uint8Array, now: number): readonly string[] =>
  computeTotpCandidates({ seed, stepSeconds: STEP_SECONDS, digits: DIGITS }, now / 1000, EARLIER_STEPS)

/** Whether the password of the phone is accepted now; true without a proximity check. */
export function isNear(
  parts: Pick<KeyParts, 'platform' | 'recordKeys'>,
  operation: HasProximitySeed,
  otp: string | undefined,
): boolean {
  const accepted = listProximityOtps(parts, operation)
  if (accepted === undefined) return true
  const given = utf8(otp ?? '')
  // All passwords are compared, so that the time does not show which one matched.
  return accepted.map((one) => equalConstantTime(utf8(one), given)).includes(true)
}

/** The parameters of the one-time passwords of a proximity check (v3 §15.3). */
interface TotpSettings {
  /** 16 random bytes. */
  readonly seed: Uint8Array
  readonly stepSeconds: number
  /** At least 6. */
  readonly digits: number
}

/** Computes the TOTPs of the current step and of `earlierSteps` before it, newest first (v3 §15.3). */
export function computeTotpCandidates(
  { seed, stepSeconds, digits }: TotpSettings,
  timeSeconds: number,
  earlierSteps: number,
): readonly string[] {
  const current = totpStep(timeSeconds, stepSeconds)
  const steps = Array.from({ length: earlierSteps + 1 }, (_, back) => current - back)
  return steps.filter((step) => step >= 0).map((step) => totp(seed, step, digits))
}

/** The number of the step that contains a time, in seconds since 1970-01-01 UTC. */
export const totpStep = (timeSeconds: number, stepSeconds: number): number => Math.floor(timeSeconds / stepSeconds)

/** The one-time password of a step (RFC 6238 with HMAC-SHA256, truncated by RFC 4226 §5.3): `digits` decimal digits, up to 9. */
export function totp(seed: Uint8Array, step: number, digits: number): string {
  const mac = Buffer.from(hmac(seed, u64(step)))
  const offset = mac.readUInt8(mac.length - 1) & 0x0f
  const value = mac.readUInt32BE(offset) & 0x7fffffff
  return String(value % 10 ** digits).padStart(digits, '0')
}

const STEP_SECONDS = 30
const DIGITS = 8
const EARLIER_STEPS = 1
