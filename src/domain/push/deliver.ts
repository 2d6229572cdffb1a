// Delivers one push: checks that somebody still needs it, finds the push token, and deletes a token that the provider does not know
// (mobile-token §7.1).
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import { JsonFault, parseForeignObject } from '../../lib/json.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { findPushTarget, forgetPushToken, type PushTarget } from '../../storage/token/push-registrations.ts'
import type { PushProvider } from '../../storage/webhook/push-providers.ts'
import { type DomainParts, places, unlessAltered } from '../secrets/secrets.ts'
import { composeData, type PushAddress, type PushFailure, type PushOutcome, type PushPayload, type PushSender } from './push.ts'

/** A row of the outbox. */
interface PushDelivery {
  readonly deliveryId: string
  readonly objectId: string
  readonly activationId: string
  /** JSON. */
  readonly payload: string
}

/** The reason why a push leaves the outbox without having been sent. */
export type Dropped = 'over' | 'no_device' | 'forgotten' | 'refused'

type PushResult = PushFailure | { readonly received: number } | { readonly dropped: Dropped }

/**
 * Sends a push and waits for the answer, or drops a push that nobody needs any more. Errors of the provider are returned as a failure. `wait` waits
 * for the answer of the request.
 */
export async function attemptPush(
  parts: DomainParts,
  { provider, sender }: { provider: PushProvider; sender: PushSender },
  delivery: PushDelivery,
  wait: <T>(answer: Promise<T>) => Promise<T>,
): Promise<PushResult> {
  const result = await attempt(parts, { provider, sender }, delivery, wait)
  if ('dropped' in result) parts.events.pushDropped({ provider, reason: result.dropped })
  return result
}

async function attempt(
  parts: DomainParts,
  { provider, sender }: { provider: PushProvider; sender: PushSender },
  { deliveryId, objectId, activationId, payload }: PushDelivery,
  wait: <T>(answer: Promise<T>) => Promise<T>,
): Promise<PushResult> {
  const { db, platform } = parts
  const parsed = parsePayload(parts, provider, payload)
  if (parsed === undefined) return { dropped: 'refused' }
  const at = platform.now()
  if (parsed.until <= at) return { dropped: 'over' }
  const target = await findPushTarget(db, { activationId, platform: provider, objectId, at: new Date(at) })
  if (target === undefined) return { dropped: 'no_device' }
  // The operation has ended. A push of its own reports that.
  if (parsed.event === 'created' && target.status !== 'PENDING') return { dropped: 'over' }
  // The user has read the message, or the bank has deleted it.
  if (parsed.event === 'message' && target.isRead !== false) return { dropped: 'over' }
  const until = Math.min(parsed.until, at + KEPT_MS_MAX)
  const message = { deliveryId, collapseId: objectId, until, data: composeData(objectId, parsed) }
  const outcome = await send(parts, { provider, activationId, target }, (address) => wait(sender.send(message, address)))
  if (!('reason' in outcome)) return outcome
  if (outcome.isGone === true) return forget(parts, { provider, activationId, target }, outcome)
  if (outcome.isFinal !== true) return outcome
  parts.events.pushRefused({ activationId, provider, reason: outcome.reason })
  return { dropped: 'refused' }
}

/**
 * Parses the payload. Undefined when it is no JSON object, because somebody altered it in the database. Nobody can repair it, so the push is
 * dropped and others go on.
 */
function parsePayload({ events }: DomainParts, provider: PushProvider, payload: string): PushPayload | undefined {
  try {
    const parsed: unknown = parseForeignObject(utf8(payload))
    return parsed as PushPayload
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    events.webhookUnusable({ webhookId: provider, err: fault })
    return undefined
  }
}

interface Addressed {
  readonly provider: PushProvider
  readonly activationId: string
  readonly target: PushTarget
}

/** Opens the token and sends the push. A token that was altered counts as missing. */
async function send(
  { recordKeys, events }: DomainParts,
  { provider, activationId, target }: Addressed,
  to: (address: PushAddress) => Promise<PushOutcome>,
): Promise<PushOutcome | { readonly dropped: Dropped }> {
  const { applicationId, userId, pushToken, environment } = target
  try {
    const place = places.pushToken({ activationId, applicationId, userId })
    const opened = unlessAltered(() => recordKeys.open(place, pushToken))
    return opened === undefined ? { dropped: 'no_device' } : await to({ token: fromUtf8(opened), environment })
  } catch (error) {
    if (error instanceof OutboundError) return { reason: error.message }
    // A token that does not open concerns only this phone. This push is tried again like a refused one, and other pushes go on.
    events.webhookUnusable({ webhookId: provider, err: error })
    return { reason: 'the push could not be made, see the log', isOfOne: true }
  }
}

/** Deletes a token that the provider does not know. If the phone has registered another one since, the push is tried again with that. */
async function forget(
  { db, events }: DomainParts,
  { provider, activationId, target }: Addressed,
  { goneSince, reason }: PushFailure,
): Promise<PushResult> {
  const isOlder = goneSince === undefined || target.registeredAt.getTime() <= goneSince
  if (!isOlder || !(await forgetPushToken(db, activationId, target.pushToken))) return { reason, isOfOne: true }
  events.pushTokenForgotten({ activationId, provider, reason })
  return { dropped: 'forgotten' }
}

/** Google refuses a push with a lifetime of more than 28 days. Apple keeps a push for 30 days at most. */
const KEPT_MS_MAX = 28 * 24 * 3_600_000
