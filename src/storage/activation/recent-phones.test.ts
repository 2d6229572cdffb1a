// How many phones a process remembers.
import { expect, test } from 'vitest'
import { createCaches } from '../../lib/caches.ts'
import type { RequestParties } from './parties.ts'
import { createRecentPhones } from './recent-phones.ts'

test.each([
  ['P-384', 97, 10_000],
  ['P-384 and ML-DSA-65', 97 + 1_974, 6_203],
])('as many phones with keys of %s are remembered as 30 MiB hold, 10,000 at most', (_, keyLength, entries) => {
  const caches = createCaches()
  const phones = createRecentPhones({ counterWentBack: () => undefined }, caches)
  const serverPublicKey = Buffer.alloc(keyLength)
  const remember = (activationId: string): void =>
    phones.remember({ version: { applicationKey: 'key' }, activation: { activationId, serverPublicKey } } as RequestParties)
  for (let i = 0; i < 11_000; i += 1) remember(String(i))
  expect(caches.list()).toMatchObject([{ name: 'recent_phones', entries, entriesMax: 10_000 }])
  expect(phones.latest('0')).toBeUndefined()
  expect(phones.latest('10999')).toBeDefined()
})
