// Phones whose code this process accepted, as their last acceptance left them (docs/decisions/0009-remembered-phones.md). A phone's next code
// is checked against that without a read. And the database does not get behind it: a row put back by hand, by a backup or by a failover
// makes no used code good again.
import { isDeepStrictEqual } from 'node:util'
import { type Caches, createCaches } from '../../lib/caches.ts'
import { equalPublic } from '../../lib/bytes.ts'
import { createMemory } from '../../lib/memory.ts'
import { keyIdOf } from '../../lib/sealed-value.ts'
import type { ActivationRow } from './find.ts'
import { packActivation, type PackedActivation, unpackActivation } from './packed-activation.ts'
import type { PartyNames, RequestParties } from './parties.ts'
import type { VersionRow } from './version.ts'

export interface PhoneEvents {
  /** Both are counters; `known` is what this process stored. */
  readonly counterWentBack: (fields: { activationId: string; stored: number; known: number }) => void
}

export interface RecentPhones {
  /** The phone, if its last acceptance was under this application key; nobody otherwise. */
  readonly recall: (names: Omit<PartyNames, 'at'>) => RequestParties
  /** The phone under whatever key, for `renew`. */
  readonly latest: (activationId: string) => RecentPhone | undefined
  /** Remembers an acceptance that is committed. */
  readonly remember: (parties: RequestParties) => void
  /**
   * What was read, with the counter of `known` where the database has an earlier one: the next right code repairs the row. `known` is what
   * was remembered before the read; what was read takes its place, unless an acceptance took it meanwhile.
   */
  readonly renew: (known: RecentPhone | undefined, read: RequestParties) => RequestParties
}

/** A phone as it is remembered. */
export interface RecentPhone {
  readonly version: VersionRow
  readonly activation: PackedActivation
}

/** A memory of up to 25,000 phones, of as many as 24 MiB hold. Secrets in it are sealed. */
export function createRecentPhones(events: PhoneEvents, caches: Caches = createCaches()): RecentPhones {
  const memory = createMemory<RecentPhone>({ max: PHONES_MAX, bytes: { max: BYTES_MAX, of: bytesOf } })
  const watched = caches.watch('recent_phones', PHONES_MAX, memory)
  const versions = createMemory<VersionRow>({ max: VERSIONS_MAX })

  /** One object for the phones of an app: each read brings an equal one of its own. */
  const share = (version: VersionRow): VersionRow => {
    const shared = versions.get(version.applicationKey)
    if (shared === version || isDeepStrictEqual(shared, version)) return shared ?? version
    versions.set(version.applicationKey, version)
    return version
  }
  const remember = ({ version, activation }: RequestParties): void => {
    if (version && activation)
      memory.set(activation.activationId, { version: share(version), activation: packActivation(activation) })
  }
  return {
    recall: ({ applicationKey, activationId }) => {
      const phone = watched.get(activationId)
      return phone?.version.applicationKey === applicationKey
        ? { version: phone.version, activation: unpackActivation(phone.activation) }
        : NOBODY
    },
    latest: (activationId) => memory.get(activationId),
    remember,
    renew: (known, read) => {
      if (known === undefined || read.activation === undefined) return read
      const renewed = { ...read, activation: neverBehind(events, read.activation, unpackActivation(known.activation)) }
      if (memory.get(read.activation.activationId) === known) remember(renewed)
      return renewed
    },
  }
}

function neverBehind(events: PhoneEvents, activation: ActivationRow, known: ActivationRow): ActivationRow {
  if (!activation.ctrData || !known.ctrData || known.protocolVersion !== activation.protocolVersion) return activation
  const isBehind =
    known.counter > activation.counter ||
    (known.counter === activation.counter && !equalPublic(known.ctrData, activation.ctrData))
  if (!isBehind) return activation
  const { activationId, counter: stored } = activation
  // A new master key seals the same data anew. What is known opens as well, and is what it was.
  const isSealedAnew = known.counter === stored && keyIdOf(known.ctrData) !== keyIdOf(activation.ctrData)
  if (!isSealedAnew) events.counterWentBack({ activationId, stored, known: known.counter })
  return { ...activation, counter: known.counter, ctrData: known.ctrData }
}

const NOBODY: RequestParties = { version: undefined, activation: undefined }

/** About how many bytes are kept of a phone. */
const bytesOf = ({ activation }: RecentPhone): number => ENTRY_BYTES + activation.length

const PHONES_MAX = 25_000
const BYTES_MAX = 24 * 1024 * 1024
// Its place in the memory (docs/decisions/0014-memory.md).
const ENTRY_BYTES = 150
const VERSIONS_MAX = 1_000
