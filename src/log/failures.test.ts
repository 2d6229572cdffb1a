// Tests failures that repeat: the first one has a line, the others are counted, and a line reports the end.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { currentScope, runInScope } from '../lib/trace.ts'
import { createEvents } from './events.ts'
import { createLog } from './log.ts'

let lines: string[]
const read = (): Record<string, unknown>[] => lines.splice(0).map((line) => JSON.parse(line) as Record<string, unknown>)
const newEvents = () => createEvents(createLog('info', { write: (line: string) => void lines.push(line) }))

beforeEach(() => {
  lines = []
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const lost = (code: string): Error => Object.assign(new Error('connect failed'), { code })
const refused = (requestId: string, err: unknown) => ({ requestId, method: 'POST', path: '/a', err })

test('an outage is one line with a stack, a reminder each minute with a count, and a line at its end', () => {
  const events = newEvents()
  for (let second = 0; second < 90; second += 1) {
    for (let i = 0; i < 10; i += 1) events.requestRefused(refused(`r${second}-${i}`, lost('ECONNREFUSED')))
    vi.advanceTimersByTime(1_000)
  }
  const during = read()
  expect(during.map(({ msg }) => msg)).toEqual([
    'request refused, because something it needs is not available',
    'a failure goes on',
  ])
  expect(during[0]).toMatchObject({
    level: 'error',
    requestId: 'r0-0',
    err: { stack: expect.stringContaining('connect failed') },
  })
  expect(during[1]).toMatchObject({ failures: 600, seconds: 60, error: 'ECONNREFUSED connect failed' })
  vi.advanceTimersByTime(60_000)
  expect(read()).toEqual([expect.objectContaining({ level: 'error', msg: 'a failure is over', failures: 900, seconds: 89 })])
  // A later failure has a full line again.
  events.requestRefused(refused('later', lost('ECONNREFUSED')))
  expect(read()).toEqual([expect.objectContaining({ requestId: 'later', err: expect.anything() })])
})

test('what strangers and broken neighbours cause without end is told once of each kind and source', () => {
  const events = newEvents()
  const down = new Error('refuses connections')
  for (let i = 0; i < 50; i += 1) {
    events.tlsRefused({ source: '192.0.2.1', reason: 'ERR_SSL_WRONG_VERSION_NUMBER' })
    events.tlsRefused({ source: '192.0.2.1', reason: 'ECONNRESET' })
    events.tlsRefused({ source: `198.51.100.${i % 2}`, reason: 'ECONNRESET' })
    events.userInfoFailed({ activationId: `a-${i}`, err: down })
    events.activationProviderFailed({ applicationId: 'app', err: down })
  }
  const told = read()
  expect(told.map(({ msg, source }) => [msg, source])).toEqual([
    ['a TLS connection was refused', '192.0.2.1'],
    ['a TLS connection was refused', '192.0.2.1'],
    ['a TLS connection was refused', '198.51.100.0'],
    ['no user info', undefined],
    ['the activation provider gave no user', undefined],
    ['a TLS connection was refused', '198.51.100.1'],
  ])
  // Beyond the bound many sources share one kind, so a flood from a whole network writes few lines.
  for (let i = 0; i < 5_000; i += 1) events.tlsRefused({ source: `203.0.${i >> 8}.${i & 255}`, reason: 'ECONNRESET' })
  expect(read().length).toBeLessThan(110)
  vi.advanceTimersByTime(60_000)
  expect(read().filter(({ msg }) => msg === 'a failure is over').length).toBeLessThan(110)
})

test('a failure that came once needs no end, and another error is told beside the first', () => {
  const events = newEvents()
  events.housekeepingFailed({ err: lost('ECONNREFUSED') })
  events.housekeepingFailed({ err: lost('57P01') })
  expect(read()).toHaveLength(2)
  vi.advanceTimersByTime(120_000)
  expect(read()).toEqual([])
})

test('what is told later of a failure belongs to no request, whichever was the first to tell of it', () => {
  const events = newEvents()
  const scopes: unknown[] = []
  // A fake timer runs in the scope in which the test advances it, a real one in the scope that began it. So this test spies on the real
  // setInterval.
  vi.useRealTimers()
  const begin = vi.spyOn(globalThis, 'setInterval').mockImplementation(() => {
    scopes.push(currentScope())
    return setTimeout(() => undefined, 0)
  })
  runInScope({ id: 'the first', span: undefined }, () => events.requestRefused(refused('the first', lost('ECONNREFUSED'))))
  begin.mockRestore()
  expect(scopes).toEqual([undefined])
})

test('a bug has a line for each request, its stack once', () => {
  const events = newEvents()
  for (const id of ['a', 'b', 'c']) events.requestFailed(refused(id, new TypeError('no such member')))
  const told = read()
  expect(told.map(({ requestId }) => requestId)).toEqual(['a', 'b', 'c'])
  expect(told.filter((line) => JSON.stringify(line).includes('stack'))).toHaveLength(1)
  expect(told[2]).toMatchObject({ error: 'no such member', msg: 'request failed' })
})

test('errors that are all different do not fill the memory or the log', () => {
  const events = newEvents()
  for (let i = 0; i < 5_000; i += 1) events.requestRefused(refused('r', new Error(`different ${i}`)))
  expect(read().length).toBeLessThan(200)
})
