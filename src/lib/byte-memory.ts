// A memory of byte strings of which nothing lies on the heap, neither the names nor what finds them: V8 walks no entry of it when it collects, and
// what is written anew with each request is no garbage of the old generation (docs/decisions/0014-memory.md).
import { BLOCK_BYTES, blocksOf, createByteBlocks } from './byte-blocks.ts'
import { asBuffer } from './bytes.ts'
import { createIndex, createOrder, NONE } from './numbered-entries.ts'

export interface ByteMemory {
  /** A copy. */
  readonly get: (key: string) => Buffer | undefined
  readonly set: (key: string, value: Uint8Array) => void
  readonly size: () => number
}

interface ByteLimits {
  readonly max: number
  /** For keys and what is remembered under them, in blocks of 128. */
  readonly bytes: number
}

/**
 * A memory of up to `max` byte strings, and of as many as have room in so many bytes. The one least in use is forgotten first, and one that has no
 * room alone is not remembered. What is forgotten is overwritten.
 */
export function createByteMemory({ max, bytes }: ByteLimits, allocate?: (length: number) => Buffer): ByteMemory {
  const blocksMax = Math.floor(bytes / BLOCK_BYTES)
  const blocks = createByteBlocks(blocksMax, allocate)
  const order = createOrder(max)
  const index = createIndex(max)
  // Of each entry: the first block of a chain, and how many bytes of key and of value stand there.
  const chains = new Int32Array(max)
  const keyLengths = new Int32Array(max)
  const valueLengths = new Int32Array(max)
  const chainOf = (entry: number): number => chains[entry] as number
  const keyLengthOf = (entry: number): number => keyLengths[entry] as number
  const endOf = (entry: number): number => keyLengthOf(entry) + (valueLengths[entry] as number)

  const find = (key: Buffer, hash: number): number =>
    index.find(hash, (entry) => keyLengthOf(entry) === key.length && blocks.startsWith(chainOf(entry), key))
  const forget = (entry: number): void => {
    index.remove(entry)
    blocks.release(chainOf(entry))
    order.remove(entry)
  }
  const add = (key: Buffer, hash: number, count: number): number => {
    while (order.size() >= max || blocks.free() < count) forget(order.oldest())
    const entry = order.add()
    chains[entry] = blocks.take(count)
    keyLengths[entry] = key.length
    blocks.write(chainOf(entry), 0, key)
    index.add(hash, entry)
    return entry
  }

  return {
    get: (text) => {
      const key = Buffer.from(text)
      const entry = find(key, hashOf(key))
      if (entry === NONE) return undefined
      order.use(entry)
      return blocks.read(chainOf(entry), key.length, endOf(entry))
    },
    set: (text, value) => {
      const key = Buffer.from(text)
      const hash = hashOf(key)
      const count = blocksOf(key.length + value.length)
      let entry = find(key, hash)
      if (entry !== NONE && blocksOf(endOf(entry)) !== count) {
        forget(entry)
        entry = NONE
      }
      if (entry === NONE) {
        if (count > blocksMax) return
        entry = add(key, hash, count)
      }
      order.use(entry)
      valueLengths[entry] = value.length
      blocks.write(chainOf(entry), key.length, asBuffer(value))
    },
    size: order.size,
  }
}

/**
 * FNV-1a of 32 bits, its high bits mixed into the low ones that the index takes. Activations are named at random; what else names a record is a
 * back end of the bank.
 */
function hashOf(key: Buffer): number {
  let hash = FNV_START
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ (key[i] as number), FNV_PRIME)
  return hash ^ (hash >>> 15)
}

const FNV_START = 0x811c9dc5
const FNV_PRIME = 0x01000193
