// The parties of recent authentications as their last write left them. A phone's next code is checked against them without a read; the
// conditional write compares whether they still hold. They alone never refuse a code, except one that the counter has passed.
import { LRUCache } from 'lru-cache'
import type { RequestParties } from '../storage/activation/authentication.ts'

export interface RecentParties {
  /** What is remembered; no version and no activation when nothing is. */
  readonly recall: (applicationKey: string, activationId: string) => RequestParties
  readonly keep: (parties: RequestParties) => void
  readonly forget: (applicationKey: string, activationId: string) => void
}

/** A memory of up to 20,000 activations, about 1 kB each; secrets in it are sealed. */
export function createRecentParties(): RecentParties {
  const memory = new LRUCache<string, RequestParties>({ max: 20_000 })
  return {
    recall: (applicationKey, activationId) => memory.get(nameOf(applicationKey, activationId)) ?? NOBODY,
    keep: (parties) => {
      if (parties.version && parties.activation)
        memory.set(nameOf(parties.version.applicationKey, parties.activation.activationId), parties)
    },
    forget: (applicationKey, activationId) => memory.delete(nameOf(applicationKey, activationId)),
  }
}

const nameOf = (applicationKey: string, activationId: string): string => `${applicationKey} ${activationId}`

const NOBODY: RequestParties = { version: undefined, activation: undefined }
