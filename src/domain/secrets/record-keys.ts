// Encrypts secrets at rest. Every value of a secret column is encrypted for its own table, column and row under the master key.
//
// The key of a record is HMAC-SHA-256(master key, place). So one AES-GCM key only encrypts the writes of one row, and random 96-bit nonces stay far
// below the 2^32 invocations of NIST SP 800-38D §8.3. The associated data are the form, the id of the master key, the place again, and the values
// that the record is bound to, each with its length in front (row-mac.ts).
//
//   sealed = form ‖ master key id (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)
//
// The form is 0x02 for a record that is bound to values, else 0x01. Records from before the binding have 0x01 also at a bound place; binding.ts
// says how long they are accepted. Of several master keys the first seals. A record opens under the key whose id it has.
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
  /** Values of other columns, for example the owner of the row. A record opens only while they are the same as when it was sealed. */
  readonly bound?: readonly string[]
}

/** The handling of records at bound places. It changes while a process runs, in one direction (binding.ts). */
interface BoundRecords {
  /** Whether new records are bound. */
  areBound: boolean
  /** Until this time, in milliseconds of the monotonic clock, the process knows that new records are not to be bound. */
  knownUntil: number
  /** Whether unbound records are opened. */
  areUnboundTaken: boolean
}

/** One master key or more. The first seals. */
export type MasterKeys = readonly [Uint8Array, ...Uint8Array[]]

/** The source of the master keys. */
export interface KeyOrigin {
  readonly setting: string
  /** Advice for the operator when the keys are the wrong ones. */
  readonly todo: string
}

export interface RecordKeys {
  readonly origin: KeyOrigin
  /** The ids of the master keys in hex, the one that seals first. */
  readonly keyIds: readonly [string, ...string[]]
  /** Encrypts `plaintext` for its place. */
  readonly seal: (place: Place, plaintext: Uint8Array) => Buffer
  /** Only binding.ts changes its members. */
  readonly boundRecords: BoundRecords
  /** Whether a value has a form that is accepted at its place. */
  readonly isTaken: (place: Place, sealed: Uint8Array) => boolean
  /** Whether a value has the form and the master key that `seal` would use now. */
  readonly isSealedAsNow: (place: Place, sealed: Uint8Array) => boolean
  /** Decrypts a value. Throws SealedRecordError when it was altered or moved, or sealed under a missing master key. */
  readonly open: (place: Place, sealed: Uint8Array) => Uint8Array
  /**
   * Returns the result of `build` for the decrypted value. It is remembered as long as the sealed bytes in the database are the same, so the next
   * read notices a change by another process.
   */
  readonly openCached: <T extends object>(place: Place, sealed: Uint8Array, build: (plaintext: Uint8Array) => T, kept?: Kept) => T
  /**
   * Reports a record that was altered or moved, and returns the error to throw. It is for a record that opens although another check shows the
   * alteration.
   */
  readonly reportAltered: (place: Place) => SealedRecordError
}

/** Options for remembering the result of `build`. */
interface Kept {
  /** Distinguishes several results of one place. Each is remembered separately. */
  readonly form?: string
  /** The end of the result, in milliseconds since 1970. It is forgotten soon after. */
  readonly until?: number
  /** Whether the result is bytes. Many more of these are remembered. They have no `until`. */
  readonly areBytes?: boolean
}

/** The error for a sealed record that cannot be opened. It names the place, never the bytes. */
export class SealedRecordError extends Error {
  /** False if it names a master key that is not given: the key is missing from the settings, or somebody altered its id in the record. */
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
  /** The source of the keys, for errors. The default is PAWL_MASTER_KEY. */
  readonly origin?: KeyOrigin
  /** Called for each record that was altered or moved. `record` is its place as text. */
  readonly onAltered?: (fields: { readonly record: string }) => void
  /** Called for the first record under each master key that is not given. `keyId` is the id of the key in hex. */
  readonly onMissingKey?: (fields: { readonly keyId: string; readonly record: string }) => void
}

