// The last stages: what may be used once is used up, and the answer is sealed.
import { utf8 } from '../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { PendingUse } from '../../domain/activation/pending-use.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import { isUniqueViolation } from '../../storage/database/database.ts'
import type { ChannelParts } from '../parts.ts'
import type { Opened, OpenedOfActivation } from './open.ts'

/**
 * Uses up the values of a request that every stage found genuine: all of them or none, so that a refusal never burns the nonce of a
 * genuine request. Refuses (`code`) when another request has used one since it was looked at.
 */
export const useUp = (
  parts: Pick<ChannelParts, 'useUniqueValues'>,
  values: readonly UniqueValue[],
  code: ErrorCode,
): Promise<void> => inStage('use up', () => useUpAll(parts, values, code))

async function useUpAll(
  { useUniqueValues }: Pick<ChannelParts, 'useUniqueValues'>,
  values: readonly UniqueValue[],
  code: ErrorCode,
): Promise<void> {
  if (!(await useUniqueValues(values))) throw new PawlError(code, { detail: 'used meanwhile by another request' })
}

/**
 * Runs a handler that uses up the value of an envelope in the statement that stores its change. Refuses (`code`) when another request has used
 * it meanwhile. A request that the handler refuses was genuine too, and uses it up by itself.
 */
export async function usingUp<T>(
  { useUniqueValues, events }: Pick<ChannelParts, 'useUniqueValues' | 'events'>,
  { uniqueValues, version }: Pick<OpenedOfActivation, 'uniqueValues' | 'version'>,
  code: ErrorCode,
  handle: (use: UniqueValue | undefined) => Promise<T>,
): Promise<T> {
  try {
    return await handle(uniqueValues[0])
  } catch (error) {
    if (isUniqueViolation(error)) {
      events.envelopeRefused({ activationId: undefined, applicationKey: version.applicationKey, reason: 'used before' })
      throw new PawlError(code, { detail: 'used before' })
    }
    if (error instanceof PawlError) await useUniqueValues(uniqueValues)
    throw error
  }
}

/** Values that a request under `applicationKey` uses up with what it changes, in the same statement, or by themselves. Refuses as useUp. */
export function pendingUse(
  parts: Pick<ChannelParts, 'useUniqueValues' | 'events'>,
  applicationKey: string,
  values: readonly UniqueValue[],
  code: ErrorCode,
): PendingUse {
  let left = values
  return {
    left: () => left,
    now: async () => {
      const all = left
      left = []
      await useUp(parts, all, code)
    },
    done: () => {
      left = []
    },
    refusal: () => {
      parts.events.envelopeRefused({ activationId: undefined, applicationKey, reason: 'used before' })
      return new PawlError(code, { detail: 'used before' })
    },
  }
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
