// Recent temporary keys: remembered as they are stored, and not longer than they hold.
import { expect, test, vi } from 'vitest'
import { createCaches } from '../lib/caches.ts'
import { createRecentKeys, type RecentKey } from './recent-keys.ts'

const keyUntil = (temporaryKeyId: string, expiresAt: number): RecentKey => ({
  version: {} as RecentKey['version'],
  temporaryKey: {
    temporaryKeyId,
    applicationKey: 'application',
    activationId: null,
    privateKey: new Uint8Array(1),
    expiresAt: new Date(expiresAt),
  },
})

test('a key is forgotten within five seconds of its end', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const caches = createCaches()
    const keys = createRecentKeys(caches)
    const [first, second] = [keyUntil('first', 2_000), keyUntil('second', 2_001)]
    keys.remember(first)
    keys.remember(second)
    const stop = caches.startForgetting(() => 2_000)
    expect(keys.recall('first')).toBe(first)
    vi.advanceTimersByTime(5_000)
    expect([keys.recall('first'), keys.recall('second')]).toEqual([undefined, second])
    stop()
  } finally {
    vi.useRealTimers()
  }
})
