// What answers a request for a temporary key of an application: its version and the master keys that sign. A process remembers both, and the
// statement that stores the key asks whether they still are what they were (docs/decisions/0012-temporary-keys.md).
import { type Caches, createCaches } from '../../lib/caches.ts'
import { createMemory } from '../../lib/memory.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { MasterSigningKeys } from './master-keys.ts'

/** A version that was taken, and what signs for it. */
export interface ApplicationSigner {
  readonly version: VersionRow
  readonly signingKeys: MasterSigningKeys
}

export interface ApplicationSigners {
  /** As the last answer left it; nothing may be decided by it but an answer that is confirmed. */
  readonly recall: (applicationKey: string, algorithm: string) => ApplicationSigner | undefined
  readonly remember: (algorithm: string, signer: ApplicationSigner) => void
  readonly forget: (applicationKey: string, algorithm: string) => void
}

/** A memory of up to 1,000 application keys and algorithms. Only versions that exist enter it. */
export function createApplicationSigners(caches: Caches = createCaches()): ApplicationSigners {
  const memory = caches.watch('application_signers', SIGNERS_MAX, createMemory<ApplicationSigner>({ max: SIGNERS_MAX }))
  const nameOf = (applicationKey: string, algorithm: string): string => `${algorithm} ${applicationKey}`
  return {
    recall: (applicationKey, algorithm) => memory.get(nameOf(applicationKey, algorithm)),
    remember: (algorithm, signer) => memory.set(nameOf(signer.version.applicationKey, algorithm), signer),
    forget: (applicationKey, algorithm) => memory.delete(nameOf(applicationKey, algorithm)),
  }
}

const SIGNERS_MAX = 1_000
