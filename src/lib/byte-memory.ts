// A memory of byte strings that lie in blocks beside the heap: what is written anew with each request is no garbage of the old generation then
// (docs/decisions/0014-memory.md).
import { LRUCache } from 'lru-cache'

export interface ByteMemory {
  /** A copy. */
  readonly get: (key: string) => Buffer | undefined
  readonly set: (key: string, bytes: Uint8Array) => void
  readonly size: () => number
}

/**
 * A memory of up to `max` byte strings, and of as many as `blocks` of so many bytes hold. The one least in use is forgotten first, and one of
 * more than all these blocks is not remembered. Memory is taken as it fills. What is forgotten is overwritten.
 */
export function createByteMemory(
  { max, blocks: blocksMax, blockBytes }: ByteLimits,
  allocate = (length: number): Buffer => Buffer.alloc(length),
): ByteMemory {
  // As a size: for a `max` the cache would make room at once for all that may ever come.
  const entries = new LRUCache<string, Entry>({ maxSize: blocksMax, sizeCalculation: ({ blocks }) => blocks.length })
  const chunks: Buffer[] = []
  const free: number[] = []

  const chunkOf = (block: number): Buffer => chunks[Math.floor(block / CHUNK_BLOCKS)] as Buffer
  const offsetOf = (block: number): number => (block % CHUNK_BLOCKS) * blockBytes
  const wipe = (block: number): void => {
    chunkOf(block).fill(0, offsetOf(block), offsetOf(block) + blockBytes)
  }
  const release = (blocks: readonly number[]): void => {
    for (const block of blocks) wipe(block)
    free.push(...blocks)
  }
  const forgetOne = (): void => release(entries.pop()?.blocks ?? [])
  const takeBlock = (): number => {
    if (free.length === 0 && chunks.length * CHUNK_BLOCKS < blocksMax) {
      const first = chunks.length * CHUNK_BLOCKS
      const count = Math.min(CHUNK_BLOCKS, blocksMax - first)
      chunks.push(allocate(count * blockBytes))
      for (let i = count - 1; i >= 0; i -= 1) free.push(first + i)
    }
    while (free.length === 0) forgetOne()
    return free.pop() as number
  }
  const write = ({ blocks }: Entry, value: Uint8Array): void => {
    for (let i = 0; i < blocks.length; i += 1) {
      const block = blocks[i] as number
      chunkOf(block).set(value.subarray(i * blockBytes, (i + 1) * blockBytes), offsetOf(block))
    }
  }

  return {
    get: (key) => {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      const bytes = Buffer.allocUnsafe(entry.length)
      for (let i = 0; i < entry.blocks.length; i += 1) {
        const offset = offsetOf(entry.blocks[i] as number)
        chunkOf(entry.blocks[i] as number).copy(bytes, i * blockBytes, offset, offset + blockBytes)
      }
      return bytes
    },
    set: (key, value) => {
      const count = Math.max(Math.ceil(value.length / blockBytes), 1)
      const known = entries.get(key)
      if (known?.blocks.length === count) {
        if (value.length < known.length) wipe(known.blocks[count - 1] as number)
        known.length = value.length
        write(known, value)
        return
      }
      if (known !== undefined) {
        entries.delete(key)
        release(known.blocks)
      }
      if (count > blocksMax) return
      if (entries.size >= max) forgetOne()
      const entry = { length: value.length, blocks: Array.from({ length: count }, takeBlock) }
      write(entry, value)
      entries.set(key, entry)
    },
    size: () => entries.size,
  }
}

interface ByteLimits {
  readonly max: number
  readonly blocks: number
  readonly blockBytes: number
}

interface Entry {
  length: number
  readonly blocks: readonly number[]
}

const CHUNK_BLOCKS = 1_024
