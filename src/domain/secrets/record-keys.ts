// Secrets at rest: every secret column is encrypted for its own table, column and row under the master key.
//
// A record's key is HMAC-SHA-256(master key, place), so that no AES-GCM key ever sees more than the writes of one row and random
// 96-bit nonces stay far below the 2^32 invocations of NIST SP 800-38D §8.3. The place is authenticated a second time as
// associated data together with the id of the master key.
//
//   sealed = 0x01 ‖ master key id (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)
//
// Of several master keys the first seals, and a record opens under the one that it names.
import type { KeyObject } from 'node:crypto'
import { open as openAead, seal as sealAead } from '../../crypto/aead.ts'
import { hmac, importHmacKey } from '../../crypto/hmac.ts'
import { bytesOfKeys } from '../../crypto/key.ts'
import { createByteMemory } from '../../lib/byte-memory.ts'
import { concat, equalPublic, ownBytes, utf8 } from '../../lib/bytes.ts'
import { type Caches, createCaches } from '../../lib/caches.ts'
import { createMemory } from '../../lib/memory.ts'
import type { Platform } from '../../lib/platform.ts'
import { KEY_ID_BYTES, keyIdOf } from '../../lib/sealed-value.ts'
import { concatWithSizes, splitBySizes } from '../../lib/sizes.ts'

/** Where a sealed value stands. */
export interface Place {
  readonly table: string
  readonly column: string
  /** The primary key of the row. */
  readonly row: string
}

/** One master key or more. The first seals. */
export type MasterKeys = readonly [Uint8Array, ...Uint8Array[]]

export interface RecordKeys {
  /** The ids of the master keys in hex, the one that seals first. */
  readonly keyIds: readonly [string, ...string[]]
  /** Encrypts `plaintext` for its place. */
  readonly seal: (place: Place, plaintext: Uint8Array) => Buffer
  /** The same, and remembers `value` as what openCached would build of it: who has just made a key does not decode it again. */
  readonly sealBuilt: (place: Place, plaintext: Uint8Array, value: object, kept?: Kept) => Buffer
  /** Decrypts; throws SealedRecordError when the value was altered, moved, or sealed under a master key that is not there. */
  readonly open: (place: Place, sealed: Uint8Array) => Uint8Array
  /**
   * What `build` makes of the decrypted value, from memory as long as the sealed bytes in the database are the same; so another
   * process that changes the row is noticed at the next read.
   */
  readonly openCached: <T extends object>(place: Place, sealed: Uint8Array, build: (plaintext: Uint8Array) => T, kept?: Kept) => T
  /** The same where bytes are built: of them many more are remembered. */
  readonly openBytes: (place: Place, sealed: Uint8Array, build: (plaintext: Uint8Array) => Uint8Array) => Uint8Array
}

/** How something built is remembered. */
export interface Kept {
  /** Names what is built where several things are made of one place: each of them is remembered for itself. */
  readonly form?: string
  /** When it is over, in milliseconds; memory lets go of it soon after. */
  readonly until?: number
}

/** A sealed record could not be opened. Carries the place, never the bytes. */
export class SealedRecordError extends Error {
  constructor(place: Place) {
    super(`cannot open the sealed record ${describe(place)}: altered, moved, or sealed under a master key that is not given`)
    this.name = 'SealedRecordError'
  }
}

