// Composes pushes: the kind of event, and the id of its operation or message. They have neither the user nor the data of an operation
// (mobile-token §7.1).

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