/** Creates the encryption of records under master keys of 32 bytes each. At first it accepts at bound places only bound records. */
export function createRecordKeys(
  masterKeys: MasterKeys,
  platform: Pick<Platform, 'randomBytes'>,
  { caches = createCaches(), onAltered = () => undefined, onMissingKey, origin = OF_SETTING }: RecordKeysOptions = {},
): RecordKeys {
  const [first, ...others] = masterKeys
  const sealing = toRoot(first)
  const roots = new Map([...others.map(toRoot), sealing].map((root) => [root.id, root]))
  const bytes = createByteMemory({ max: CACHED_DERIVED, slotBytes: DERIVED_BYTES })
  const derived = caches.watch('derived_keys', CACHED_DERIVED, bytes)
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
    if (sealed.length < SEALED_BYTES_MIN) throw reportAltered(place)
    const root = roots.get(keyIdOf(sealed))
    if (root === undefined) throw reportMissing(place, keyIdOf(sealed))
    const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)
    const associated = associatedData(sealed.subarray(0, HEADER_BYTES), place)
    const plaintext = aesGcmOpen(deriveKey(root, nameOf(place)), nonce, sealed.subarray(HEADER_BYTES + NONCE_BYTES), associated)
    if (plaintext === undefined) throw reportAltered(place)
    return plaintext
  }

  const reportMissing = createMissingReport(onMissingKey)
  const [objectStore, byteStore] = [storeObjects(opened), storeBytes(derived)]
  const openCached: RecordKeys['openCached'] = (place, sealed, build, { form, until = FOR_EVER, areBytes = false } = {}) => {
    requireTaken(place, sealed)
    const store = areBytes ? byteStore : objectStore
    const name = cacheNameOf(place, form)
    const known = store.find(name, sealed)
    // The name contains `form`, so the entry is a result of the same `build`.
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

/** Makes the error for a record whose master key is not given. Calls `tell` once for each key, because thousands of records may be under it. */
function createMissingReport(tell: RecordKeysOptions['onMissingKey']): (place: Place, keyId: string) => SealedRecordError {
  const told = new Set<string>()
  return (place, keyId) => {
    if (told.size < MISSING_KEYS_MAX && !told.has(keyId)) {
      told.add(keyId)
      tell?.({ keyId, record: describe(place) })
    }
    return new SealedRecordError(place, false)
  }
}

/** Throws UNAVAILABLE unless this process knows the present stage. An unbound record that is sealed after the end of the binding would be lost. */
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
  /** The result of `build`. */
  readonly value: object
  readonly until: number
}

/** Estimates the memory of an entry in bytes. */
const bytesOf = ({ sealed, value }: Opened): number => OPENED_BYTES + sealed.length + bytesOfKeys(value)

/** A master key as an HMAC key. */
interface Root {
  readonly id: string
  readonly root: KeyObject
  /** The beginning of every record under this key, in each form. */
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

// NUL separates the parts: pawl chooses the names of tables and columns, and no key of a row or other column contains NUL.
const nameOf = (place: Place): string => `${place.table}\0${place.column}\0${place.row}`
/** The name of an entry in the caches. It contains the owner, so that a value of one owner is never found for another. */
const cacheNameOf = (place: Place, form = ''): string => `${nameOf(place)}\0${form}\0${place.bound?.join('\0') ?? ''}`
const describe = (place: Place): string => `${place.table}.${place.column} of ${place.row}`

/** The texts begin at the same offset for all records of a key, because a key is for one table, column and row. */
const associatedData = (header: Uint8Array, place: Place): Uint8Array => {
  const prefix = concat(header, utf8(nameOf(place)))
  return header[0] === BOUND_FORM ? encodeTexts(prefix, place.bound ?? []) : prefix
}

export const OF_SETTING: KeyOrigin = {
  setting: 'PAWL_MASTER_KEY',
  todo: 'give the right PAWL_MASTER_KEY, or look at whether this is the right database',
}
const FOR_EVER = Number.POSITIVE_INFINITY
/** Whoever writes into the database can name any number of keys. */
const MISSING_KEYS_MAX = 100
const HEADER_BYTES = 1 + KEY_ID_BYTES
const NONCE_BYTES = 12
/** Those of an empty text: header, nonce and tag. What is shorter was sealed under no key. */
export const SEALED_BYTES_MIN = HEADER_BYTES + NONCE_BYTES + 16
// docs/decisions/0014-memory.md has the measured memory of full caches.
const CACHED_DERIVED = 100_000
// An entry has two sizes, the 49 bytes of a sealed KEY_MASTER_SECRET, and the 112 bytes of keys of its activation (v3 §3.2). A token secret takes
// less.
const DERIVED_BYTES = 176
const CACHED_VALUES = 5_000
const CACHED_BYTES = 16 * 1024 * 1024
// The memory of the derived keys of an activation and of their entry. The memory of a private key is added.
const OPENED_BYTES = 3_000
