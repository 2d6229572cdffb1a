// Checking the webhooks of pawl. They follow Standard Webhooks, so the library `standardwebhooks` checks them as well.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { components } from './schema.ts'

export type WebhookMessage = components['schemas']['WebhookOperationMessage'] | components['schemas']['WebhookActivationMessage']

/** Names in lower case, as Node and fetch give them. */
export type WebhookHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** The message is not genuine, or too old. Answer 400 and do nothing. */
export class WebhookError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WebhookError'
  }
}

/**
 * The message, once signature and time are right. `secret`: with `whsec_`, as it was shown; `body`: the bytes as they came, before anything
 * parses them. The same `webhook-id` may come twice: remember the ids. Throws WebhookError, and TypeError where there is no secret.
 */
export function readWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: Uint8Array | string,
  nowSeconds = Date.now() / 1000,
): WebhookMessage {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name])
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string')
    throw new WebhookError('a header is missing')
  if (!(Math.abs(nowSeconds - Number(timestamp)) <= TOLERANCE_SECONDS)) throw new WebhookError('too old, or from the future')
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (key.length === 0) throw new TypeError('without a secret everybody could sign')
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  const isRight = signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64')
    return signature.startsWith('v1,') && given.length === expected.length && timingSafeEqual(given, expected)
  })
  if (!isRight) throw new WebhookError('no signature is right')
  return JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8')) as WebhookMessage
}

const TOLERANCE_SECONDS = 300
