// Composes the messages of webhooks: the body with the attributes that a receiver asked for, and the signature over it (cloud §9).
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hash.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { WebhookKind } from '../../storage/database/schema.ts'

/** The columns that the triggers copy from a changed row (migrations/0044, migrations/0029), without those that are null. */
export type Snapshot = Readonly<Record<string, string | number | undefined>>

/** The texts of an operation on the phone, in its language. They are read when the message is sent. */
export interface OperationTexts {
  readonly title: string
  readonly message: string
  readonly summary: string | undefined
}

/** The attributes whose values are these texts. */
export const TEXT_ATTRIBUTES: readonly (keyof OperationTexts)[] = ['title', 'message', 'summary']

/**
 * The events of messages, as the triggers name them (migrations/0016), and `test`. Messages that were waiting when that migration ran have no
 * event.
 */
export const WEBHOOK_EVENTS: Record<WebhookKind, readonly string[]> = {
  OPERATION: ['created', 'failed_attempt', 'approved', 'rejected', 'cancelled', 'expired', 'failed', 'test'],
  ACTIVATION: ['created', 'pending_commit', 'activated', 'blocked', 'block_changed', 'unblocked', 'removed', 'expired', 'test'],
}

const take = (name: string) => (snapshot: Snapshot) => snapshot[name]
const takeList = (name: string) => (snapshot: Snapshot) => splitList(snapshot[name])
const takeJson = (name: string) => (snapshot: Snapshot) => parseJson(snapshot[name])

const ATTRIBUTES: Record<WebhookKind, Readonly<Record<string, (snapshot: Snapshot) => unknown>>> = {
  OPERATION: {
    userId: take('userId'),
    applications: takeList('applicationId'),
    operationType: take('operationType'),
    parameters: takeJson('parameters'),
    additionalData: takeJson('additionalData'),
    activationFlag: take('activationFlag'),
    status: take('status'),
    data: take('data'),
    failureCount: take('failureCount'),
    maxFailureCount: take('maxFailureCount'),
    // The reference writes the names of its constants here, in capital letters.
    signatureType: (snapshot) => splitList(snapshot['signatureTypes'])?.map((type) => type.toUpperCase()),
    externalId: take('externalId'),
    timestampCreated: take('timestampCreated'),
    timestampExpires: take('timestampExpires'),
    timestampFinalized: take('timestampFinalized'),
    // Not in the reference: attributes for a sender of push messages (cloud §6.7).
    statusReason: take('statusReason'),
    registrationId: take('registrationId'),
    template: take('template'),
    language: take('language'),
    ...Object.fromEntries(TEXT_ATTRIBUTES.map((name) => [name, () => undefined])),
  },
  ACTIVATION: {
    userId: take('userId'),
    activationName: take('activationName'),
    deviceInfo: take('deviceInfo'),
    platform: take('platform'),
    // pawl has only this protocol. The reference also knows fido2.
    protocol: () => 'powerauth',
    activationFlags: (snapshot) => splitList(snapshot['flags']) ?? [],
    activationStatus: take('status'),
    blockedReason: take('blockedReason'),
    // Not in the reference: the end of a temporary block.
    timestampBlockExpire: take('timestampBlockExpire'),
    applicationId: take('applicationId'),
  },
}

/** Lists the attributes that a webhook of a kind may ask for. */
export const attributesOf = (kind: WebhookKind): readonly string[] => Object.keys(ATTRIBUTES[kind])

/** Composes the body to sign and send. `texts` are needed if the webhook asks for one of them. */
export function composeBody(
  { kind, objectId, attributes }: { kind: WebhookKind; objectId: string; attributes: readonly string[] },
  snapshot: Snapshot,
  texts: OperationTexts | undefined,
): string {
  const known = ATTRIBUTES[kind]
  const chosen = attributes.filter((name) => Object.hasOwn(known, name)).map((name) => [name, known[name]?.(snapshot)])
  const shown = kind === 'OPERATION' ? TEXT_ATTRIBUTES.filter((name) => attributes.includes(name)) : []
  const id = kind === 'OPERATION' ? { operationId: objectId } : { activationId: objectId }
  return JSON.stringify({
    type: kind,
    ...id,
    event: snapshot['event'],
    ...Object.fromEntries(chosen),
    ...Object.fromEntries(shown.map((name) => [name, texts?.[name]])),
  })
}

/** Signs a message: `v1,` and the Base64 HMAC-SHA-256 over `id.timestamp.body`, once for each key, separated by spaces (Standard Webhooks). */
export function signMessage(keys: readonly KeyObject[], id: string, timestampSeconds: number, body: string): string {
  const message = utf8(`${id}.${timestampSeconds}.${body}`)
  return keys.map((key) => `v1,${toBase64(hmac(key, message))}`).join(' ')
}

/** The form in which a receiver gets its secret. */
export const formatSecret = (secret: Uint8Array): string => `whsec_${toBase64(secret)}`

/** Splits a comma list; an empty one has no entries. */
const splitList = (text: string | number | undefined): string[] | undefined =>
  text === undefined ? undefined : String(text).split(',').filter(Boolean)

const parseJson = (text: string | number | undefined): unknown => (text === undefined ? undefined : JSON.parse(String(text)))
