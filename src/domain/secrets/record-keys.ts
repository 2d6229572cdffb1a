// Secrets at rest: every secret column is encrypted for its own table, column and row under the master key.
//
// A record's key is HMAC-SHA-256(master key, place), so that no AES-GCM key ever sees more than the writes of one row and random
// 96-bit nonces stay far below the 2^32 invocations of NIST SP 800-38D §8.3. The associated data are form and id of the master key, the place
// once more, and the values that it is bound to, each with its length in front (row-mac.ts).
//
//   sealed = form ‖ master key id (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)
//
// The form is 0x02 where the place is bound to something, else 0x01. Records of a bound place that are older than the binding are 0x01 too:
// binding.ts says how long they are taken. Of several master keys the first seals, and a record opens under the one that it names.
import type { KeyObject } from 'node:crypto'
import { aesGcmOpen, aesGcmSeal } from '../../crypto/aes.ts'
import { hmac, importHmacKey } from '../../crypto/hash.ts'
import { bytesOfKeys } from '../../crypto/key.ts'
import { type ByteMemory, type Caches, createByteMemory, createCaches, createMemory, type Memory } from '../../lib/memory.ts'
import { concat, concatWithSizes, equalPublic, ownBytes, splitBySizes, toHex, utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import { BOUND_FORM, KEY_ID_BYTES, keyIdOf, PLAIN_FORM } from '../../lib/sealed-value.ts'
import { encodeTexts } from './row-mac.ts'

/** The place of a sealed value. */
export interface Place {
  readonly table: string
  readonly column: string
  /** The primary key of the row. */
  readonly row: string
  /** Values of other columns that must be the same as at the sealing: the owner of the row. */
  readonly bound?: readonly string[]
}

/** What becomes of the records of bound places. It changes while a process runs, in one direction (binding.ts). */
interface BoundRecords {
  /** Whether they are sealed with what they are bound to. */
  areBound: boolean
  /** Until when this process knows that new records are not to be bound; milliseconds of the monotonic clock. */
  knownUntil: number
  /** Whether unbound records are opened. */
  areUnboundTaken: boolean
}

/** One master key or more. The first seals. */
export type MasterKeys = readonly [Uint8Array, ...Uint8Array[]]

/** The source of the master keys. */
export interface KeyOrigin {
  readonly setting: string
  /** What to do when they are the wrong ones. */
  readonly todo: string
}

export interface RecordKeys {
  readonly origin: KeyOrigin
  /** The ids of the master keys in hex, the one that seals first. */
  readonly keyIds: readonly [string, ...string[]]
  /** Encrypts `plaintext` for its place. */
  readonly seal: (place: Place, plaintext: Uint8Array) => Buffer
  /** May be changed as `binding.ts` does. */
  readonly boundRecords: BoundRecords
  /** Whether a value has a form that is accepted at its place. */
  readonly isTaken: (place: Place, sealed: Uint8Array) => boolean
  /** Whether a value is sealed as `seal` would seal it now: in the same form, under the same master key. */
  readonly isSealedAsNow: (place: Place, sealed: Uint8Array) => boolean
  /** Decrypts a value. Throws SealedRecordError when it was altered or moved, or sealed under a missing master key. */
  readonly open: (place: Place, sealed: Uint8Array) => Uint8Array
  /**
   * The result of `build` for the decrypted value. It is remembered as long as the sealed bytes in the database are the same, so a change by
   * another process is noticed at the next read.
   */
  readonly openCached: <T extends object>(place: Place, sealed: Uint8Array, build: (plaintext: Uint8Array) => T, kept?: Kept) => T
  /** Tells of a record that was altered or moved, and returns the error to throw. For one that opens, where something else shows it. */
  readonly reportAltered: (place: Place) => SealedRecordError
}

/** How something built is remembered. */
interface Kept {
  /** Names what is built where several things are made of one place: each of them is remembered for itself. */
  readonly form?: string
  /** The end of the result, in milliseconds. Memory forgets it soon after. */
  readonly until?: number
  /** Whether the result is bytes. Many more of these are remembered, without a name and an end. */
  readonly areBytes?: boolean
}

/** The error for a sealed record that cannot be opened. It has the place, never the bytes. */
export class SealedRecordError extends Error {
  /** False if only its master key is missing. */
  readonly isAltered: boolean
  constructor(place: Place, isAltered: boolean) {
    const why = isAltered ? 'altered, or moved' : 'sealed under a master key that is not given'
    super(`cannot open the sealed record ${describe(place)}: ${why}`)
    this.name = 'SealedRecordError'
    this.isAltered = isAltered
  }
}

interface RecordKeysOptions {
  readonly caches?: Caches
  /** PAWL_MASTER_KEY without it. */
  readonly origin?: KeyOrigin
  /** Is told of each record that was altered or moved; `record` is its place, for people. */
  readonly onAltered?: (fields: { readonly record: string }) => void
}

/** Makes the encryption of records under master keys of 32 bytes each. At first it accepts no record that is not bound to its owner. */
export function createRecordKeys(
  masterKeys: MasterKeys,
  platform: Pick<Platform, 'randomBytes'>,
  { caches = createCaches(), onAltered = () => undefined, origin = OF_SETTING }: RecordKeysOptions = {},
): RecordKeys {
  const [first, ...others] = masterKeys
  const sealing = toRoot(first)
  const roots = new Map([...others.map(toRoot), sealing].map((root) => [root.id, root]))
  const derived = caches.watch(
    'derived_keys',
    CACHED_DERIVED,
    createByteMemory({ max: CACHED_DERIVED, slotBytes: DERIVED_BYTES }),
  )
  const values = createMemory<Opened>({ max: CACHED_VALUES, bytes: { max: CACHED_BYTES, of: bytesOf } })
  const opened = caches.watch('opened_records', CACHED_VALUES, values, (now) => values.forget(({ until }) => until <= now))

  const boundRecords: BoundRecords = { areBound: true, knownUntil: 0, areUnboundTaken: false }
  const formFor = ({ bound }: Place): number => (bound !== undefined && boundRecords.areBound ? BOUND_FORM : PLAIN_FORM)
  const isTaken: RecordKeys['isTaken'] = (place, sealed) => isFormTaken(place, sealed, boundRecords)

  const seal: RecordKeys['seal'] = (place, plaintext) => {
    requireKnown(place, boundRecords)
    const nonce = platform.randomBytes(NONCE_BYTES)
    const header = formFor(place) === BOUND_FORM ? sealing.boundHeader : sealing.plainHeader
    const key = deriveKey(sealing, nameOf(place))
    return Buffer.concat([header, nonce, aesGcmSeal(key, nonce, plaintext, associatedData(header, place))])
  }

  const reportAltered: RecordKeys['reportAltered'] = (place) => {
    onAltered({ record: describe(place) })
    return new SealedRecordError(place, true)
  }

  /** Refuses a form that is not accepted, even if a result is remembered. */
  const requireTaken = (place: Place, sealed: Uint8Array): void => {
    if (!isTaken(place, sealed)) throw reportAltered(place)
  }

  const open: RecordKeys['open'] = (place, sealed) => {
    requireTaken(place, sealed)
    const root = roots.get(keyIdOf(sealed))
    if (root === undefined) throw new SealedRecordError(place, false)
    const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)
    const associated = associatedData(sealed.subarray(0, HEADER_BYTES), place)
    const plaintext = aesGcmOpen(deriveKey(root, nameOf(place)), nonce, sealed.subarray(HEADER_BYTES + NONCE_BYTES), associated)
    if (plaintext === undefined) throw reportAltered(place)
    return plaintext
  }

  const [objectStore, byteStore] = [storeObjects(opened), storeBytes(derived)]
  const openCached: RecordKeys['openCached'] = (place, sealed, build, { form, until = FOR_EVER, areBytes = false } = {}) => {
    requireTaken(place, sealed)
    const store = areBytes ? byteStore : objectStore
    const name = cacheNameOf(place, form)
    const known = store.find(name, sealed)
    // The name says what was built.
    if (known !== undefined) return known as ReturnType<typeof build>
    const built = build(open(place, sealed))
    store.keep(name, sealed, built, until)
    return built
  }

  return {
    origin,
    keyIds: [sealing.id, ...[...roots.keys()].filter((id) => id !== sealing.id)],
    boundRecords,
    isTaken,
    isSealedAsNow: (place, sealed) => sealed[0] === formFor(place) && keyIdOf(sealed) === sealing.id,
    seal,
    open,
    openCached,
    reportAltered,
  }
}