/** Record encryption under master keys of 32 bytes each. */
export function createRecordKeys(
  masterKeys: MasterKeys,
  platform: Pick<Platform, 'randomBytes'>,
  caches: Caches = createCaches(),
): RecordKeys {
  const [first, ...others] = masterKeys
  const sealing = toRoot(first)
  const roots = new Map([...others.map(toRoot), sealing].map((root) => [root.id, root]))
  const keys = caches.watch(
    'record_keys',
    CACHED_KEYS,
    createByteMemory({ max: CACHED_KEYS, bytes: CACHED_KEYS * RECORD_KEY_BYTES }),
  )
  const derived = caches.watch(
    'derived_keys',
    CACHED_DERIVED,
    createByteMemory({ max: CACHED_DERIVED, bytes: CACHED_DERIVED * DERIVED_BYTES }),
  )
  const values = createMemory<Opened>({ max: CACHED_VALUES, bytes: { max: CACHED_BYTES, of: bytesOf } })
  const opened = caches.watch('opened_records', CACHED_VALUES, values, (now) => values.forget(({ until }) => until <= now))

  /** For records that are sealed or opened again and again. */
  const keyOf = (root: Root, name: string): Uint8Array => {
    const cached = `${root.id}${name}`
    const known = keys.get(cached)
    if (known !== undefined) return known
    const key = deriveKey(root, name)
    keys.set(cached, key)
    return key
  }

  const sealBy = (keyFor: typeof keyOf, place: Place, plaintext: Uint8Array): Buffer => {
    const name = nameOf(place)
    const { header } = sealing
    const nonce = platform.randomBytes(NONCE_BYTES)
    return Buffer.concat([header, nonce, sealAead(keyFor(sealing, name), nonce, plaintext, concat(header, utf8(name)))])
  }

  const openBy = (keyFor: typeof keyOf, place: Place, sealed: Uint8Array): Uint8Array => {
    const root = sealed[0] === FORMAT ? roots.get(keyIdOf(sealed)) : undefined
    if (root === undefined) throw new SealedRecordError(place)
    const name = nameOf(place)
    const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)
    const associated = concat(root.header, utf8(name))
    const plaintext = openAead(keyFor(root, name), nonce, sealed.subarray(HEADER_BYTES + NONCE_BYTES), associated)
    if (plaintext === undefined) throw new SealedRecordError(place)
    return plaintext
  }

  // What is built is remembered, so the key is not needed soon.
  const sealBuilt: RecordKeys['sealBuilt'] = (place, plaintext, value, { form = '', until = FOR_EVER } = {}) => {
    const sealed = ownBytes(sealBy(deriveKey, place, plaintext))
    opened.set(cacheNameOf(place, form), { sealed, value, until })
    return sealed
  }

  const openCached: RecordKeys['openCached'] = (place, sealed, build, { form = '', until = FOR_EVER } = {}) => {
    const name = cacheNameOf(place, form)
    const known = opened.get(name)
    if (known !== undefined && equalPublic(known.sealed, sealed)) return known.value as ReturnType<typeof build>
    const value = build(openBy(deriveKey, place, sealed))
    opened.set(name, { sealed: ownBytes(sealed), value, until })
    return value
  }

  const openBytes: RecordKeys['openBytes'] = (place, sealed, build) => {
    const name = nameOf(place)
    const cached = derived.get(name)
    const [from, known] = cached === undefined ? [] : splitBySizes(cached)
    if (from !== undefined && known !== undefined && equalPublic(from, sealed)) return known
    const bytes = build(openBy(deriveKey, place, sealed))
    derived.set(name, concatWithSizes(sealed, bytes))
    return bytes
  }

  return {
    keyIds: [sealing.id, ...[...roots.keys()].filter((id) => id !== sealing.id)],
    seal: (place, plaintext) => sealBy(keyOf, place, plaintext),
    sealBuilt,
    open: (place, sealed) => openBy(keyOf, place, sealed),
    openCached,
    openBytes,
  }
}

interface Opened {
  readonly sealed: Uint8Array
  /** What was built of it. */
  readonly value: object
  readonly until: number
}

/** About how many bytes are kept. */
const bytesOf = ({ sealed, value }: Opened): number => OPENED_BYTES + sealed.length + bytesOfKeys(value)

/** A master key, ready for use. */
interface Root {
  readonly id: string
  readonly root: KeyObject
  /** What every record under it begins with. */
  readonly header: Uint8Array
}

function toRoot(masterKey: Uint8Array): Root {
  const root = importHmacKey(masterKey)
  const id = hmac(root, utf8('pawl/master-key-id')).subarray(0, KEY_ID_BYTES)
  return { id: Buffer.from(id).toString('hex'), root, header: concat(Uint8Array.of(FORMAT), id) }
}

const deriveKey = ({ root }: Root, name: string): Uint8Array => hmac(root, utf8(`pawl/record-key\0${name}`))

// NUL separates: table and column names are ours, and no row key contains it.
const nameOf = (place: Place): string => `${place.table}\0${place.column}\0${place.row}`
const cacheNameOf = (place: Place, form: string): string => `${nameOf(place)}\0${form}`
const describe = (place: Place): string => `${place.table}.${place.column} of ${place.row}`

const FOR_EVER = Number.POSITIVE_INFINITY
const FORMAT = 1
const HEADER_BYTES = 1 + KEY_ID_BYTES
const NONCE_BYTES = 12
// What full caches hold is measured in docs/decisions/0014-memory.md.
// A key that is made anew takes one HMAC, 3 µs.
const CACHED_KEYS = 5_000
// The key and its name.
const RECORD_KEY_BYTES = 128
const CACHED_DERIVED = 100_000
// Two sizes, 49 bytes of a sealed KEY_MASTER_SECRET, 112 of the keys of its activation (v3 §3.2), and 61 of their name.
const DERIVED_BYTES = 256
const CACHED_VALUES = 5_000
const CACHED_BYTES = 16 * 1024 * 1024
// The derived keys of an activation, with what remembers them; a private key comes on top.
const OPENED_BYTES = 3_000
