// Phones whose code this process accepted, as their last acceptance left them (docs/decisions/0009-remembered-phones.md). A phone's next code
// is checked against that without a read. And the database does not get behind it: a row put back by hand, by a backup or by a failover
// makes no used code good again.
import { type Caches, createCaches } from '../../lib/caches.ts'
import { equalPublic } from '../../lib/bytes.ts'
import { createMemory } from '../../lib/memory.ts'
import { keyIdOf } from '../../lib/sealed-value.ts'
import type { PartyNames, RequestParties } from './parties.ts'

export interface PhoneEvents {
  /** Both are counters; `known` is what this process stored. */
  readonly counterWentBack: (fields: { activationId: string; stored: number; known: number }) => void
}

export interface RecentPhones {
  /** The phone, if its last acceptance was under this application key; nobody otherwise. */
  readonly recall: (names: Omit<PartyNames, 'at'>) => RequestParties
  /** The phone under whatever key. */
  readonly latest: (activationId: string) => RequestParties | undefined
  /** Remembers an acceptance that is committed. */
  readonly remember: (parties: RequestParties) => void
  /**
   * What was read, with the counter of `known` where the database has an earlier one: the next right code repairs the row. `known` is what
   * was remembered before the read; what was read takes its place, unless an acceptance took it meanwhile.
   */
  readonly renew: (known: RequestParties | undefined, read: RequestParties) => RequestParties
}

/** A memory of up to 10,000 phones, or some 6,000 with keys of ML-DSA, which are longer: 30 MiB. Secrets in it are sealed. */
export function createRecentPhones(events: PhoneEvents, caches: Caches = createCaches()): RecentPhones {
  const memory = createMemory<RequestParties>({ max: PHONES_MAX, bytes: { max: BYTES_MAX, of: bytesOf } })
  const watched = caches.watch('recent_phones', PHONES_MAX, memory)
  const remember = (parties: RequestParties): void => {
    if (parties.version && parties.activation) memory.set(parties.activation.activationId, parties)
  }
  return {
    recall: ({ applicationKey, activationId }) => {
      const parties = watched.get(activationId)
      return parties?.version?.applicationKey === applicationKey ? parties : NOBODY
    },
    latest: (activationId) => memory.get(activationId),
    remember,
    renew: (known, read) => {
      if (known?.activation === undefined || read.activation === undefined) return read
      const renewed = neverBehind(events, read, known)
      if (memory.get(known.activation.activationId) === known) remember(renewed)
      return renewed
    },
  }
}

function neverBehind(events: PhoneEvents, read: RequestParties, { activation: known }: RequestParties): RequestParties {
  const { activation } = read
  if (!activation?.ctrData || !known?.ctrData || known.protocolVersion !== activation.protocolVersion) return read
  const isBehind =
    known.counter > activation.counter ||
    (known.counter === activation.counter && !equalPublic(known.ctrData, activation.ctrData))
  if (!isBehind) return read
  const { activationId, counter: stored } = activation
  // A new master key seals the same data anew. What is known opens as well, and is what it was.
  const isSealedAnew = known.counter === stored && keyIdOf(known.ctrData) !== keyIdOf(activation.ctrData)
  if (!isSealedAnew) events.counterWentBack({ activationId, stored, known: known.counter })
  return { ...read, activation: { ...activation, counter: known.counter, ctrData: known.ctrData } }
}

const NOBODY: RequestParties = { version: undefined, activation: undefined }

/** About how many bytes are kept of a phone. */
const bytesOf = ({ activation }: RequestParties): number => PHONE_BYTES + (activation?.serverPublicKey.length ?? 0)

const PHONES_MAX = 10_000
const BYTES_MAX = 30 * 1024 * 1024
// All but the public key (docs/decisions/0014-memory.md).
const PHONE_BYTES = 3_000
