// Remembers a limited number of entries. Beyond the limit, the entry that was not used for longest is forgotten first. Entries may end after a time.
// Hits and misses are counted.
import { LRUCache } from 'lru-cache'
import { asBuffer, ownBytes } from './bytes.ts'

export interface Memory<V> {
  /** Undefined if there is no entry, or if its time is over. */
  readonly get: (key: string) => V | undefined
  readonly set: (key: string, value: V) => void
  readonly delete: (key: string) => void
  readonly clear: () => void
  /** How often the memory was cleared. What was read before that may be out of date, and must not be set afterwards. */
  readonly clearings: () => number
  /** Removes the entries for which `isOver` is true. */
  readonly forget: (isOver: (value: V) => boolean) => void
  readonly size: () => number
}

export interface TimedMemory<V> extends Memory<V> {
  /** `span`: the validity of the entry, if it is not `ttl` from now on. */
  readonly set: (key: string, value: V, span?: Span) => void
}

/** Milliseconds on the clock of the memory. `to` is excluded. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** A memory of up to `max` entries, and of up to `bytes.max` bytes if that is given. An entry with more bytes than that is not remembered. */
export function createMemory<V extends object>(limits: SizeLimits<V>): Memory<V>
/** A memory of up to `max` entries that end after `ttl` milliseconds by the clock. A clock that is set back to before an entry ends it, too. */
export function createMemory<V extends object>(limits: TimeLimits): TimedMemory<V>
export function createMemory<V extends object>(limits: SizeLimits<V> | TimeLimits): TimedMemory<V> {
  return 'ttl' in limits ? createTimed(limits) : createUntimed(limits)
}

interface SizeLimits<V> {
  readonly max: number
  readonly bytes?: {
    readonly max: number
    /** The bytes that an entry takes, at least 1. */
    readonly of: (value: V) => number
  }
}

interface TimeLimits {
  readonly max: number
  readonly ttl: number
  readonly clock: () => number
}

function createUntimed<V extends object>({ max, bytes }: SizeLimits<V>): Memory<V> {
  // The cache gets a maximum size and no maximum number, because for a number it would allocate room for all entries at once: 20 ms for 100,000. If
  // bytes are limited, too, sizes are counted in parts of a byte, `max` to the byte. An entry counts at least `bytes.max` parts, so that `max`
  // entries fit.
  const entries = new LRUCache<string, V>(
    bytes === undefined
      ? { maxSize: max, sizeCalculation: () => 1 }
      : { maxSize: bytes.max * max, sizeCalculation: (value) => Math.max(bytes.of(value) * max, bytes.max) },
  )
  let clearings = 0
  return {
    get: (key) => entries.get(key),
    set: (key, value) => {
      entries.set(key, value)
    },
    delete: (key) => {
      entries.delete(key)
    },
    clear: () => {
      clearings += 1
      entries.clear()
    },
    clearings: () => clearings,
    forget: (isOver) => {
      const over = [...entries.entries()].filter(([, value]) => isOver(value))
      for (const [key] of over) entries.delete(key)
    },
    size: () => entries.size,
  }
}

function createTimed<V extends object>({ max, ttl, clock }: TimeLimits): TimedMemory<V> {
  const entries = createUntimed<{ readonly value: V } & Span>({ max })
  return {
    ...entries,
    get: (key) => {
      const entry = entries.get(key)
      const now = clock()
      return entry && entry.from <= now && now < entry.to ? entry.value : undefined
    },
    set: (key, value, span = spanFrom(clock(), ttl)) => entries.set(key, { value, ...span }),
    forget: (isOver) => entries.forget(({ value }) => isOver(value)),
  }
}

const spanFrom = (from: number, ttl: number): Span => ({ from, to: from + ttl })

export interface ByteMemory {
  /** A copy of the value; undefined if there is none. */
  readonly get: (key: string) => Buffer | undefined
  readonly set: (key: string, value: Uint8Array) => void
  readonly size: () => number
}

interface SlotLimits {
  readonly max: number
  /** The bytes of a slot. Up to a thousand longer values are remembered as objects of the heap. */
  readonly slotBytes: number
}

