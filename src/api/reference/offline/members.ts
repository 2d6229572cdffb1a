// Members that the endpoints for codes without connection share.
import { type Static, Type } from '@sinclair/typebox'
import { computeTotpCandidates } from '../../../domain/operation/proximity.ts'
import { parseBase64 } from '../../../lib/base64.ts'
import type { Platform } from '../../../lib/platform.ts'
import { refuse } from '../../door/members.ts'

/** As many bytes as the largest QR code holds, with room for the rest of its text. */
export const OfflineData = Type.String({ pattern: '^[^\\u0000]{0,2500}$', description: 'must be at most 2500 characters' })

export const OfflineText = Type.Object({
  offlineData: Type.String({ description: 'the content of the QR code' }),
  nonce: Type.String({ description: 'Base64 of 16 bytes, goes back with the code' }),
})

export const ProximityCheck = Type.Object({
  seed: Type.String({ maxLength: 128, description: 'Base64 of 16 to 64 bytes' }),
  stepLength: Type.Integer({ minimum: 1, maximum: 3600, description: 'seconds' }),
})

/** Each step is one more text that a code may be for. */
export const ProximitySteps = Type.Composite([
  ProximityCheck,
  Type.Object({ stepCount: Type.Integer({ minimum: 0, maximum: 4 }) }),
])

/** The passwords of a proximity check that are good now, newest first. Throws REQUEST_INVALID for a bad seed. */
export function listTotps(
  { platform }: { readonly platform: Platform },
  { seed: text, stepLength, stepCount }: Static<typeof ProximitySteps>,
): readonly string[] {
  const seed = parseBase64(text)
  if (seed === undefined || seed.length < 16 || seed.length > 64)
    throw refuse('proximityCheck.seed', 'must be Base64 of 16 to 64 bytes')
  return computeTotpCandidates({ seed, stepSeconds: stepLength, digits: 8 }, platform.now() / 1000, stepCount)
}

export const NONCE_BYTES = 16
