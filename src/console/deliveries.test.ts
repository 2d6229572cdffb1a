// Tests the words about deliveries: their outcome, the next attempt, and the reason.
import { expect, test } from 'vitest'
import type { Delivery } from '../api/cloud/admin/webhook-deliveries.ts'
import { sayDelivery } from './deliveries.ts'
import { toText } from './markup.ts'

const NOW = 1_800_000_000_000
const delivery: Delivery = {
  id: 'd',
  objectId: 'o',
  objectStatus: 'PENDING',
  status: 'WAITING',
  attempts: 0,
  nextAttemptAt: 0,
  createdAt: NOW,
}

/** Renders the words without the times beside them. */
const say = (more: Partial<Delivery>, isEnabled = true): string => {
  const { tone, says } = sayDelivery({ ...delivery, ...more }, NOW, isEnabled)
  return `${tone}: ${toText(says).replaceAll(/<[^>]+>/g, '')}`
}

test.each<[Partial<Delivery>, string]>([
  [{}, 'wait: is sent at once'],
  [{ nextAttemptAt: NOW + 300_000 }, 'wait: waits, because the receiver asked for a pause, first attempt in 5 min'],
  [{ isBehindEarlier: true }, 'wait: waits, because an earlier message about it was not delivered yet'],
  [{ attempts: 1, nextAttemptAt: NOW + 15_000, lastError: 'HTTP 503' }, 'bad: failed once, next attempt in 15 s: HTTP 503'],
  [{ attempts: 2, nextAttemptAt: NOW - 1, lastError: 'HTTP 503' }, 'bad: failed twice, next attempt now: HTTP 503'],
  [{ attempts: 3, nextAttemptAt: NOW + 300_000 }, 'bad: failed 3 times, next attempt in 5 min'],
  [{ status: 'DEAD', attempts: 8, lastError: 'HTTP 404' }, 'bad: given up after 8 attempts: HTTP 404'],
  [{ status: 'DELIVERED', attempts: 1, finishedAt: NOW - 60_000 }, 'good: taken, 1 min ago'],
  [{ status: 'DELIVERED', attempts: 4 }, 'good: taken at attempt 4'],
])('%j is %s', (more, said) => expect(say(more)).toBe(said))

test('a webhook that is switched off is why all wait', () => {
  expect(say({ attempts: 3, lastError: 'HTTP 410' }, false)).toBe('off: waits, because the webhook is switched off')
  expect(say({ status: 'DELIVERED', attempts: 1 }, false)).toBe('good: taken')
})
