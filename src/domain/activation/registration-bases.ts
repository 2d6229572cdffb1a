// What a process remembers of the applications that registrations are made in: the statement that stores one asks whether it still is so
// (docs/decisions/0011-remembered-applications.md).
import { type Caches, createCaches } from '../../lib/caches.ts'
import { createMemory } from '../../lib/memory.ts'
import type { RegistrationBasis } from '../../storage/activation/insert.ts'

/** An application that exists, and what signs the codes of its registrations. */
export type RememberedBasis = Pick<RegistrationBasis, 'applicationId' | 'isProtocol3Admitted'> & {
  readonly signingKey: NonNullable<RegistrationBasis['signingKey']>
}

/** By the application that was named: null for the default one. */
export interface RegistrationBases {
  readonly recall: (named: string | null) => RememberedBasis | undefined
  readonly remember: (named: string | null, basis: RememberedBasis) => void
}

/** A memory of up to 1,000 applications. */
export function createRegistrationBases(caches: Caches = createCaches()): RegistrationBases {
  const memory = caches.watch('registration_bases', BASES_MAX, createMemory<RememberedBasis>({ max: BASES_MAX }))
  // No application has an empty name.
  const nameOf = (named: string | null): string => named ?? ''
  return {
    recall: (named) => memory.get(nameOf(named)),
    remember: (named, basis) => memory.set(nameOf(named), basis),
  }
}

const BASES_MAX = 1_000
