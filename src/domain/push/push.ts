// Composes the members of a push, and defines the interface of a provider that sends it, for APNs and FCM (mobile-token §7.1). A push has the kind
// of event and the id of its operation or message. It has neither the user nor the data of an operation.
import type { PushEnvironment } from '../../storage/token/push-registrations.ts'

/** The payload of a push in the outbox, as the triggers write it (migrations/0037). */
export interface PushPayload {
  /** `created` or the end of an operation, as webhooks name it; `message` for a message of the inbox; `test`. */
  readonly event: string
  readonly operationType?: string
  /** After this time nobody needs the push; milliseconds since 1970. */
  readonly until: number
}

export interface PushMessage {
  /** A UUID, the same for each attempt to send the push. */
  readonly deliveryId: string
  /** A newer push with the same id replaces an older one on the phone. */
  readonly collapseId: string
  /** Milliseconds since 1970. */
  readonly until: number
  readonly data: PushData
}

/** The members that the SDK of the app reads. All values are texts. */
type PushData = Readonly<Record<string, string>> & { readonly messageType: PushMessageType }

export type PushMessageType = 'mtoken.operationInit' | 'mtoken.operationFinished' | 'mtoken.inboxMessage.new'

/** Composes the members of a push for `objectId`, an operation or a message of the inbox. */
export function composeData(objectId: string, { event, operationType = '' }: PushPayload): PushData {
  if (event === 'message') return { messageType: 'mtoken.inboxMessage.new', inboxId: objectId }
  const operation = { operationId: objectId, operationName: operationType }
  const mtokenOperationResult = RESULTS[event]
  if (mtokenOperationResult === undefined) return { messageType: 'mtoken.operationInit', ...operation }
  return { messageType: 'mtoken.operationFinished', ...operation, mtokenOperationResult }
}

/** Results by the event that ends an operation. Other events have none. */
const RESULTS: Readonly<Record<string, string>> = {
  approved: 'authentication.success',
  rejected: 'operation.canceled',
  cancelled: 'operation.canceled',
  expired: 'operation.timeout',
  failed: 'authentication.fail',
}

/** The push token of a phone, and Apple's environment of it. */
export interface PushAddress {
  /** The token in the clear. It must never be in a log, an error or a trace. */
  readonly token: string
  readonly environment: PushEnvironment | null
}

/** A failed push. `reason` has the provider's words, never a push token. */
export interface PushFailure {
  readonly reason: string
  readonly status?: number
  /** The value of the header `Retry-After`. */
  readonly retryAfter?: string | undefined
  /** Whether the failure concerns only this push. */
  readonly isOfOne?: boolean
  /** Whether the provider would refuse this push again. Other pushes are not concerned. */
  readonly isFinal?: boolean
  /** Whether the provider no longer knows the token. */
  readonly isGone?: boolean
  /** The provider does not know the token since this time, in milliseconds since 1970. A token that was registered later is not concerned. */
  readonly goneSince?: number
}

export type PushOutcome = PushFailure | { readonly received: number }

export interface PushSender {
  /** The address of the provider, for operators. */
  readonly url: string
  /** Sends a push. Throws OutboundError without an answer. */
  readonly send: (message: PushMessage, address: PushAddress) => Promise<PushOutcome>
  /** Asks the provider whether it accepts the credentials. Returns undefined when it does, else the reason. Throws OutboundError. */
  readonly findProblem: () => Promise<string | undefined>
  readonly close: () => void
}

/** The limit from the connection to the answer, the same as for webhooks. */
export const PUSH_TIMEOUT_MS = 10_000
