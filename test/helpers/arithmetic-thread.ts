// Runs in a thread, with the operations that a test of threads needs (src/crypto/thread-pool.test.ts).
import { getPriority } from 'node:os'
import { answerJobs } from '../../src/crypto/thread-pool.ts'

export const ARITHMETIC = {
  double: (value: number): number => 2 * value,
  reverse: (bytes: Uint8Array): { readonly reversed: Uint8Array; readonly bufferLength: number } => ({
    reversed: Buffer.concat([bytes.toReversed()]),
    bufferLength: bytes.buffer.byteLength,
  }),
  refuse: (reason: string): never => {
    throw new RangeError(reason)
  },
  endThread: (): void => process.exit(3),
  priority: (): number => getPriority(),
  environment: (): readonly string[] => Object.keys(process.env),
}

answerJobs(ARITHMETIC)