/** Throws UNAVAILABLE unless this process knows the stage: a record that is sealed unbound after all others are bound would be lost. */
function requireKnown({ bound }: Place, { areBound, knownUntil }: BoundRecords): void {
  if (bound === undefined || areBound || performance.now() <= knownUntil) return
  throw new PawlError('UNAVAILABLE', { detail: 'the database has not said lately how records are sealed', retryAfterSeconds: 1 })
}

const isFormTaken = ({ bound }: Place, [form]: Uint8Array, { areUnboundTaken }: BoundRecords): boolean =>
  bound === undefined ? form === PLAIN_FORM : form === BOUND_FORM || (form === PLAIN_FORM && areUnboundTaken)

/** Results by name, valid as long as their sealed bytes are the same. */
interface Store<T> {
  readonly find: (name: string, sealed: Uint8Array) => T | undefined
  readonly keep: (name: string, sealed: Uint8Array, built: T, until: number) => void
}

const storeObjects = (opened: Memory<Opened>): Store<object> => ({
  find: (name, sealed) => {
    const known = opened.get(name)
    return known !== undefined && equalPublic(known.sealed, sealed) ? known.value : undefined
  },
  keep: (name, sealed, value, until) => opened.set(name, { sealed: ownBytes(sealed), value, until }),
})

