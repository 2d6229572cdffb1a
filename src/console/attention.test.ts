// Tests the tasks at the head of the overview: the worst comes first, and "nothing" never precedes a failure.
import { expect, test } from 'vitest'
import type { PinnedDomain } from '../api/cloud/admin/apps.ts'
import type { PushProvider } from '../api/cloud/admin/push.ts'
import type { Webhook } from '../api/cloud/admin/webhooks.ts'
import { type Attention, findTasks, renderTasks } from './attention.ts'
import { toText } from './markup.ts'

const NOW = 1_800_000_000_000
const DAY_S = 86_400
const nothing: Attention = { problems: [], pending: [], isPendingCut: false, webhooks: [], providers: [], domains: [] }
const webhook = (more: Partial<Webhook>): Webhook => ({
  id: 'w',
  application: 'my-app',
  name: 'Core',
  kind: 'OPERATION',
  url: 'https://receiver.bank.example',
  attributes: [],
  isEnabled: true,
  createdAt: 0,
  waiting: 0,
  delivered: 0,
  dead: 0,
  failuresInRow: 0,
  lagSeconds: 0,
  ...more,
})
const provider = (more: Partial<PushProvider>): PushProvider => ({
  provider: 'apns',
  isEnabled: true,
  waiting: 0,
  delivered: 0,
  dead: 0,
  failuresInRow: 0,
  lagSeconds: 0,
  ...more,
})
const domain = (...days: readonly number[]): PinnedDomain => ({
  name: 'api.bank.example',
  port: 443,
  certificates: days.map((left) => ({
    fingerprint: 'f',
    expires: NOW / 1000 + left * DAY_S,
    isExpired: left < 0,
    source: 'pem',
    created: 0,
  })),
})
const tasksOf = (more: Partial<Attention>) => findTasks({ ...nothing, ...more }, (path) => path, NOW)
const namesOf = (more: Partial<Attention>) => tasksOf(more).map(({ tone, name }) => `${tone} ${name}`)
const textOf = (more: Partial<Attention>) => toText(renderTasks(tasksOf(more)))

test('nothing needs attention where webhooks get through and pins last', () => {
  const providers = [provider({ waiting: 3, lagSeconds: 2, dead: 4 }), provider({ isEnabled: false, failuresInRow: 3 })]
  const well = { webhooks: [webhook({ waiting: 3, lagSeconds: 2 })], providers, domains: [domain(-1, 200), domain()] }
  expect(namesOf(well)).toEqual([])
  expect(textOf(well)).toContain('Nothing needs attention')
})

test.each<[string, Partial<Attention>, string]>([
  ['a webhook that fails', { webhooks: [webhook({ failuresInRow: 180, waiting: 113 })] }, 'bad Webhook fails'],
  ['messages that were given up', { webhooks: [webhook({ dead: 2 })] }, 'bad Given up'],
  ['a webhook that is late', { webhooks: [webhook({ lagSeconds: 400, waiting: 9 })] }, 'wait Webhook is late'],
  ['one that is switched off', { webhooks: [webhook({ isEnabled: false, failuresInRow: 9 })] }, 'wait Switched off'],
  ['a provider that fails', { providers: [provider({ failuresInRow: 2 })] }, 'bad Pushes fail'],
  ['a provider that is late', { providers: [provider({ lagSeconds: 400 })] }, 'wait Pushes are late'],
  ['a pin that ends in two days', { domains: [domain(2)] }, 'bad Pin ends'],
  ['a pin that ends in twenty days', { domains: [domain(2, 20)] }, 'wait Pin ends'],
  ['pins that have all ended', { domains: [domain(-3, -1)] }, 'bad No pin'],
  [
    'a certificate that is not pinned',
    { domains: [{ ...domain(200), live: { checkedAt: 0, isPinned: false } }] },
    'bad Not pinned',
  ],
  ['a server that is not well', { problems: [{ tone: 'bad', name: 'Failures', text: '3', todo: 'Look' }] }, 'bad Failures'],
])('%s is said, and nothing is said to be well', (_, found, name) => {
  expect(namesOf(found)).toEqual([name])
  expect(textOf(found)).not.toMatch(/nothing needs|\bwell\b|get through/i)
})

test('the worst comes first', () => {
  const pending = [{ activationId: 'a', userId: 'alice', state: 'PENDING_COMMIT' as const, timestampCreated: 0 }]
  const problems = [{ tone: 'wait', name: 'Time-outs', text: '1', todo: 'Look' } as const]
  expect(namesOf({ problems, pending, webhooks: [webhook({ failuresInRow: 1 })], domains: [domain(20)] })).toEqual([
    'bad Webhook fails',
    'wait Time-outs',
    'wait Pin ends',
    'wait Commit',
  ])
})
