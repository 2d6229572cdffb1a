// The interface of a provider of pushes, implemented for APNs and for FCM (mobile-token §7.1).
import type { PushEnvironment } from '../../storage/token/push-registrations.ts'
import type { PushMessage } from './message.ts'

/** The address of a push. */
export interface PushAddress {
  /** The token in the clear. It must never be in a log, an error or a trace. */
  readonly token: string
  readonly environment: PushEnvironment | null
}

/** A failed push. `reason` has the provider's words, and never a token. */
export interface PushFailure {
  readonly reason: string
  readonly status?: number
  /** As the header has it. */
  readonly retryAfter?: string | undefined
  /** Whether the failure concerns only this push. */
  readonly isOfOne?: boolean
  /** Whether the push would be refused again; others are not concerned. */
  readonly isFinal?: boolean
  /** Whether the provider no longer knows the token. */
  readonly isGone?: boolean
  /** Since when; milliseconds since 1970. A token that was registered later is another matter. */
  readonly goneSince?: number
}

export type PushOutcome = PushFailure | { readonly received: number }

export interface PushSender {
  /** Shown to operators. */
  readonly url: string
  /** Throws OutboundError when there is no answer. */
  readonly send: (message: PushMessage, address: PushAddress) => Promise<PushOutcome>
  /** Asks the provider whether it takes these credentials; undefined when it does, else why not. Throws OutboundError. */
  readonly findProblem: () => Promise<string | undefined>
  readonly close: () => void
}

/** The limit from the connection to the answer, the same as for webhooks. */
export const PUSH_TIMEOUT_MS = 10_000