const storeBytes = (derived: Pick<ByteMemory, 'get' | 'set'>): Store<object> => ({
  find: (name, sealed) => {
    const cached = derived.get(name)
    const [from, known] = cached === undefined ? [] : splitBySizes(cached)
    return from !== undefined && known !== undefined && equalPublic(from, sealed) ? known : undefined
  },
  keep: (name, sealed, built) => {
    if (built instanceof Uint8Array) derived.set(name, concatWithSizes(sealed, built))
  },
})

interface Opened {
  readonly sealed: Uint8Array
  /** What was built of it. */
  readonly value: object
  readonly until: number
}

/** Estimates the bytes that an entry takes. */
const bytesOf = ({ sealed, value }: Opened): number => OPENED_BYTES + sealed.length + bytesOfKeys(value)

/** A master key, ready for use. */
interface Root {
  readonly id: string
  readonly root: KeyObject
  /** What every record under it begins with, in each form. */
  readonly plainHeader: Uint8Array
  readonly boundHeader: Uint8Array
}

function toRoot(masterKey: Uint8Array): Root {
  const root = importHmacKey(masterKey)
  const id = hmac(root, utf8('pawl/master-key-id')).subarray(0, KEY_ID_BYTES)
  const [plainHeader, boundHeader] = [concat(Uint8Array.of(PLAIN_FORM), id), concat(Uint8Array.of(BOUND_FORM), id)]
  return { id: toHex(id), root, plainHeader, boundHeader }
}

const deriveKey = ({ root }: Root, name: string): Uint8Array => hmac(root, utf8(`pawl/record-key\0${name}`))

// NUL separates: table and column names are ours, and neither a row key nor another column contains it.
const nameOf = (place: Place): string => `${place.table}\0${place.column}\0${place.row}`
/** The name of an entry; it contains the owner, so that one owner's value is never found for another. */
const cacheNameOf = (place: Place, form = ''): string => `${nameOf(place)}\0${form}\0${place.bound?.join('\0') ?? ''}`
const describe = (place: Place): string => `${place.table}.${place.column} of ${place.row}`

/** One key is for one table, column and row, so that the texts begin at one place. */
const associatedData = (header: Uint8Array, place: Place): Uint8Array => {
  const prefix = concat(header, utf8(nameOf(place)))
  return header[0] === BOUND_FORM ? encodeTexts(prefix, place.bound ?? []) : prefix
}

export const OF_SETTING: KeyOrigin = {
  setting: 'PAWL_MASTER_KEY',
  todo: 'give the right PAWL_MASTER_KEY, or look at whether DATABASE_URL names the right database',
}
const FOR_EVER = Number.POSITIVE_INFINITY
const HEADER_BYTES = 1 + KEY_ID_BYTES
const NONCE_BYTES = 12
// What full caches hold is measured in docs/decisions/0014-memory.md.
const CACHED_DERIVED = 100_000
// Two sizes, 49 bytes of a sealed KEY_MASTER_SECRET, and 112 of the keys of its activation (v3 §3.2). The secret of a token takes less.
const DERIVED_BYTES = 176
const CACHED_VALUES = 5_000
const CACHED_BYTES = 16 * 1024 * 1024
// The derived keys of an activation, with what remembers them; a private key comes on top.
const OPENED_BYTES = 3_000
