// Runs the last stages of a request: its nonces are used up, and the answer is sealed.
import { utf8 } from '../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import { isUniqueViolation } from '../../storage/database/database.ts'
import type { ChannelParts } from '../parts.ts'
import type { Opened } from './open.ts'

/**
 * Stores the values of a request as used, after every check: all of them or none, so that a refusal never uses up the nonce of a genuine request.
 * Throws `code` when another request has used one of them since the read.
 */
export const useUp = (
  { useUniqueValues }: Pick<ChannelParts, 'useUniqueValues'>,
  values: readonly UniqueValue[],
  code: ErrorCode,
): Promise<void> =>
  inStage('use up', async () => {
    if (!(await useUniqueValues(values))) throw new PawlError(code, { detail: 'used meanwhile by another request' })
  })

/** The values that a request uses up, its application key, and the error code when one of them was used before. */
interface Use {
  readonly values: readonly UniqueValue[]
  readonly applicationKey: string
  readonly code: ErrorCode
}

/**
 * Runs a handler that stores the values of its request as used: in the statement of its change, or by calling `useAlone`, which stores them once.
 * Throws `use.code` when another request has used one of them meanwhile. When the handler refuses, the values are used up too, because the request
 * was genuine.
 */
export async function usingUp<T>(
  parts: Pick<ChannelParts, 'useUniqueValues' | 'events'>,
  use: Use,
  handle: (useAlone: () => Promise<void>) => Promise<T>,
): Promise<T> {
  let isUsed = false
  const useAlone = async () => {
    if (isUsed) return
    isUsed = true
    await useUp(parts, use.values, use.code)
  }
  try {
    return await handle(useAlone)
  } catch (error) {
    if (!isUsed && isUniqueViolation(error)) throw refuseUsed(parts, use)
    if (error instanceof PawlError) await useAlone()
    throw error
  }
}

/** The refusal of a request with a value that was used before. */
export function refuseUsed({ events }: Pick<ChannelParts, 'events'>, { applicationKey, code }: Omit<Use, 'values'>): PawlError {
  events.envelopeRefused({ activationId: undefined, applicationKey, reason: 'used before' })
  return new PawlError(code, { detail: 'used before' })
}

/** Seals the JSON text of an answer under the key of the request. Returns the JSON text of the envelope. */
export const sealAnswer = (parts: Pick<ChannelParts, 'platform'>, opened: Opened, text: string): Promise<string> =>
  inStage('seal', async () => JSON.stringify(sealValue(parts, opened, text)))

/** Seals like sealAnswer, and returns the envelope as a value, for an envelope within another. */
export const sealValue = (
  { platform }: Pick<ChannelParts, 'platform'>,
  { seal }: Pick<Opened, 'seal'>,
  text: string,
): Record<string, string | number> => seal(utf8(text), { nonce: platform.randomBytes(16), timestamp: platform.now() })
