// The last stages of a request: they use up its nonces, and seal the answer.
import { utf8 } from '../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import { isUniqueViolation } from '../../storage/database/database.ts'
import type { ChannelParts } from '../parts.ts'
import type { Opened } from './open.ts'

/**
 * Uses up the values of a request that every stage found genuine: all of them or none, so that a refusal never burns the nonce of a
 * genuine request. Refuses (`code`) when another request has used one since it was looked at.
 */
export const useUp = (
  { useUniqueValues }: Pick<ChannelParts, 'useUniqueValues'>,
  values: readonly UniqueValue[],
  code: ErrorCode,
): Promise<void> =>
  inStage('use up', async () => {
    if (!(await useUniqueValues(values))) throw new PawlError(code, { detail: 'used meanwhile by another request' })
  })

/** What a request uses up, under which application key it came, and how it is refused when a value was used before. */
interface Use {
  readonly values: readonly UniqueValue[]
  readonly applicationKey: string
  readonly code: ErrorCode
}

/**
 * Runs a handler that uses up the values of its request in the statement that stores its change, or by themselves with the function that it
 * is given, which does it once. Refuses (`use.code`) when another request has used one meanwhile. A request that the handler refuses was
 * genuine too, and does not come again.
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

/** The refusal of a request of which a value was used before. */
export function refuseUsed({ events }: Pick<ChannelParts, 'events'>, { applicationKey, code }: Omit<Use, 'values'>): PawlError {
  events.envelopeRefused({ activationId: undefined, applicationKey, reason: 'used before' })
  return new PawlError(code, { detail: 'used before' })
}

/** The JSON text of the envelope around the JSON text of an answer, under the key of the request. */
export const sealAnswer = (parts: Pick<ChannelParts, 'platform'>, opened: Opened, text: string): Promise<string> =>
  inStage('seal', async () => JSON.stringify(sealValue(parts, opened, text)))

/** The same as a value, for an envelope within another. */
export const sealValue = (
  { platform }: Pick<ChannelParts, 'platform'>,
  { seal }: Pick<Opened, 'seal'>,
  text: string,
): Record<string, string | number> => seal(utf8(text), { nonce: platform.randomBytes(16), timestamp: platform.now() })
