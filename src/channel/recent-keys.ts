// Temporary keys of applications that this process made or read lately. A request is looked into with them before anything of it is read, to
// learn what else is to be read in the same statement. Nothing is decided by them.
import { type Caches, createCaches } from '../lib/caches.ts'
import { createMemory } from '../lib/memory.ts'
import type { VersionRow } from '../storage/application/version.ts'
import type { TemporaryKeyRow } from '../storage/application/temporary-keys.ts'

/** A key as it was stored, and the version it was made for. */
export interface RecentKey {
  readonly version: VersionRow
  readonly temporaryKey: TemporaryKeyRow
}

export interface RecentKeys {
  readonly recall: (temporaryKeyId: string) => RecentKey | undefined
  readonly remember: (key: RecentKey) => void
}

/** A memory of up to 2,000 keys, of 1 to 4 kB each; what is secret in it is sealed. */
export function createRecentKeys(caches: Caches = createCaches()): RecentKeys {
  const entries = createMemory<RecentKey>({ max: KEYS_MAX })
  // A key is not kept longer than its row.
  const memory = caches.watch('recent_keys', KEYS_MAX, entries, (now) =>
    entries.forget(({ temporaryKey }) => temporaryKey.expiresAt.getTime() <= now),
  )
  return {
    recall: (temporaryKeyId) => memory.get(temporaryKeyId),
    remember: (key) => memory.set(key.temporaryKey.temporaryKeyId, key),
  }
}

const KEYS_MAX = 2_000
