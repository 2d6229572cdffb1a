// A memory of byte strings that lie beside the heap, each in a slot of its own: what is written anew with each request is overwritten in place and
// leaves no garbage (docs/decisions/0014-memory.md).
import { asBuffer, ownBytes } from './bytes.ts'
import { createMemory } from './memory.ts'

export interface ByteMemory {
  /** A copy. */
  readonly get: (key: string) => Buffer | undefined
  readonly set: (key: string, value: Uint8Array) => void
  readonly size: () => number
}

interface SlotLimits {
  readonly max: number
  /** The bytes of a slot. Of values that are longer, a thousand are remembered as objects of the heap. */
  readonly slotBytes: number
}

/**
 * A memory of up to `max` byte strings. Slots are given again in turns, but for those that were used since the last turn (second chance). Memory is
 * allocated as it is needed, for 512 slots at a time.
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
      slots.set(key, slot)
      keys[slot] = key
      // One that comes once goes before one that came back.
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
