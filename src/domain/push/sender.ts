// The interface of a provider of pushes, implemented for APNs and for FCM (mobile-token §7.1).
import type { PushEnvironment } from '../../storage/token/push-registrations.ts'
import type { PushMessage } from './message.ts'

/** Where a push goes. */
export interface PushAddress {
  /** In the clear; never in a log, an error or a trace. */
  readonly token: string
  readonly environment: PushEnvironment | null
}

/** Why a push was not taken. `reason` names what the provider said, and never a token. */
export interface PushFailure {
  readonly reason: string
  readonly status?: number
  /** As the header has it. */
  readonly retryAfter?: string | undefined
  /** It concerns this push, and says nothing of others. */
  readonly isOfOne?: boolean
  /** It would be refused again, and says nothing of others. */
  readonly isFinal?: boolean
  /** The provider does not know the token any more. */
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

/** Of everything from the connection to the answer, as for webhooks. */
export const PUSH_TIMEOUT_MS = 10_000
