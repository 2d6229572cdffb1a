// Tests the threads for computations: their arguments and results, and the end of a thread.
import { execFileSync } from 'node:child_process'
import { getPriority } from 'node:os'
import { describe, expect, test } from 'vitest'
import type { ARITHMETIC } from '../../test/helpers/arithmetic-thread.ts'
import { PATIENCE_MS } from '../../test/helpers/patience.ts'
import { PawlError } from '../lib/errors.ts'
import { createThreads } from './thread-pool.ts'

const FILE = new URL('../../test/helpers/arithmetic-thread.ts', import.meta.url)
const start = (options: { readonly threadsMax?: number; readonly jobsMax?: number } = {}) =>
  createThreads<typeof ARITHMETIC>(FILE, { name: 'arithmetic', threadsMax: 1, jobsMax: 100, ...options })

describe('threads', () => {
  test.each([1, 3])('answer each job with its own result: %d of them', async (threadsMax) => {
    const inThread = start({ threadsMax })
    const values = Array.from({ length: 50 }, (_, i) => i)
    expect(await Promise.all(values.map((value) => inThread('double', value)))).toEqual(values.map((value) => 2 * value))
  })

  test('are sent a byte string without the memory beside it, and send back no more', async () => {
    const pool = Buffer.alloc(1000, 'secret')
    const { reversed, bufferLength } = await start()('reverse', pool.subarray(10, 13))
    expect(bufferLength).toBe(3)
    expect(Buffer.from(reversed)).toEqual(Buffer.from(pool.subarray(10, 13).toReversed()))
    expect(reversed.buffer.byteLength).toBe(3)
  })

  test('hand on what an operation throws, and go on', async () => {
    const inThread = start()
    await expect(inThread('refuse', 'too large')).rejects.toThrow(new RangeError('too large'))
    expect(await inThread('double', 4)).toBe(8)
  })

  test('what cannot be sent is refused, and takes no place', async () => {
    const inThread = start({ jobsMax: 1 })
    await expect(inThread('double', (() => 1) as never)).rejects.toThrow('could not be cloned')
    expect(await inThread('double', 4)).toBe(8)
  })

  test('take no more jobs than they may', async () => {
    const inThread = start({ jobsMax: 3 })
    const taken = [1, 2, 3].map((value) => inThread('double', value))
    await expect(inThread('double', 4)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await Promise.all(taken)).toEqual([2, 4, 6])
    expect(await inThread('double', 4)).toBe(8)
  })

  test('a thread that ends fails its jobs, and the next has another', async () => {
    const inThread = start()
    const jobs = [inThread('endThread'), inThread('double', 1)]
    for (const outcome of await Promise.allSettled(jobs))
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(PawlError) })
    expect(await inThread('double', 4)).toBe(8)
  })

  test('have a lower priority than the event loop, which keeps its own', async () => {
    const own = getPriority()
    expect(await start()('priority')).toBe(Math.min(19, own + 10))
    expect(getPriority()).toBe(own)
  })

  test('know nothing of the environment', async () => {
    expect(await start()('environment')).toEqual([])
  })

  test('keep a process for an answer, and not longer', () => {
    const module = JSON.stringify(new URL('./threads.ts', import.meta.url))
    const script = `
      const { inThread } = await import(${module})
      inThread('generateKeyPair', 'P-384').then(({ publicKey }) => console.log(publicKey.length))`
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { timeout: PATIENCE_MS })
    expect(printed.toString()).toBe('97\n')
  })
})
