// What a process remembers: so many entries, the one least in use forgotten first, each for so long.
import { LRUCache } from 'lru-cache'

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
  /** `span` where an entry's time is not the `ttl` from now on: milliseconds on the clock, the second one excluded. */
  readonly set: (key: string, value: V, span?: Span) => void
}

export interface Span {
  readonly from: number
  readonly to: number
}

/** A memory of up to `max` entries, and of up to `bytes.max` where that is given. An entry of more than all these bytes is not remembered. */
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
    /** What an entry takes, at least 1. */
    readonly of: (value: V) => number
  }
}

interface TimeLimits {
  readonly max: number
  readonly ttl: number
  readonly clock: () => number
}

function createUntimed<V extends object>({ max, bytes }: SizeLimits<V>): Memory<V> {
  // As a size: for a `max` the cache would make room at once for all that may ever come, 20 ms for 100,000 entries. With bytes an entry counts
  // as many as it has, in units of which `max` are one, and at least its share of them all.
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
