// Byte strings in chains of small blocks beside the heap. What is taken back is overwritten with zeros.

export interface ByteBlocks {
  readonly free: () => number
  /** A chain of so many free blocks, of which there are enough: the first one's number. */
  readonly take: (count: number) => number
  /** Overwrites a chain and gives its blocks back. */
  readonly release: (first: number) => void
  /** Writes bytes that have room in the chain, from the offset `at` on, and zeros behind them. */
  readonly write: (first: number, at: number, bytes: Buffer) => void
  /** A copy of what stands in a chain from `from` to `to`, the second one excluded. */
  readonly read: (first: number, from: number, to: number) => Buffer
  readonly startsWith: (first: number, bytes: Buffer) => boolean
}

/** How many blocks so many bytes take. */
export const blocksOf = (bytes: number): number => Math.max(Math.ceil(bytes / BLOCK_BYTES), 1)

/** So many blocks of 128 bytes. Memory is allocated as they are needed, for 512 blocks at a time. */
export function createByteBlocks(count: number, allocate = (length: number): Buffer => Buffer.alloc(length)): ByteBlocks {
  const chunks: Buffer[] = []
  /** Of each block the one that follows it in its chain, of a free one the next free one. */
  const following = new Int32Array(count)
  let firstFree = END
  let allocated = 0
  let free = count

  const allocateChunk = (): void => {
    const size = Math.min(CHUNK_BLOCKS, count - allocated)
    chunks.push(allocate(size * BLOCK_BYTES))
    for (let block = allocated + size - 1; block >= allocated; block -= 1) {
      following[block] = firstFree
      firstFree = block
    }
    allocated += size
  }
  const chunkOf = (block: number): Buffer => chunks[Math.floor(block / CHUNK_BLOCKS)] as Buffer
  const offsetOf = (block: number): number => (block % CHUNK_BLOCKS) * BLOCK_BYTES
  const after = (block: number): number => following[block] as number

  return {
    free: () => free,
    take: (wanted) => {
      let first = END
      for (let i = 0; i < wanted; i += 1) {
        if (firstFree === END) allocateChunk()
        const block = firstFree
        firstFree = after(block)
        following[block] = first
        first = block
      }
      free -= wanted
      return first
    },
    release: (first) => {
      for (let block = first; block !== END; ) {
        const next = after(block)
        const offset = offsetOf(block)
        chunkOf(block).fill(0, offset, offset + BLOCK_BYTES)
        following[block] = firstFree
        firstFree = block
        free += 1
        block = next
      }
    },
    write: (first, at, bytes) => {
      let block = first
      // Where the block begins in the byte string.
      for (let start = 0; block !== END; start += BLOCK_BYTES) {
        const end = start + BLOCK_BYTES
        const zeros = Math.max(at + bytes.length, start)
        const offset = offsetOf(block)
        if (at < end && zeros > start)
          bytes.copy(chunkOf(block), offset + Math.max(at - start, 0), Math.max(start - at, 0), end - at)
        if (zeros < end) chunkOf(block).fill(0, offset + zeros - start, offset + BLOCK_BYTES)
        block = after(block)
      }
    },
    read: (first, from, to) => {
      const bytes = Buffer.allocUnsafe(to - from)
      let block = first
      for (let start = 0; start < to; start += BLOCK_BYTES) {
        const offset = offsetOf(block)
        const end = Math.min(to - start, BLOCK_BYTES)
        if (start + end > from)
          chunkOf(block).copy(bytes, Math.max(start - from, 0), offset + Math.max(from - start, 0), offset + end)
        block = after(block)
      }
      return bytes
    },
    startsWith: (first, bytes) => {
      let block = first
      for (let start = 0; start < bytes.length; start += BLOCK_BYTES) {
        const end = Math.min(start + BLOCK_BYTES, bytes.length)
        const offset = offsetOf(block)
        if (chunkOf(block).compare(bytes, start, end, offset, offset + end - start) !== 0) return false
        block = after(block)
      }
      return true
    },
  }
}

export const BLOCK_BYTES = 128
const CHUNK_BLOCKS = 512
const END = -1
