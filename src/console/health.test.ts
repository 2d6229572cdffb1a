// Tests the warnings of the overview, from values in the form of the metrics.
import { describe, expect, test } from 'vitest'
import type { Sample } from '../metrics/history.ts'
import type { Look } from '../metrics/metrics.ts'
import { findProblems } from './attention.ts'

const NOW = 1_800_000_000_000
const sample = (more: Partial<Sample> = {}): Sample => ({
  at: NOW,
  seconds: 10,
  requests: 100,
  failures: 0,
  codesAccepted: 90,
  codesRefused: 1,
  messagesDelivered: 5,
  messagesFailed: 0,
  loopDelaySeconds: 0.002,
  connections: 2,
  memoryBytes: 2 ** 28,
  ...more,
})
const seen = (more: Partial<Look> = {}): Look => ({
  history: [sample(), sample(), sample()],
  startedAt: NOW / 1000 - 3_600,
  version: '1.0.0',
  database: 'postgresql',
  readAt: NOW / 1000 - 5,
  pool: { busy: 3, max: 10, waiting: 0 },
  statementTimeouts: 0,
  sealLagSeconds: 4,
  brokenChains: 0,
  background: [{ work: 'housekeeping', failures: 0, lastSuccessAt: NOW / 1000 - 4 }],
  ...more,
})
const namesOf = (look: Look, isReady = true) => findProblems(look, isReady, NOW).map(({ tone, name }) => `${tone} ${name}`)

test('a server that is well has none', () => {
  expect(namesOf(seen())).toEqual([])
  // A process that was just started has no warnings, because it has no values yet.
  const started = { history: [], readAt: undefined, pool: undefined, background: [], sealLagSeconds: 0 }
  expect(namesOf(seen(started))).toEqual([])
})

describe('a problem is named, with what to do', () => {
  test.each([
    ['of a database whose figures are old', seen({ readAt: NOW / 1000 - 61 }), 'bad Database'],
    ['of a pool that is too small', seen({ pool: { busy: 10, max: 10, waiting: 4 } }), 'wait Connections'],
    ['of statements without an answer', seen({ statementTimeouts: 2 }), 'wait Time-outs'],
    ['of requests that failed', seen({ history: [sample({ failures: 1 })] }), 'bad Failures'],
    ['of many wrong codes', seen({ history: [sample({ codesAccepted: 60, codesRefused: 40 })] }), 'wait Wrong codes'],
    [
      'of a process that is too busy',
      seen({ history: Array.from({ length: 3 }, () => sample({ loopDelaySeconds: 0.3 })) }),
      'bad Too busy',
    ],
    ['of a chain that was altered', seen({ brokenChains: 1 }), 'bad Audit'],
    ['of rows without a seal', seen({ sealLagSeconds: 301 }), 'wait Audit'],
    [
      'of work that stands still',
      seen({ background: [{ work: 'audit_sealing', failures: 9, lastSuccessAt: NOW / 1000 - 400 }] }),
      'wait Background',
    ],
  ])('%s', (_name, look, problem) => {
    expect(namesOf(look)).toEqual([problem])
    for (const { text, todo } of findProblems(look, true, NOW))
      expect([text, todo].map((words) => words.length > 20)).toEqual([true, true])
  })

  test('few wrong codes, and a moment of much work, are none', () => {
    expect(namesOf(seen({ history: [sample({ codesAccepted: 5, codesRefused: 20 })] }))).toEqual(['wait Wrong codes'])
    expect(namesOf(seen({ history: [sample({ codesAccepted: 5, codesRefused: 19 })] }))).toEqual([])
    expect(namesOf(seen({ history: [sample(), sample({ loopDelaySeconds: 2 }), sample()] }))).toEqual([])
  })

  test('the worst stands first; a database that takes no writes says nothing of its figures', () => {
    const look = seen({ readAt: NOW / 1000 - 500, statementTimeouts: 1, history: [sample({ failures: 3 })] })
    expect(namesOf(look, false)).toEqual(['bad Database', 'bad Failures', 'wait Time-outs'])
  })
})
