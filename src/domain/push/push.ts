// What a push says, and the interface of a provider that sends it, implemented for APNs and for FCM (mobile-token §7.1). A push has the kind of
// event, and the id of its operation or message. It has neither the user nor the data of an operation.
import type { PushEnvironment } from '../../storage/token/push-registrations.ts'

/** What the triggers write (migrations/0037). */
export interface PushPayload {
  /** `created` or how an operation ended, as webhooks name it; `message` of the inbox; `test`. */
  readonly event: string
  readonly operationType?: string
  /** Milliseconds since 1970: later nobody is to be told. */
  readonly until: number
}

export interface PushMessage {
  /** A UUID, the same whenever the push is sent again. */
  readonly deliveryId: string
  /** A newer push of the same takes the place of an older one on the phone. */
  readonly collapseId: string
  /** Milliseconds since 1970. */
  readonly until: number
  readonly data: PushData
}

/** What the SDK of the app reads: all values are texts. */
type PushData = Readonly<Record<string, string>> & { readonly messageType: PushMessageType }

export type PushMessageType = 'mtoken.operationInit' | 'mtoken.operationFinished' | 'mtoken.inboxMessage.new'

/** The members of a push of `objectId`, an operation or a message of the inbox. */
export function composeData(objectId: string, { event, operationType = '' }: PushPayload): PushData {
  if (event === 'message') return { messageType: 'mtoken.inboxMessage.new', inboxId: objectId }
  const operation = { operationId: objectId, operationName: operationType }
  const mtokenOperationResult = RESULTS[event]
  if (mtokenOperationResult === undefined) return { messageType: 'mtoken.operationInit', ...operation }
  return { messageType: 'mtoken.operationFinished', ...operation, mtokenOperationResult }
}

/** By the event of an end; that of a beginning has none. */
const RESULTS: Readonly<Record<string, string>> = {
  approved: 'authentication.success',
  rejected: 'operation.canceled',
  cancelled: 'operation.canceled',
  expired: 'operation.timeout',
  failed: 'authentication.fail',
}

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
