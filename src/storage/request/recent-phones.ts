// Phones whose code this process accepted, as their last acceptance left them (docs/decisions/0009-remembered-phones.md). A phone's next code
// is checked against that without a read. And the database does not get behind it: a row put back by hand, by a backup or by a failover
// makes no used code good again.
import { isDeepStrictEqual } from 'node:util'
import { concatWithSizes, equalPublic, fromUtf8, splitBySizes, u32, utf8 } from '../../lib/bytes.ts'
import { type Caches, createByteMemory, createCaches, createMemory } from '../../lib/memory.ts'
import { keyIdOf } from '../../lib/sealed-value.ts'
import { givenColumns, REQUEST_COLUMNS, STATUS_COLUMNS } from '../activation/columns.ts'
import type { ActivationRow, ReadActivationRow } from '../activation/find.ts'
import type { VersionRow } from '../application/version.ts'
import type { PartyNames, ReadParties, RequestParties } from './lookup.ts'

export interface PhoneEvents {
  /** Both are counters; `known` is what this process stored. */
  readonly counterWentBack: (fields: { activationId: string; stored: number; known: number }) => void
}

interface RecentPhones {
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
  readonly renew: (known: RecentPhone | undefined, read: ReadParties) => ReadParties
}

/** A phone as it is remembered: the number of its version, 4 bytes, and the packed activation. */
type RecentPhone = Buffer & { readonly [REMEMBERED]: true }
declare const REMEMBERED: unique symbol

/** A memory of up to 100,000 phones, of as many as 40 MiB hold. Secrets in it are sealed. */
export function createRecentPhones(events: PhoneEvents, caches: Caches = createCaches()): RecentPhones {
  const memory = createByteMemory({ max: PHONES_MAX, slotBytes: PHONE_BYTES })
  const watched = caches.watch('recent_phones', PHONES_MAX, memory)
  const versions = createVersions()

  const latest = (activationId: string) => memory.get(activationId) as RecentPhone | undefined
  const remember = ({ version, activation }: RequestParties): void => {
    if (version && activation) memory.set(activation.activationId, packPhone(versions.numberOf(version), activation))
  }
  return {
    recall: ({ applicationKey, activationId }) => {
      const phone = watched.get(activationId) as RecentPhone | undefined
      const version = phone && versions.get(phone.readUInt32BE())
      return phone && version?.applicationKey === applicationKey
        ? { version, activation: activationOf(activationId, phone) }
        : NOBODY
    },
    latest,
    remember,
    renew: (known, read) => {
      if (known === undefined || read.activation === undefined) return read
      const { activationId } = read.activation
      const renewed = { ...read, activation: neverBehind(events, read.activation, activationOf(activationId, known)) }
      const current = latest(activationId)
      if (current && equalPublic(current, known)) remember(renewed)
      return renewed
    },
  }
}

/** The versions of remembered phones. Each read brings an object of its own; equal ones have one number. */
function createVersions() {
  const versions = createMemory<VersionRow>({ max: VERSIONS_MAX })
  const numbers = createMemory<{ readonly number: number }>({ max: VERSIONS_MAX })
  const get = (number: number): VersionRow | undefined => versions.get(String(number))
  let last = 0
  return {
    /** The version of a number, unless 1,000 others were in use since. */
    get,
    numberOf: (version: VersionRow): number => {
      const number = numbers.get(version.applicationKey)?.number
      const known = number === undefined ? undefined : get(number)
      if (number !== undefined && (known === version || isDeepStrictEqual(known, version))) return number
      last += 1
      versions.set(String(last), version)
      numbers.set(version.applicationKey, { number: last })
      return last
    },
  }
}

const packPhone = (version: number, activation: ActivationRow): Buffer =>
  Buffer.concat([u32(version), packActivation(activation)])
const activationOf = (activationId: string, phone: RecentPhone): ActivationRow =>
  unpackActivation(activationId, phone.subarray(VERSION_BYTES))

function neverBehind(events: PhoneEvents, activation: ReadActivationRow, known: ActivationRow): ReadActivationRow {
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

const PHONES_MAX = 100_000
// One whose names have 160 bytes together (docs/decisions/0014-memory.md).
const PHONE_BYTES = 448
const VERSIONS_MAX = 1_000
const VERSION_BYTES = 4

/** What is packed of an activation: as bytes it takes less than half of what it takes as an object (docs/decisions/0014-memory.md). */
type PackedRow = Omit<ActivationRow, 'isUpgradePending'>

/**
 * Packs an activation but for its identifier and the server's private key, as it is and not as an upgrade will make it: three parts with their
 * sizes. They are JSON of an array, with times as milliseconds, and two sealed values, still sealed; one that is null is empty.
 */
function packActivation(activation: PackedRow): Uint8Array {
  const { masterSecret, ctrData } = activation
  const cells = CELLS.map(({ name }) => toCell(activation[name]))
  return concatWithSizes(utf8(JSON.stringify(cells)), masterSecret ?? undefined, ctrData ?? undefined)
}

/** The activation of this identifier that was packed; what is sealed in it shares memory with `packed`. */
function unpackActivation(activationId: string, packed: Buffer): ActivationRow {
  const [json, masterSecret, ctrData] = splitBySizes(packed) as [Buffer, Buffer, Buffer]
  const cells = JSON.parse(fromUtf8(json)) as ReturnType<typeof toCell>[]
  const row: Record<string, unknown> = { ...EMPTY, activationId, masterSecret: orNull(masterSecret), ctrData: orNull(ctrData) }
  CELLS.forEach(({ name, isTime }, i) => {
    row[name] = isTime ? fromTime(cells[i]) : cells[i]
  })
  return row as unknown as ActivationRow
}

/** What is packed into the array, in its order. */
const CELLS = Object.entries({
  ...givenColumns(STATUS_COLUMNS),
  ...givenColumns(REQUEST_COLUMNS),
  blockExpiresAt: 'timestamptz',
  isBlockOver: 'boolean',
})
  .filter(([name, type]) => type !== 'bytea' && name !== 'activationId')
  .map(([name, type]) => ({ name: name as Exclude<keyof PackedRow, 'serverPrivateKey'>, isTime: type === 'timestamptz' }))

/** All members at once: an object to which they are added one by one takes half as long again. */
const EMPTY = Object.fromEntries(CELLS.map(({ name }) => [name, null]))

const toCell = (value: unknown): unknown => (value instanceof Date ? value.getTime() : value)
const fromTime = (cell: unknown): Date | null => (cell === null ? null : new Date(Number(cell)))

// What is sealed is never empty.
const orNull = (bytes: Buffer): Buffer | null => (bytes.length === 0 ? null : bytes)
