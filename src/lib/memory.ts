// Memory with a bound: of too many entries, the one that was not used for longest is forgotten first, and entries may end after a time. How often
// what was asked for was there is counted.
import { LRUCache } from 'lru-cache'
import { asBuffer, ownBytes } from './bytes.ts'

export interface Memory<V> {
  /** Undefined when there is none, or when its time is over. */
  readonly get: (key: string) => V | undefined
  readonly set: (key: string, value: V) => void
  readonly delete: (key: string) => void
  readonly clear: () => void
  /** Lets go of the entries for which `isOver` is true. */
  readonly forget: (isOver: (value: V) => boolean) => void
  readonly size: () => number
}

export interface TimedMemory<V> extends Memory<V> {
  /** `span`: the time of an entry where that is not the `ttl` from now on. */
  readonly set: (key: string, value: V, span?: Span) => void
}

/** Milliseconds on the clock of the memory; `to` is excluded. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** A memory of up to `max` entries, and of up to `bytes.max` bytes where that is given. An entry of more bytes than that is not remembered. */
export function createMemory<V extends object>(limits: SizeLimits<V>): Memory<V>
/** The same, of entries that end after `ttl` milliseconds by the clock; a clock that is set back to before an entry ends it, too. */
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
  // The cache is given sizes alone: for a number of entries it would allocate room for all of them at once, 20 ms for 100,000. Where bytes are
  // bounded, too, sizes are counted in parts of a byte, `max` to the byte. An entry counts at least `bytes.max` parts, so that `max` entries fit.
  const entries = new LRUCache<string, V>(
    bytes === undefined
      ? { maxSize: max, sizeCalculation: () => 1 }
      : { maxSize: bytes.max * max, sizeCalculation: (value) => Math.max(bytes.of(value) * max, bytes.max) },
  )
  return {
    get: (key) => entries.get(key),
    set: (key, value) => {
      entries.set(key, value)
    },
    delete: (key) => {
      entries.delete(key)
    },
    clear: () => entries.clear(),
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
  /** A copy; undefined when there is none. */
  readonly get: (key: string) => Buffer | undefined
  readonly set: (key: string, value: Uint8Array) => void
  readonly size: () => number
}

interface SlotLimits {
  readonly max: number
  /** The bytes of a slot. Up to a thousand values that are longer are remembered as objects of the heap. */
  readonly slotBytes: number
}

/**
 * A memory of up to `max` byte strings, which lie beside the heap, each in a slot of its own. What is written anew with each request is
 * overwritten in place and leaves no garbage (docs/decisions/0014-memory.md). When all slots are taken they are given again in turns, but for those
 * that were used since the last turn (second chance). Memory is allocated as it is needed, for 512 slots at a time.
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
        // A copy: a key that was cut from a header keeps the whole header.
        const own = Buffer.from(key).toString()
        slots.set(own, slot)
        keys[slot] = own
      }
      // A value that was stored only once goes before one that was stored again.
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
  /** Since it was made. */
  readonly hits: number
  readonly misses: number
}

export interface Caches {
  /**
   * The same memory; what it is asked for is counted from now on. Names are those of metrics: snake_case. `forgetEnded`, where entries must
   * not outlive a time, lets go of those that ended by `now`, in milliseconds.
   */
  readonly watch: <M extends Watched>(name: string, entriesMax: number, memory: M, forgetEnded?: (now: number) => void) => M
  readonly list: () => readonly CacheUse[]
  /** Has what has ended forgotten every five seconds; the returned function ends that. */
  readonly startForgetting: (clock: () => number) => () => void
}

/** The caches of one server. */
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
