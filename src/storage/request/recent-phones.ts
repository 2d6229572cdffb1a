// Remembers phones whose code this process accepted, as their last acceptance left them (docs/decisions/0009-remembered-phones.md). A phone's next
// code is checked against that without a read. The remembered counter also holds against the database: when a row was put back by hand, by a backup
// or by a failover, no used code is accepted again.
import { isDeepStrictEqual } from 'node:util'
import { concatWithSizes, equalPublic, fromUtf8, splitBySizes, u32, utf8 } from '../../lib/bytes.ts'
import { type Caches, createByteMemory, createCaches, createMemory } from '../../lib/memory.ts'
import { keyIdOf } from '../../lib/sealed-value.ts'
import { givenColumns, REQUEST_COLUMNS, STATUS_COLUMNS } from '../activation/columns.ts'
import type { ActivationRow, ReadActivationRow } from '../activation/find.ts'
import type { VersionRow } from '../application/version.ts'
import type { PartyNames, ReadParties, RequestParties } from './lookup.ts'

export interface PhoneEvents {
  /** Both fields are counters: `stored` was read from the database, `known` was stored by this process. */
  readonly counterWentBack: (fields: { activationId: string; stored: number; known: number }) => void
}

interface RecentPhones {
  /** Returns the phone if its last acceptance was under this application key, and no phone otherwise. */
  readonly recall: (names: Omit<PartyNames, 'at'>) => RequestParties
  /** Returns the phone under any application key, for `renew`. */
  readonly latest: (activationId: string) => RecentPhone | undefined
  /** Remembers a committed acceptance. An offline code names no version: its phone keeps the one that is known of it. */
  readonly remember: (parties: RequestParties) => void
  /**
   * Returns the rows that were read, with the counter and the highest protocol version of `known` when the database has an earlier one; the next
   * stored code repairs the row. `known` is the phone as remembered before the read. The rows replace it in memory, unless an acceptance replaced it
   * meanwhile.
   */
  readonly renew: (known: RecentPhone | undefined, read: ReadParties) => ReadParties
}

/** A remembered phone: the number of its version, 4 bytes, and the packed activation. */
type RecentPhone = Buffer & { readonly [REMEMBERED]: true }
declare const REMEMBERED: unique symbol

/** Makes a memory of up to 100,000 phones within about 40 MiB. Secrets in it are sealed. */
export function createRecentPhones(events: PhoneEvents, caches: Caches = createCaches()): RecentPhones {
  const memory = createByteMemory({ max: PHONES_MAX, slotBytes: PHONE_BYTES })
  const watched = caches.watch('recent_phones', PHONES_MAX, memory)
  const versions = createVersions()

  const latest = (activationId: string) => memory.get(activationId) as RecentPhone | undefined
  const remember = ({ version, activation }: RequestParties): void => {
    if (activation === undefined) return
    const { activationId } = activation
    const number = version ? versions.numberOf(version) : (latest(activationId)?.readUInt32BE() ?? NO_VERSION)
    memory.set(activationId, packPhone(number, activation))
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

/** Numbers the versions of remembered phones. Each read returns a new object, and equal objects get the same number. */
function createVersions() {
  const versions = createMemory<VersionRow>({ max: VERSIONS_MAX })
  const numbers = createMemory<{ readonly number: number }>({ max: VERSIONS_MAX })
  const get = (number: number): VersionRow | undefined => versions.get(String(number))
  let last = 0
  return {
    /** The version with a number; undefined once 1,000 other versions were in use since. */
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

function neverBehind(events: PhoneEvents, read: ReadActivationRow, known: ActivationRow): ReadActivationRow {
  // After a failover that lost an upgrade to 4.0 the row has the keys of protocol 3 again, and their used codes. This version refuses them.
  const isLower = (known.highestVersion ?? '') > (read.highestVersion ?? '')
  const activation = isLower ? { ...read, highestVersion: known.highestVersion } : read
  if (!activation.ctrData || !known.ctrData || known.protocolVersion !== activation.protocolVersion) return activation
  const isBehind =
    known.counter > activation.counter ||
    (known.counter === activation.counter && !equalPublic(known.ctrData, activation.ctrData))
  if (!isBehind) return activation
  const { activationId, counter: stored } = activation
  // After a change of the master key the same data is sealed anew. The remembered value can still be opened, and its content is the same.
  const isSealedAnew = known.counter === stored && keyIdOf(known.ctrData) !== keyIdOf(activation.ctrData)
  if (!isSealedAnew) events.counterWentBack({ activationId, stored, known: known.counter })
  return { ...activation, counter: known.counter, ctrData: known.ctrData }
}

const NOBODY: RequestParties = { version: undefined, activation: undefined }

const PHONES_MAX = 100_000
// The size of a phone whose names have 160 bytes together (docs/decisions/0014-memory.md).
const PHONE_BYTES = 448
const VERSIONS_MAX = 1_000
const VERSION_BYTES = 4
/** The number of a phone that has sent offline codes alone. Versions are numbered from 1. */
const NO_VERSION = 0

/** The members of an activation that are packed: as bytes they take less than half the memory of an object (docs/decisions/0014-memory.md). */
type PackedRow = Omit<ActivationRow, 'isUpgradePending'>

/**
 * Packs an activation without its id and the server's private key, in three parts with their sizes: a JSON array, with times in milliseconds, and
 * two values that stay sealed; null is packed as empty.
 */
function packActivation(activation: PackedRow): Uint8Array {
  const { masterSecret, ctrData } = activation
  const cells = CELLS.map(({ name }) => toCell(activation[name]))
  return concatWithSizes(utf8(JSON.stringify(cells)), masterSecret ?? undefined, ctrData ?? undefined)
}

/** Unpacks the activation with this id. Its sealed values share memory with `packed`. */
function unpackActivation(activationId: string, packed: Buffer): ActivationRow {
  const [json, masterSecret, ctrData] = splitBySizes(packed) as [Buffer, Buffer, Buffer]
  const cells = JSON.parse(fromUtf8(json)) as ReturnType<typeof toCell>[]
  const row: Record<string, unknown> = { ...EMPTY, activationId, masterSecret: orNull(masterSecret), ctrData: orNull(ctrData) }
  CELLS.forEach(({ name, isTime }, i) => {
    row[name] = isTime ? fromTime(cells[i]) : cells[i]
  })
  return row as unknown as ActivationRow
}

/** The members that are packed into the array, in its order. */
const CELLS = Object.entries({
  ...givenColumns(STATUS_COLUMNS),
  ...givenColumns(REQUEST_COLUMNS),
  blockExpiresAt: 'timestamptz',
  isBlockOver: 'boolean',
})
  .filter(([name, type]) => type !== 'bytea' && name !== 'activationId')
  .map(([name, type]) => ({ name: name as Exclude<keyof PackedRow, 'serverPrivateKey'>, isTime: type === 'timestamptz' }))

/** An object with all members: adding them one by one to an empty object takes half as long again. */
const EMPTY = Object.fromEntries(CELLS.map(({ name }) => [name, null]))

const toCell = (value: unknown): unknown => (value instanceof Date ? value.getTime() : value)
const fromTime = (cell: unknown): Date | null => (cell === null ? null : new Date(Number(cell)))

// A sealed value is never empty.
const orNull = (bytes: Buffer): Buffer | null => (bytes.length === 0 ? null : bytes)
