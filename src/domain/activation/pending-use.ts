// Defines the values that a request may use once, as long as they are not used up (v3 §14).
import type { PawlError } from '../../lib/errors.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'

/** Whoever decides about a request looks whether a value was used before, and uses all of them up with what the request changes. */
export interface PendingUse {
  /** None after `now` or `done`. */
  readonly left: () => readonly UniqueValue[]
  /** Uses them up alone: before what may be done once only, and when nothing else is changed. Throws the refusal when one was used. */
  readonly now: () => Promise<void>
  /** They were used up by another statement. */
  readonly done: () => void
  /** For a request of which a value was used before. */
  readonly refusal: () => PawlError
}