/**
 * A memory of up to `max` byte strings, each in a slot of its own beside the heap. A value that each request writes anew is overwritten in place and
 * leaves no garbage (docs/decisions/0014-memory.md). When all slots are taken, the next slot is reused in turn, except slots that were used since the
 * last turn (second chance). Memory is allocated when needed, for 512 slots at a time.
 */
export function createByteMemory({ max, slotBytes }: SlotLimits, allocate = (bytes: number) => Buffer.alloc(bytes)): ByteMemory {
  const slots = new Map<string, number>()
  const keys: string[] = []
  const chunks: Buffer[] = []
  const lengths = new Int32Array(max)
  const wasUsed = new Uint8Array(max)
  const long = createMemory<Uint8Array>({ max: LONG_MAX })
  let turn = 0

  const bytesOf = (slot: number): Buffer => {
    const start = (slot % CHUNK_SLOTS) * slotBytes
    return (chunks[Math.floor(slot / CHUNK_SLOTS)] as Buffer).subarray(start, start + slotBytes)
  }
  const takeSlot = (): number => {
    if (keys.length < max) {
      if (keys.length === chunks.length * CHUNK_SLOTS) chunks.push(allocate(CHUNK_SLOTS * slotBytes))
      return keys.length
    }
    for (; wasUsed[turn] === 1; turn = (turn + 1) % max) wasUsed[turn] = 0
    const slot = turn
    turn = (turn + 1) % max
    slots.delete(keys[slot] as string)
    return slot
  }

  return {
    get: (key) => {
      const slot = slots.get(key)
      if (slot === undefined) return undefined
      wasUsed[slot] = 1
      const value = lengths[slot] === LONG ? long.get(key) : bytesOf(slot).subarray(0, lengths[slot])
      return value && Buffer.from(value)
    },
    set: (key, value) => {
      const known = slots.get(key)
      const slot = known ?? takeSlot()
      if (known === undefined) {
        // A copy: a key that was cut from a header keeps the whole header in memory.
        const own = Buffer.from(key).toString()
        slots.set(own, slot)
        keys[slot] = own
      }
      // A value that was stored only once is forgotten before one that was stored again.
      wasUsed[slot] = known === undefined ? 0 : 1
      const isLong = value.length > slotBytes
      lengths[slot] = isLong ? LONG : value.length
      bytesOf(slot).fill(0)
      if (isLong) long.set(key, ownBytes(value))
      else asBuffer(value).copy(bytesOf(slot))
    },
    size: () => keys.length,
  }
}

const CHUNK_SLOTS = 512
const LONG = -1
const LONG_MAX = 1_000

interface Watched {
  readonly get: (key: string) => unknown
  readonly size: () => number
}

export interface CacheUse {
  readonly name: string
  readonly entries: number
  readonly entriesMax: number
  /** Counted since the memory was made. */
  readonly hits: number
  readonly misses: number
}

export interface Caches {
  /**
   * Returns the same memory with counted reads. `name` is the name in the metrics, in snake_case. `forgetEnded` removes the entries that ended by
   * `now`, in milliseconds. It is for entries that must not stay in memory after their end.
   */
  readonly watch: <M extends Watched>(name: string, entriesMax: number, memory: M, forgetEnded?: (now: number) => void) => M
  readonly list: () => readonly CacheUse[]
  /** Removes ended entries every five seconds. The returned function ends that. */
  readonly startForgetting: (clock: () => number) => () => void
}

export function createCaches(): Caches {
  const uses: (() => CacheUse)[] = []
  const forgetters: ((now: number) => void)[] = []
  return {
    watch: (name, entriesMax, memory, forgetEnded) => {
      let hits = 0
      let misses = 0
      if (forgetEnded !== undefined) forgetters.push(forgetEnded)
      uses.push(() => ({ name, entries: memory.size(), entriesMax, hits, misses }))
      const get = (key: string): unknown => {
        const value = memory.get(key)
        if (value === undefined) misses += 1
        else hits += 1
        return value
      }
      return { ...memory, get }
    },
    list: () => uses.map((use) => use()),
    startForgetting: (clock) => {
      const timer = setInterval(() => {
        const now = clock()
        for (const forgetEnded of forgetters) forgetEnded(now)
      }, FORGET_MS)
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}

const FORGET_MS = 5_000
